// fuse-matmul: elementwise ops behind a product or convolution run on its results while they are in the cache.
#include <algorithm>
#include <numeric>

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

// The only node that reads `id`, or null and why there is none to go on to.
const Id* only_reader(const Graph& g, Id id, std::string& why) {
  if (g.is_output(id)) {
    why = "is an output";
    return nullptr;
  }
  const std::span<const Id> users = g.users(id);
  if (users.empty()) return nullptr;
  if (std::ranges::any_of(users, [&](Id u) { return u != users[0]; })) {
    why = "has other readers";
    return nullptr;
  }
  return &users[0];
}

// The chain behind one matmul: each the only reader of the one before, elementwise, and of the product's shape.
class Chain {
 public:
  Chain(const Graph& g, std::span<const Id> root, Id product) : g_(g), members_{product} {
    for (;;) {
      const Id* next = only_reader(g_, members_.back(), why_);
      if (!next || !takes(*next, root)) return;
      members_.push_back(*next);
    }
  }

  std::span<const Id> members() const { return members_; }
  /// Why it ends where it does; empty where nothing elementwise follows.
  std::string reason() const { return why_.empty() ? "" : describe(g_, members_.back()) + " " + why_; }
  void cut(const std::string& why) {
    members_.pop_back();
    why_ = "is the last that the device takes: " + why;
  }

 private:
  bool takes(Id id, std::span<const Id> root) {
    const Node& n = g_.nodes[id];
    if (!(n.op->traits() & elementwise) || n.results.size() != 1) return false;
    if (root[id] != id) {
      why_ = "meets the result of another matmul, which has taken the reader";
      return false;
    }
    if (n.results[0].dims != g_.nodes[members_[0]].results[0].dims) {
      why_ = "is stretched by its reader";
      return false;
    }
    return true;
  }

  const Graph& g_;
  std::vector<Id> members_;
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

}  // namespace

Graph fuse_matmul(const Graph& g, PassContext& context) {
  std::vector<Id> root(g.nodes.size());
  std::iota(root.begin(), root.end(), Id{0});
  const std::vector<bool> live = live_nodes(g);
  std::size_t fused = 0;
  for (Id id = 0; id < g.nodes.size(); ++id) {
    if (!live[id] || !is_product(g.nodes[id])) continue;
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
