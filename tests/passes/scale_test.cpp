// All passes on a large graph.
#include <gtest/gtest.h>

#include "ir/builder.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"
#include "passes/pass.h"
#include "runtime/pass_evaluator.h"

namespace rlx {
namespace {

// Layers of what passes work on; about `nodes` nodes that stay and as many that go.
Graph layers(int nodes) {
  Builder b;
  const Dim n = Dim::symbol("N", 1, 64);
  Value x = b.input("x", {DType::f32, {n, 4, 4}});
  for (int i = 0; i < nodes / 10; ++i) {
    const Value number = constant(b, DType::f32, 1.5 + i) * constant(b, DType::f32, 2);
    x = tanh(x * number + like(x, -0.0));
    x = transpose_last(relu(transpose_last(x)) * like(x, 1));
    x = reshape(gelu(reshape(x, {n * 4, 4})), {n, 4, 4});
    x = x + matmul(x, transpose_last(exp(cast(cast(x, DType::f64), DType::f32))));
  }
  return b.finish({x});
}

std::size_t nodes_left(const Graph& g) {
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  use_reference(context);
  return run_passes(g, default_passes(), context).nodes.size();
}

// How the time grows is a figure of bench/linear.
TEST(BulkPasses, LargeGraphsAreSimplifiedAsSmallOnes) {
  const Graph small = layers(10000), large = layers(100000);
  ASSERT_GE(large.nodes.size(), 100000u);
  const std::size_t few = nodes_left(small), many = nodes_left(large);
  EXPECT_LT(many, large.nodes.size() * 2 / 3);
  EXPECT_NEAR(static_cast<double>(many), 10 * static_cast<double>(few), 100);
}

}  // namespace
}  // namespace rlx
