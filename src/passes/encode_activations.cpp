// encode-activations: what is multiplied by encoded matrices in 8-bit blocks, where the options ask for it.
#include <fmt/format.h>

#include "ir/rewrite.h"
#include "ops/constant/constant.h"
#include "ops/encode/encode.h"
#include "ops/grouped_matmul/grouped_matmul.h"
#include "ops/matmul/coded_form.h"
#include "ops/matmul/matmul.h"
#include "passes/passes.h"

namespace rlx {

namespace {

// Whether a kernel multiplies activations in blocks by this matrix, or bank of matrices: it is made of integers, and
// its blocks run along the inner axis.
bool takes_blocks(const Graph& g, const Node& n) {
  const bool one = n.op == &matmul_op && n.attrs.as<MatmulAttrs>().transpose_b;
  const bool bank = n.op == &grouped_matmul_op && n.attrs.as<GroupedMatmulAttrs>().transpose_b;
  if ((!one && !bank) || g.type(n.operands[0]).encoding) return false;
  const TensorType& w = g.type(n.operands[1]);
  return w.encoding && g.nodes[n.operands[1].node].op == &constant_op && w.is_constant() &&
         coded_matrix(*w.encoding).has_value();
}

}  // namespace

Graph encode_activations(const Graph& g, PassContext& context) {
  if (!context.options.encode_activations) return g;
  std::size_t products = 0;
  const Graph result = rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    const Node& n = g.nodes[id];
    if (!takes_blocks(g, n)) return std::nullopt;
    ++products;
    Values in = r.operands(id);
    in[0] = encode(in[0], "a8");
    return r.builder().emit(*n.op, n.attrs, in);
  });
  if (products > 0) context.remark(fmt::format("{} products of activations in 8-bit blocks", products));
  return result;
}

}  // namespace rlx
