// quantise-products: products with constant matrices in 8-bit integers, where the options ask for it; and
// open-quantisation: quantize and dequantize as the elementwise ops that they are, so that they fuse.
#include <algorithm>
#include <cmath>

#include "ir/rewrite.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/quantize/quantize.h"
#include "ops/scalar/scalar.h"
#include "passes/define.h"
#include "passes/passes.h"

namespace rlx {

namespace {

// Below this many weights, or sums this short, quantising the rows costs as much as it saves.
constexpr Index least_weights = 4096, least_inner = 32;

const Tensor* constant_matrix(const Graph& g, const Node& n) {
  const Node& w = g.nodes[n.operands[1].node];
  if (w.op != &constant_op) return nullptr;
  const Tensor& t = w.attrs.as<ConstantAttrs>().data;
  return t.rank() == 2 && !t.type().encoding && t.dtype() == DType::f32 ? &t : nullptr;
}

// Codes of a matrix, in its own order, and the scale of each column of the product.
struct QuantisedWeights {
  Tensor codes, scales;
};

// Nothing when a weight is not finite.
std::optional<QuantisedWeights> quantise(const Tensor& w, bool transposed) {
  const Index rows = w.shape()[0], columns = w.shape()[1], count = transposed ? rows : columns;
  const std::vector<double> v = load<double>(w);
  if (!std::ranges::all_of(v, [](double x) { return std::isfinite(x); })) return std::nullopt;
  std::vector<double> most(static_cast<std::size_t>(count), 0.0), codes(v.size());
  const auto column = [&](std::size_t i) {
    const auto at = static_cast<Index>(i);
    return static_cast<std::size_t>(transposed ? at / columns : at % columns);
  };
  for (std::size_t i = 0; i < v.size(); ++i) most[column(i)] = std::max(most[column(i)], std::fabs(v[i]));
  std::vector<double> scales = most;
  for (double& s : scales) s = static_cast<double>(static_cast<float>(s / 127));
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double scale = scales[column(i)];
    codes[i] = scale == 0 ? 0 : std::clamp(std::nearbyint(v[i] / scale), -127.0, 127.0);
  }
  return QuantisedWeights{Tensor::of(DType::i8, {rows, columns}, codes), Tensor::of(DType::f32, {count}, scales)};
}

class ProductQuantiser {
 public:
  ProductQuantiser(const Graph& g, PassContext& context) : g_(g), context_(context) {}

  std::optional<Values> visit(Rewriter& r, Id id) {
    const Node& n = g_.nodes[id];
    if (n.op != &matmul_op || n.results[0].dtype != DType::f32) return std::nullopt;
    const auto attrs = n.attrs.as<MatmulAttrs>();
    const Tensor* const weights = constant_matrix(g_, n);
    if (!weights || attrs.transpose_a) return std::nullopt;
    if (weights->count() < least_weights || weights->shape()[attrs.transpose_b ? 1 : 0] < least_inner)
      return std::nullopt;
    if (context_.options.quantise && !context_.options.quantise(product_name(g_, id))) return std::nullopt;
    const auto q = quantise(*weights, attrs.transpose_b);
    if (!q) {
      context_.remark(product_name(g_, id) + " has weights that are not finite");
      return std::nullopt;
    }
    ++changed;
    const QuantizedRows x = quantize_rows(r.operands(id)[0], true);
    const Value w = constant(r.builder(), q->codes);
    const Value sums = matmul_integer(x.codes, w, *x.zero, {false, attrs.transpose_b});
    return Values{cast(sums, DType::f32) * x.scale * constant(r.builder(), q->scales)};
  }
  std::size_t changed = 0;

 private:
  const Graph& g_;
  PassContext& context_;
};

}  // namespace

std::string product_name(const Graph& g, Id id) {
  for (const auto& [value, text] : g.labels) {
    if (value.node == id) return text;
  }
  return describe(g, id);
}

Graph quantise_products(const Graph& g, PassContext& context) {
  if (context.options.matmul_dtype != DType::i8) return g;
  ProductQuantiser q(g, context);
  Graph result = rewrite(g, [&](Rewriter& r, Id id) { return q.visit(r, id); });
  context.remark(fmt::format("{} products in i8", q.changed));
  return result;
}

Graph open_quantisation(const Graph& g, PassContext& context) {
  const auto opens = [](const Node& n) {
    return (n.op == &quantize_op || n.op == &dequantize_op) && n.attrs.as<QuantizeAttrs>().block == 0;
  };
  if (std::ranges::none_of(g.nodes, opens)) return g;
  std::size_t opened = 0;
  Graph result = rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    const Node& n = g.nodes[id];
    if (!opens(n)) return std::nullopt;
    ++opened;
    return in_declared_sizes(n.op->define(n.attrs, {r.operands(id), n.bodies}), n);
  });
  context.remark(fmt::format("{} nodes became elementwise ops", opened));
  return result;
}

}  // namespace rlx
