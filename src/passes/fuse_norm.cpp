// fuse-norm: residual sums and biases join the norm that reads them.
#include "passes/fuse_norm.h"

#include <algorithm>
#include <numeric>

#include "ir/outline.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/scalar/scalar.h"

namespace rlx {

namespace {

bool is_add(const Graph& g, Operand o) { return g.nodes[o.node].op->name() == "add"; }

// Whether an addend lies as the rows of `whole` do, or is one row for all.
bool fits(const TensorType& t, const TensorType& whole, const NormAttrs& a) {
  const auto row = std::span(whole.dims).subspan(static_cast<std::size_t>(whole.axis(a.axis)));
  return t.dims == whole.dims || std::ranges::equal(t.dims, row);
}

// The additions that join the norm `id`, the nearest first; none when there is nothing to join.
std::vector<Id> additions(const Graph& g, Id id) {
  const Node& norm = g.nodes[id];
  const NormAttrs& a = norm.attrs.as<NormAttrs>();
  const TensorType& whole = norm.results[0];
  const Operand x = norm.operands[0];
  const auto addends_fit = [&](Id add) {
    return std::ranges::all_of(g.nodes[add].operands, [&](Operand o) { return fits(g.type(o), whole, a); });
  };
  if (!is_add(g, x) || !addends_fit(x.node)) return {};
  // Everything a fusion reads comes before its sum, so that no path leaves fusions and comes back.
  for (std::size_t i = 1; i < norm.operands.size(); ++i) {
    const Id from = norm.operands[i].node;
    if (from > x.node && !g.nodes[from].operands.empty()) return {};
  }
  std::vector<Id> adds{x.node};
  for (const Operand o : g.nodes[x.node].operands) {
    const bool alone = g.users(o.node).size() == 1 && !g.is_output(o.node);
    if (!is_add(g, o) || !alone || g.type(o).dims != whole.dims || !addends_fit(o.node)) continue;
    adds.push_back(o.node);
    break;
  }
  return adds;
}

}  // namespace

Graph fuse_norm(const Graph& g, PassContext& context) {
  std::vector<Id> root(g.nodes.size());
  std::iota(root.begin(), root.end(), Id{0});
  std::size_t fused = 0;
  for (Id i = 0; i < g.nodes.size(); ++i) {
    if (g.nodes[i].op != &layer_norm_op && g.nodes[i].op != &rms_norm_op) continue;
    const std::vector<Id> adds = additions(g, i);
    if (adds.empty() || std::ranges::any_of(adds, [&](Id a) { return root[a] != a; })) continue;
    for (const Id a : adds) root[a] = i;
    ++fused;
  }
  if (fused == 0) return g;
  context.remark(fmt::format("{} norms joined with the sums they read", fused));
  return outline(g, root);
}

}  // namespace rlx
