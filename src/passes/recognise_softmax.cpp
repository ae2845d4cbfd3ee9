// Recognises softmax and log_softmax: the maximum of the same axis is subtracted first.
#include <fmt/format.h>

#include "ir/rewrite.h"
#include "ops/reduce/reduce.h"
#include "ops/softmax/softmax.h"
#include "passes/pattern.h"
#include "passes/recognise.h"

namespace rlx {

namespace {

using namespace pattern;

constexpr Var x{0}, top{1}, total{2};

Pattern below_top() { return op("sub", {x, reduced(ReduceKind::max, x, top)}); }

struct Forms {
  Pattern softmax, log_softmax;
};

Forms forms() {
  const Pattern e = op("exp", {below_top()}), sum = reduced(ReduceKind::sum, e, total);
  return {either({op("div", {e, sum}), product(1, {e, inverse(sum)})}), op("sub", {below_top(), op("log", {sum})})};
}

}  // namespace

Graph recognise_softmax(const Graph& g, PassContext& context) {
  if (!holds(g, {"exp", "reduce"})) return g;
  static const Forms all = forms();
  Matcher m(g);
  std::size_t found = 0;
  Graph result = rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    const std::string_view name = g.nodes[id].op->name();
    if (name != "div" && name != "mul" && name != "sub") return std::nullopt;
    const bool logarithm = name == "sub";
    if (!m.match(logarithm ? all.log_softmax : all.softmax, {id, 0}) || !m.same_type(x, {id, 0})) return std::nullopt;
    const TensorType& type = g.nodes[id].results[0];
    const std::vector<Index> axes = reduced_axes(g, m[top]);
    if (!is_arithmetic_float(type.dtype) || axes.size() != 1 || axes != reduced_axes(g, m[total])) return std::nullopt;
    ++found;
    const Index axis = axes[0] == type.rank() - 1 ? -1 : axes[0];
    return Values{logarithm ? log_softmax(r.value(m[x]), axis) : softmax(r.value(m[x]), axis)};
  });
  if (found == 0) return g;
  context.remark(fmt::format("{} softmax", found));
  return drop_dead(result);
}

}  // namespace rlx
