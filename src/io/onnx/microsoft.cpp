// Operators of the domain com.microsoft that optimised exports hold.
#include "core/error.h"
#include "io/onnx/importer.h"
#include "io/onnx/norms.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

Values gelu_exact(NodeArgs& n) {
  n.expect(1, 1);
  return {gelu(n[0])};
}

Values bias_gelu(NodeArgs& n) {
  n.expect(2, 2);
  return {gelu(n[0] + n[1])};
}

Values fast_gelu(NodeArgs& n) {
  n.expect(1, 2);
  return {gelu_tanh(n.has(1) ? n[0] + n[1] : n[0])};
}

Values quick_gelu(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  return {x * sigmoid(like(x, n.real("alpha", 1.702F)) * x)};
}

// Result 3 is the sum that is normalised.
Values skip_layer_norm(NodeArgs& n) {
  n.expect(3, 5);
  require(!n.wants(1) && !n.wants(2), "results 1 and 2 are not supported");
  Value x = n[0] + n[1];
  if (n.has(4)) x = x + n[4];
  const Value y = layer_norm_of(x, n[2], n.optional(3), x.rank() - 1, n.real("epsilon", 1e-12F));
  return {y, y, y, x};
}

Values skip_rms_norm(NodeArgs& n) {
  n.expect(3, 4);
  require(!n.wants(1) && !n.wants(2), "results 1 and 2 are not supported");
  Value x = n[0] + n[1];
  if (n.has(3)) x = x + n[3];
  const Value y = rms_norm_of(x, n[2], x.rank() - 1, n.real("epsilon", 1e-12F));
  return {y, y, y, x};
}

Values fused_matmul(NodeArgs& n) {
  n.expect(2, 2);
  require(n.integer("transBatchA", 0) == 0 && n.integer("transBatchB", 0) == 0,
          "transBatchA and transBatchB are not 0");
  const double alpha = n.real("alpha", 1);
  const Value y = matmul(n[0], n[1], {n.integer("transA", 0) != 0, n.integer("transB", 0) != 0});
  return {alpha == 1 ? y : y * like(y, alpha)};
}

}  // namespace

OperatorRows microsoft_rows() {
  static constexpr OperatorRow rows[] = {
      {"Gelu", 1, gelu_exact},
      {"BiasGelu", 1, bias_gelu},
      {"FastGelu", 1, fast_gelu},
      {"QuickGelu", 1, quick_gelu},
      {"SkipLayerNormalization", 1, skip_layer_norm},
      {"SkipSimplifiedLayerNormalization", 1, skip_rms_norm},
      {"FusedMatMul", 1, fused_matmul},
  };
  return rows;
}

}  // namespace rlx::onnx
