// Pitfalls of normalisations and softmax that cases cannot express.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/gradient.h"
#include "conformance.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace rlx::test {
namespace {

void expect_near(const Tensor& got, const std::vector<double>& want, double bound) {
  const std::vector<double> y = load<double>(got);
  ASSERT_EQ(y.size(), want.size());
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], want[i], bound) << "element " << i;
}

TEST(Pitfalls, P32_VarianceOfRowsFarFromZero) {
  Builder g;
  const Value x = g.input("x", {DType::f32, {4}});
  const Graph forward = g.finish({layer_norm(x, {-1, 1e-5})});
  const std::vector<Tensor> in{Tensor::of<double>(DType::f32, {4}, {10000, 10001, 10002, 10003})};
  for (const bool definition : {false, true}) {
    expect_near(evaluate(forward, in, {definition, {}})[0], {-1.34164, -0.44721, 0.44721, 1.34164}, 1e-5);
  }
  // The gradient: of the row without its 10000, which is exact in f32 as well.
  const std::vector<double> dy{1, 0, -2, 0.5};
  const std::vector<Tensor> far{in[0], Tensor::of<double>(DType::f32, {4}, dy)};
  const std::vector<Tensor> near{Tensor::of<double>(DType::f32, {4}, {0, 1, 2, 3}), far[1]};
  const Graph backward = gradient(forward);
  expect_near(evaluate(backward, far)[0], load<double>(evaluate(backward, near)[0]), 1e-6);
}

TEST(Pitfalls, P43_RmsNormInputGradient) {
  Builder g;
  const Value x = g.input("x", {DType::f64, {2}}), gamma = g.input("gamma", {DType::f64, {2}});
  const Graph backward = gradient(g.finish({rms_norm(x, gamma, {-1, 0})}));
  const std::vector<Tensor> in{Tensor::of<double>(DType::f64, {2}, {1, 2}), Tensor::of<double>(DType::f64, {2}, {1, 1}),
                               Tensor::of<double>(DType::f64, {2}, {1, 0})};
  const std::vector<Tensor> grads = evaluate(backward, in);
  expect_near(grads[0], {0.505964, -0.252982}, 1e-6);
  expect_near(grads[1], {1 / std::sqrt(2.5), 0}, 1e-12);
}

TEST(Pitfalls, P37_R21_SoftmaxOverAnInnerAxis) {
  Builder g;
  const Value x = g.input("x", {DType::f64, {2, 3, 4}});
  const Value moved = transpose(softmax(transpose(x, {0, 2, 1}), -1), {0, 2, 1});
  const Graph forward = g.finish({softmax(x, 1), moved});
  const std::vector<Tensor> in{fill(CaseInput(DType::f64, {2, 3, 4}).range(-200, 200), {}, 1)};
  const std::vector<Tensor> out = evaluate(forward, in);
  expect_near(out[0], load<double>(out[1]), 0);
  const std::vector<double> y = load<double>(out[0]);
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t c = 0; c < 4; ++c) EXPECT_NEAR(y[b * 12 + c] + y[b * 12 + 4 + c] + y[b * 12 + 8 + c], 1, 1e-15);
  }
}

TEST(Pitfalls, R21_LayerNormOnAnInnerAxisAlone) {
  Builder g;
  const Value x = g.input("x", {DType::f64, {2, 2, 3}});
  const Graph forward = g.finish({transpose(layer_norm(transpose(x, {0, 2, 1}), {-1, 0}), {0, 2, 1})});
  const std::vector<Tensor> in{Tensor::of<double>(DType::f64, {2, 2, 3}, {0, 1, 9, 2, 5, 1, 7, 7, 0, 3, 8, 4})};
  // Pairs along axis 1 become -1 and 1, the smaller first.
  expect_near(evaluate(forward, in)[0], {-1, -1, 1, 1, 1, -1, 1, -1, -1, -1, 1, 1}, 1e-12);
}

}  // namespace
}  // namespace rlx::test
