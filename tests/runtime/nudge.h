// Inputs and constants moved by about one rounding, which shows how much a graph makes of roundings.
#pragma once

#include <optional>
#include <vector>

#include "core/tensor.h"
#include "ir/rewrite.h"
#include "ops/constant/constant.h"

namespace rlx::test {

// Floats, each a little nearer to 0.
inline void nudge(Tensor& t) {
  if (!is_arithmetic_float(t.dtype())) return;
  const double unit = t.dtype() == DType::f16 ? 0x1p-10 : t.dtype() == DType::bf16 ? 0x1p-7 : 0x1p-22;
  std::vector<double> v = load<double>(t);
  for (double& x : v) x *= 1 - unit;
  store(t, v);
}
inline std::vector<Tensor> nudged(std::vector<Tensor> inputs) {
  for (Tensor& t : inputs) nudge(t);
  return inputs;
}
inline Graph nudged(const Graph& g) {
  return rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    if (g.nodes[id].op != &constant_op || g.nodes[id].results[0].encoding) return std::nullopt;
    Tensor t = g.nodes[id].attrs.as<ConstantAttrs>().data;
    nudge(t);
    return Values{constant(r.builder(), std::move(t))};
  });
}

}  // namespace rlx::test
