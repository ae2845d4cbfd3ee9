// Passes take time in proportion to the graph.
#include <gtest/gtest.h>

#include <chrono>

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

double seconds(const Graph& g, std::size_t& left) {
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  use_reference(context);
  const auto begin = std::chrono::steady_clock::now();
  left = run_passes(g, default_passes(), context).nodes.size();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

TEST(BulkPasses, TimeGrowsWithTheGraph) {
  const Graph small = layers(10000), large = layers(100000);
  ASSERT_GE(large.nodes.size(), 100000u);
  std::size_t few = 0, many = 0;
  const double first = seconds(small, few), second = seconds(large, many);
  RecordProperty("seconds_for_100k", fmt::format("{:.2f}", second));
  EXPECT_LT(many, large.nodes.size() * 2 / 3);
  EXPECT_NEAR(static_cast<double>(many), 10 * static_cast<double>(few), 100);
  EXPECT_LT(second, 20 * first) << first << " s for " << small.nodes.size() << " nodes, " << second << " s for "
                                << large.nodes.size();
}

}  // namespace
}  // namespace rlx
