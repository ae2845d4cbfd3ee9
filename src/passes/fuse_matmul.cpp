// fuse-matmul: elementwise ops behind a product or convolution run on its results while they are in the cache.
#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "ir/outline.h"
#include "ops/constant/constant.h"
#include "ops/conv/conv.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "passes/passes.h"

namespace rlx {

namespace {

bool is_product(const Node& n) { return n.op == &matmul_op || n.op == &matmul_integer_op || n.op == &conv_op; }

// What follows one product: elementwise nodes of its shape, in groups. A group is the only reader of the one before,
// and only its last node is read by others: a single node, or a value's several uses and what joins them.
class Chain {
 public:
  Chain(const Graph& g, std::span<const Id> root, Id product) : g_(g), members_{product} {
    while (add_group(root)) ends_.push_back(members_.size());
  }

  std::span<const Id> members() const { return members_; }
  /// Why it ends where it does; empty where nothing elementwise follows.
  std::string reason() const { return why_.empty() ? "" : describe(g_, members_.back()) + " " + why_; }
  void cut(const std::string& why) {
    ends_.pop_back();
    members_.resize(ends_.empty() ? 1 : ends_.back());
    why_ = "is the last that the device takes: " + why;
  }

 private:
  static constexpr std::size_t most_of_group = 16;

  bool add_group(std::span<const Id> root) {
    const Id from = members_.back();
    if (g_.is_output(from)) return refuse("is an output");
    std::set<Id> waiting(g_.users(from).begin(), g_.users(from).end());
    if (waiting.empty()) return false;
    const bool alone = waiting.size() == 1;
    for (std::vector<Id> group; group.size() < most_of_group;) {
      const Id id = *waiting.begin();
      waiting.erase(waiting.begin());
      if (!takes(id, root)) return alone ? false : refuse("has other readers");
      group.push_back(id);
      if (waiting.empty()) {
        members_.insert(members_.end(), group.begin(), group.end());
        return true;
      }
      if (g_.is_output(id)) break;
      waiting.insert(g_.users(id).begin(), g_.users(id).end());
      if (waiting.empty()) break;
    }
    return refuse("has other readers");
  }

  bool refuse(std::string why) {
    why_ = std::move(why);
    return false;
  }

  bool takes(Id id, std::span<const Id> root) {
    const Node& n = g_.nodes[id];
    if (!(n.op->traits() & elementwise) || n.results.size() != 1) return false;
    if (root[id] != id) return refuse("meets the result of another matmul, which has taken the reader");
    if (n.results[0].dims != g_.nodes[members_[0]].results[0].dims) return refuse("is stretched by its reader");
    return true;
  }

  const Graph& g_;
  std::vector<Id> members_;
  std::vector<std::size_t> ends_;  // numbers of members behind each group
  std::string why_;
};

// Whether the device has a kernel for the chain as one node.
bool accepted(const Graph& g, std::span<const Id> members, const PassContext& context, std::string& why) {
  if (!context.device.accepts) return true;
  Builder b;
  std::unordered_map<Operand, Value, OperandHash> made;
  for (const Id id : members) {
    Values operands;
    for (const Operand o : g.nodes[id].operands) {
      if (!made.contains(o)) {
        const Node& from = g.nodes[o.node];
        made.emplace(o, from.op == &constant_op ? constant(b, from.attrs.as<ConstantAttrs>().data)
                                                : b.input("a" + std::to_string(made.size()), g.type(o)));
      }
      operands.push_back(made.at(o));
    }
    const Node& n = g.nodes[id];
    made.emplace(Operand{id, 0}, b.emit(*n.op, n.attrs, operands, n.bodies, n.instance)[0]);
  }
  const Graph alone = b.finish({made.at({members.back(), 0})});
  std::vector<Id> root(alone.nodes.size());
  std::iota(root.begin(), root.end(), Id{0});
  const Id last = alone.outputs[0].node;
  for (Id i = 0; i < alone.nodes.size(); ++i) {
    if (!is_input(alone.nodes[i]) && alone.nodes[i].op != &constant_op) root[i] = last;
  }
  const Graph fused = outline(alone, root);
  return context.device.accepts(fused, fused.outputs[0].node, &why);
}

bool reads_only(const Graph& g, Id id, Id reader) {
  const std::span<const Id> users = g.users(id);
  return !g.is_output(id) && !users.empty() && std::ranges::all_of(users, [&](Id u) { return u == reader; });
}

// The nodes of activate(P) * Q, where P and Q are products of one encoded value that nothing else reads; ascending.
std::vector<Id> gated_pair(const Graph& g, Id product) {
  const Node& n = g.nodes[product];
  if (n.op->name() != "mul" || n.operands[0].node == n.operands[1].node) return {};
  for (const std::size_t k : {0U, 1U}) {
    const Id active = n.operands[k].node, second = n.operands[1 - k].node;
    const Node& a = g.nodes[active];
    const bool unary = (a.op->traits() & elementwise) != 0 && a.operands.size() == 1 && a.results.size() == 1;
    if (!unary || !reads_only(g, active, product) || !reads_only(g, second, product)) continue;
    const Id first = a.operands[0].node;
    const Node &p = g.nodes[first], &q = g.nodes[second];
    if (p.op != &matmul_op || q.op != &matmul_op || first == second || !reads_only(g, first, active)) continue;
    if (!g.type(p.operands[0]).encoding || p.operands[0] != q.operands[0] || p.attrs != q.attrs) continue;
    if (g.type(p.operands[1]) != g.type(q.operands[1])) continue;
    std::vector<Id> members{first, second, active, product};
    std::ranges::sort(members);
    return members;
  }
  return {};
}

}  // namespace

Graph fuse_matmul(const Graph& g, PassContext& context) {
  std::vector<Id> root(g.nodes.size());
  std::iota(root.begin(), root.end(), Id{0});
  const std::vector<bool> live = live_nodes(g);
  std::size_t fused = 0;
  std::vector<bool> paired(g.nodes.size(), false);
  for (Id id = 0; id < g.nodes.size(); ++id) {
    const std::vector<Id> pair = live[id] ? gated_pair(g, id) : std::vector<Id>();
    std::string why;
    if (pair.empty() || !accepted(g, pair, context, why)) continue;
    for (const Id member : pair) {
      root[member] = pair[0];
      paired[member] = true;
    }
    fused += 2;
  }
  for (Id id = 0; id < g.nodes.size(); ++id) {
    if (!live[id] || paired[id] || !is_product(g.nodes[id])) continue;
    Chain chain(g, root, id);
    std::string why;
    while (chain.members().size() > 1 && !accepted(g, chain.members(), context, why)) chain.cut(std::exchange(why, {}));
    if (const std::string reason = chain.reason(); !reason.empty()) context.remark(reason);
    if (chain.members().size() == 1) continue;
    ++fused;
    for (const Id member : chain.members()) root[member] = id;
  }
  if (fused == 0) return g;
  context.remark(fmt::format("{} products are fused with what follows them", fused));
  return outline(g, root);
}

}  // namespace rlx
