// lower-precision: products of f32 values in a shorter float type, where the options ask for it.
#include "core/error.h"
#include "ir/rewrite.h"
#include "ops/cast/cast.h"
#include "ops/matmul/matmul.h"
#include "passes/passes.h"

namespace rlx {

Graph lower_precision(const Graph& g, PassContext& context) {
  const std::optional<DType> shorter = context.options.matmul_dtype;
  if (!shorter || *shorter == DType::i8) return g;
  require(*shorter == DType::bf16 || *shorter == DType::f16, "products in {} are asked for, expected bf16, f16 or i8",
          name(*shorter));
  std::size_t changed = 0;
  Graph result = rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    const Node& n = g.nodes[id];
    if (n.op != &matmul_op || n.results[0].dtype != DType::f32) return std::nullopt;
    const Values in = r.operands(id);
    if (in[0].type().encoding || in[1].type().encoding) return std::nullopt;
    ++changed;
    const Value product = matmul(cast(in[0], *shorter), cast(in[1], *shorter), n.attrs.as<MatmulAttrs>());
    return Values{cast(product, DType::f32)};
  });
  context.remark(fmt::format("{} products in {}", changed, name(*shorter)));
  return result;
}

}  // namespace rlx
