// Derivatives at 0 and at the edges of the number range, where stable forms have inner kinks or overflow on the way.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "all_ops.h"
#include "autodiff/gradient.h"
#include "ir/rewrite.h"
#include "passes/define.h"
#include "runtime/evaluate.h"

namespace rlx {
namespace {

// The n-th derivative of f at x, by differentiating n times.
double derivative(Value (*f)(Value), double at, int order, DType type = DType::f64) {
  Builder b;
  const Value x = b.input("x", {type, {}});
  Value y = f(x);
  for (int i = 0; i < order; ++i) y = *gradient({&y, 1}, std::vector<std::optional<Value>>{like(y, 1)}, {&x, 1})[0];
  const Graph g = b.finish({y});
  const Tensor t[] = {Tensor::scalar(type, at)};
  return load<double>(evaluate(g, t)[0])[0];
}

TEST(Kinks, SecondDerivativesAtZero) {
  EXPECT_NEAR(derivative(sigmoid, 0, 2), 0, 1e-15);
  EXPECT_NEAR(derivative(silu, 0, 2), 0.5, 1e-15);
  EXPECT_NEAR(derivative(gelu, 0, 2), std::sqrt(2 / std::numbers::pi), 1e-15);
  EXPECT_NEAR(derivative(gelu_tanh, 0, 2), std::sqrt(2 / std::numbers::pi), 1e-15);
  EXPECT_NEAR(derivative(softplus, 0, 2), 0.25, 1e-15);
  EXPECT_NEAR(derivative(log_sigmoid, 0, 2), -0.25, 1e-15);
  EXPECT_NEAR(derivative(elu, 0, 2), 1, 1e-15);
  EXPECT_NEAR(derivative(elu, 0, 1), 1, 1e-15);
  EXPECT_NEAR(derivative(relu, 0, 1), 0, 1e-15);
  EXPECT_NEAR(derivative(mish, 0, 3), -0.096, 1e-12);
  EXPECT_NEAR(derivative(tanh, 0, 2), 0, 1e-15);
}

TEST(Kinks, DefinitionsHaveTheSameDerivativesAtZero) {
  using Function = Value (*)(Value);
  const std::pair<Function, double> rows[] = {{silu, 0.5}, {gelu, 0.5}, {gelu_tanh, 0.5},   {relu, 0},
                                              {elu, 1},    {mish, 0.6}, {log_sigmoid, 0.5}, {softsign, 1}};
  for (const auto& [f, want] : rows) {
    Builder b;
    const Value x = b.input("x", {DType::f64, {}});
    const Node n = b.graph().nodes[f(x).at.node];
    const Value y = define(*n.op, n.attrs, {&x, 1})[0];
    const Value d = *gradient({&y, 1}, std::vector<std::optional<Value>>{like(y, 1)}, {&x, 1})[0];
    const Graph g = b.finish({d});
    const Tensor zero[] = {Tensor::scalar(DType::f64, 0)};
    EXPECT_NEAR(load<double>(evaluate(g, zero)[0])[0], want, 1e-15) << n.op->name();
  }
}

TEST(Kinks, LargeArguments) {
  for (const double x : {300.0, 1000.0, 60000.0}) {
    EXPECT_EQ(derivative(gelu_tanh, x, 1, DType::f16), 1) << x;
    EXPECT_EQ(derivative(gelu_tanh, -x, 1, DType::f16), 0) << x;
  }
  EXPECT_EQ(derivative(gelu_tanh, 1e30, 1, DType::f32), 1);
  EXPECT_EQ(derivative(gelu_tanh, -1e30, 1, DType::f32), 0);
  EXPECT_NEAR(derivative(atan, 300, 1, DType::f16), 1.1110e-5, 6e-8);
  EXPECT_NEAR(derivative(softsign, 300, 1, DType::f16), 1.1037e-5, 6e-8);
}

TEST(Kinks, HalfReductionsShareInF32) {
  Builder b;
  const Dim n = Dim::symbol("N", 1, 1 << 20);
  const Value x = b.input("x", {DType::f16, {n}});
  const Value m = mean(x, {0}), top = max(x, {0});
  const auto one = [&](Value v, double by) { return std::vector<std::optional<Value>>{like(v, by)}; };
  const Value dm = *gradient({&m, 1}, one(m, 1024), {&x, 1})[0], dt = *gradient({&top, 1}, one(top, 1), {&x, 1})[0];
  const Graph g = b.finish({dm, dt});
  const Tensor t[] = {Tensor(DType::f16, {100000})};
  const std::vector<Tensor> r = evaluate(g, t);
  EXPECT_NEAR(load<double>(r[0])[0], 0.01024, 1e-5);
  EXPECT_NEAR(load<double>(r[1])[0], 1e-5, 6e-8);
}

TEST(Kinks, PowersOfZero) {
  const auto square = [](Value x) { return pow(x, like(x, 2)); };
  const auto unit = [](Value x) { return pow(x, like(x, 0)); };
  EXPECT_EQ(derivative(square, 0, 2), 2);
  EXPECT_EQ(derivative(unit, 0, 1), 0);
  EXPECT_EQ(derivative(unit, 0, 2), 0);
}

TEST(Kinks, ExtremaWithNaNTreatBothOperandsAlike) {
  for (const auto f : {maximum, minimum}) {
    Builder b;
    const Value x = b.input("x", {DType::f64, {2}}), y = b.input("y", {DType::f64, {2}}), z = f(x, y);
    const Value wrt[] = {x, y};
    const Grads d = gradient({&z, 1}, std::vector<std::optional<Value>>{broadcast(like(z, 1), z.type().dims)}, wrt);
    const Graph g = b.finish({*d[0], *d[1]});
    const double nan = std::nan("");
    const Tensor t[] = {Tensor::of<double>(DType::f64, {2}, {nan, 1}), Tensor::of<double>(DType::f64, {2}, {1, nan})};
    const std::vector<Tensor> r = evaluate(g, t);
    EXPECT_EQ(load<double>(r[0]), (std::vector<double>{1, 1}));
    EXPECT_EQ(load<double>(r[1]), (std::vector<double>{1, 1}));
  }
}

TEST(Kinks, TrackedElementsThatMayWrapAreForgotten) {
  Builder b;
  const Value k = constant(b, Tensor::of<std::int64_t>(DType::i32, {1}, {65536}));
  EXPECT_EQ(b.known(k * k), nullptr);
  ASSERT_NE(b.known(k + k), nullptr);
  EXPECT_EQ(b.known(k + k)->front(), Dim(131072));
  const Value x = b.input("x", {DType::f32, {3}});
  EXPECT_NO_THROW(gather(x, k * k));
}

}  // namespace
}  // namespace rlx
