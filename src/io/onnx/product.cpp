// Matrix products, norms of layers.
#include "core/error.h"
#include "io/onnx/importer.h"
#include "io/onnx/norms.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

// Whether a vector of factors has the sizes of the axes from `axis` on, as the ops of rlx want them.
bool fits(Value x, Value factors, Index axis) {
  const std::vector<Dim>& dims = x.type().dims;
  return std::vector<Dim>(dims.begin() + axis, dims.end()) == factors.type().dims;
}

std::vector<Index> axes_from(Index axis, Index rank) {
  std::vector<Index> all;
  for (; axis < rank; ++axis) all.push_back(axis);
  return all;
}

}  // namespace

Value layer_norm_of(Value x, Value gamma, std::optional<Value> beta, Index axis, double epsilon) {
  const NormAttrs attrs{axis, epsilon};
  if (!fits(x, gamma, axis) || (beta && !fits(x, *beta, axis))) {
    const Value y = layer_norm(x, attrs) * gamma;
    return beta ? y + *beta : y;
  }
  return beta ? layer_norm(x, gamma, *beta, attrs) : layer_norm(x, gamma, attrs);
}

Value rms_norm_of(Value x, Value gamma, Index axis, double epsilon) {
  const NormAttrs attrs{axis, epsilon};
  return fits(x, gamma, axis) ? rms_norm(x, gamma, attrs) : rms_norm(x, attrs) * gamma;
}

namespace {

Values matmul_operator(NodeArgs& n) {
  n.expect(2, 2);
  return {matmul(n[0], n[1])};
}

Values gemm(NodeArgs& n) {
  n.expect(2, 3);
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  const bool left = n.integer("transA", 0) != 0, right = n.integer("transB", 0) != 0;
  require(n[0].rank() == 2 && n[1].rank() == 2, "operands are {} and {}, expected rank 2", n[0].type().text(),
          n[1].type().text());
  Value y = matmul(n[0], n[1], {left, right});
  if (alpha != 1) y = y * like(y, alpha);
  if (!n.has(2)) return {y};
  const Value c = beta == 1 ? n[2] : n[2] * like(n[2], beta);
  require(c.rank() <= 2, "operand 2 is {}, expected rank 2 or less", c.type().text());
  if (n.opset() < 7 && n.integer("broadcast", 0) == 0) {
    require(c.rank() == 2, "operand 2 is {}, expected rank 2 without broadcast", c.type().text());
  }
  return {y + c};
}

double stated_epsilon(NodeArgs& n, double standard) {
  const Index stash = n.integer("stash_type", 1);
  require(stash == 1, "stash_type {} is not supported, only 1 (FLOAT) is", stash);
  return n.real("epsilon", standard);
}

Values layer_normalization(NodeArgs& n) {
  n.expect(2, 3);
  const Value x = n[0];
  const Index axis = axis_of(n.integer("axis", -1), x.rank());
  const double epsilon = stated_epsilon(n, 1e-5F);
  const Value y = layer_norm_of(x, n[1], n.optional(2), axis, epsilon);
  if (!n.wants(1) && !n.wants(2)) return {y};
  require(x.dtype() == DType::f32 || x.dtype() == DType::f64, "results 1 and 2 of element type {} are not supported",
          name(x.dtype()));
  const std::vector<Index> axes = axes_from(axis, x.rank());
  const Value middle = mean(x, axes, true), apart = x - middle, variance = mean(apart * apart, axes, true);
  return {y, middle, rsqrt(variance + like(variance, epsilon))};
}

// (x - mean) / (root of the variance + 1e-9), over the batch and all places of a channel unless told otherwise.
Values mean_variance_normalization(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = widen(n[0]);
  const std::vector<Index> axes = n.integers("axes").value_or(std::vector<Index>{0, 2, 3});
  const Value apart = x - mean(x, axes, true), spread = sqrt(mean(apart * apart, axes, true));
  return {cast(apart / (spread + like(spread, 1e-9)), n[0].dtype())};
}

Values rms_normalization(NodeArgs& n) {
  n.expect(2, 2);
  const Index axis = axis_of(n.integer("axis", -1), n[0].rank());
  return {rms_norm_of(n[0], n[1], axis, stated_epsilon(n, 1e-5F))};
}

}  // namespace

OperatorRows product_rows() {
  static constexpr OperatorRow rows[] = {
      {"MatMul", 1, matmul_operator},
      {"Gemm", 1, gemm},
      {"LayerNormalization", 17, layer_normalization},
      {"MeanVarianceNormalization", 9, mean_variance_normalization},
      {"RMSNormalization", 23, rms_normalization},
      {"SimplifiedLayerNormalization", 1, rms_normalization},
  };
  return rows;
}

}  // namespace rlx::onnx
