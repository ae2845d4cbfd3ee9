// fuse-elementwise: joins elementwise nodes to the first group that reads them. It stands late in the order: what
// other passes look for (softmax, norms, attention, epilogues of products) is no longer visible inside a region.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/outline.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"
#include "passes/passes.h"

namespace rlx {

namespace {

// Bounds of a region, well inside what the makers of regions take.
constexpr int most_weight = 96;
constexpr std::size_t most_operands = 20, most_results = 8;

bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

class Groups {
 public:
  Groups(const Graph& g, const DeviceInfo& device)
      : g_(g), device_(device), live_(live_nodes(g)), root_(g.nodes.size()), groups_(g.nodes.size()) {
    for (Id i = 0; i < root_.size(); ++i) root_[i] = i;
  }

  // Every edge between groups goes to a group with a later root: members are added to the group with the earliest root
  // among the readers, so that no path leaves a group and comes back.
  void grow() {
    for (Id i = static_cast<Id>(g_.nodes.size()); i-- > 0;) {
      if (!live_[i] || is_input(g_.nodes[i])) continue;
      const Kind kind = kind_of(i);
      if (kind == Kind::other) continue;
      if (const Id to = first_reader(i); to != i && may_join(i, kind, to)) join(i, kind, to);
      if (root_[i] == i && kind == Kind::computed) found(i);
    }
  }

  // A region of one computed node gains nothing.
  std::vector<Id> roots() {
    for (Id i = 0; i < root_.size(); ++i) {
      if (groups_[root_[i]].computed < 2) root_[i] = i;
    }
    return root_;
  }
  std::pair<std::size_t, std::size_t> counts() const {
    std::size_t regions = 0, nodes = 0;
    for (Id i = 0; i < root_.size(); ++i) {
      if (groups_[i].computed < 2) continue;
      ++regions;
      nodes += groups_[i].members;
    }
    return {regions, nodes};
  }

 private:
  enum class Kind { computed, stretched, number, other };

  struct Group {
    std::size_t members = 0, computed = 0, results = 0;
    int weight = 0;
    std::unordered_set<Operand, OperandHash> operands;
  };

  Kind kind_of(Id i) const {
    const Node& n = g_.nodes[i];
    if (n.results.size() != 1 || n.results[0].encoding) return Kind::other;
    if (n.op == &constant_op) return n.results[0].count() == Dim(1) ? Kind::number : Kind::other;
    if (n.op == &broadcast_op) return Kind::stretched;
    if (n.op != &cast_op && !is_scalar_op(*n.op)) return Kind::other;
    for (const Operand o : n.operands) {
      if (g_.type(o).encoding) return Kind::other;
    }
    return device_.accepts && !device_.accepts(g_, i, nullptr) ? Kind::other : Kind::computed;
  }

  // The earliest root among the groups of the readers; `i` when there is none.
  Id first_reader(Id i) const {
    Id first = i;
    for (const Id user : g_.users(i)) {
      if (live_[user] && (first == i || root_[user] < first)) first = root_[user];
    }
    return first;
  }

  bool read_by(Id i, Id group) const {
    return std::ranges::all_of(g_.users(i), [&](Id user) { return !live_[user] || root_[user] == group; });
  }

  // Whether the value is needed outside its group.
  bool leaves(Id i, Id group) const { return g_.is_output(i) || !read_by(i, group); }

  // Instructions of a node; halves are widened and rounded around it.
  int weight(Id i, Kind kind) const {
    if (kind != Kind::computed) return 1;
    const Node& n = g_.nodes[i];
    const bool half = is_half(n.results[0].dtype) || is_half(g_.type(n.operands.back()).dtype);
    return half ? 3 : n.op == &cast_op ? 2 : 1;
  }

  std::size_t operands_with(Id i, const Group& group) const {
    std::size_t count = group.operands.size() - group.operands.count({i, 0});
    std::unordered_set<Operand, OperandHash> more;
    for (const Operand o : g_.nodes[i].operands) {
      if (!group.operands.contains(o) && more.insert(o).second) ++count;
    }
    return count;
  }

  bool may_join(Id i, Kind kind, Id to) const {
    const Group& group = groups_[to];
    if (group.members == 0) return false;  // the reader is no region
    const bool result = leaves(i, to);
    // Numbers and stretched values cost nothing outside: they are read where they are.
    if (kind != Kind::computed && result) return false;
    // A smaller value would be computed again for every element that it is stretched to.
    if (kind != Kind::number && g_.nodes[i].results[0].dims != g_.nodes[to].results[0].dims) return false;
    if (group.weight + weight(i, kind) > most_weight) return false;
    if (group.results + (result ? 1 : 0) > most_results) return false;
    return operands_with(i, group) <= most_operands;
  }

  void found(Id i) {
    Group& group = groups_[i];
    group = {.members = 1, .computed = 1, .results = 1, .weight = weight(i, Kind::computed), .operands = {}};
    for (const Operand o : g_.nodes[i].operands) group.operands.insert(o);
  }

  void join(Id i, Kind kind, Id to) {
    Group& group = groups_[to];
    root_[i] = to;
    ++group.members;
    group.computed += kind == Kind::computed;
    group.results += leaves(i, to);
    group.weight += weight(i, kind);
    group.operands.erase({i, 0});
    for (const Operand o : g_.nodes[i].operands) group.operands.insert(o);
  }

  const Graph& g_;
  const DeviceInfo& device_;
  std::vector<bool> live_;
  std::vector<Id> root_;
  std::vector<Group> groups_;  // by root
};

}  // namespace

Graph fuse_elementwise(const Graph& g, PassContext& context) {
  Groups groups(g, context.device);
  groups.grow();
  const std::vector<Id> roots = groups.roots();
  const auto [regions, nodes] = groups.counts();
  if (regions > 0) context.remark(fmt::format("{} nodes in {} regions", nodes, regions));
  return outline(g, roots);
}

}  // namespace rlx
