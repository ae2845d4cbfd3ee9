// log_sum_exp: gradients at infinities, which central differences cannot show.
#include "ops/log_sum_exp/log_sum_exp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "runtime/evaluate.h"

namespace rlx {
namespace {

TEST(LogSumExp, GradientAtInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  Builder b;
  const Value x = b.input("x", {DType::f32, {3, 2}});
  const Graph d = gradient(b.finish({log_sum_exp(x, {1})}));
  const NamedTensors inputs{{"x", Tensor::of<double>(DType::f32, {3, 2}, {-inf, -inf, -inf, 3, inf, 1})},
                            {"d.0", Tensor::of<double>(DType::f32, {3}, {1, 2, 1})}};
  const std::vector<double> dx = load<double>(evaluate(d, inputs)[0]);
  EXPECT_EQ(std::vector<double>(dx.begin(), dx.begin() + 4), (std::vector<double>{0, 0, 0, 2}));
  EXPECT_TRUE(std::isnan(dx[4]));
  EXPECT_EQ(dx[5], 0);
}

// The results 1000.69 and 1e6 + 0.69 are rounded; the weights must not follow them.
TEST(LogSumExp, GradientOfLargeElementsIsExact) {
  const std::vector<std::pair<DType, double>> large{{DType::f16, 1000}, {DType::bf16, 1024}, {DType::f32, 1e6}};
  for (const auto& [type, element] : large) {
    Builder b;
    const Value x = b.input("x", {type, {2}});
    const Graph d = gradient(b.finish({log_sum_exp(x, {0})}));
    const NamedTensors inputs{{"x", Tensor::of<double>(type, {2}, {element, element})},
                              {"d.0", Tensor::scalar(type, 1)}};
    EXPECT_EQ(load<double>(evaluate(d, inputs)[0]), (std::vector<double>{0.5, 0.5})) << name(type);
  }
}

}  // namespace
}  // namespace rlx
