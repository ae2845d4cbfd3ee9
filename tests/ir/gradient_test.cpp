// The reverse-mode driver: shared operands, two results, definitions, missing gradients, inputs without path, second
// order.
#include "autodiff/gradient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "conformance.h"
#include "core/error.h"
#include "ir/outline.h"
#include "ir/verify.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

const TensorType scalar_type{DType::f64, {}};

Tensor number(double v) { return Tensor::scalar(DType::f64, v); }

// Gradients of one output for cotangent 1, in the order of the float inputs.
std::vector<double> slopes(const Graph& g, const std::vector<double>& at, const std::vector<double>& cotangents = {1}) {
  const Graph d = gradient(g);
  verify(d);
  std::vector<Tensor> in;
  for (const double v : at) in.push_back(number(v));
  for (const double v : cotangents) in.push_back(number(v));
  std::vector<double> out;
  for (const Tensor& t : evaluate(d, in)) out.push_back(load<double>(t)[0]);
  return out;
}

TEST(Gradient, SharedOperandsAddUp) {
  Builder b;
  const Value x = b.input("x", scalar_type);
  const Value sq = x * x;
  const Graph g = b.finish({sq * sq + sq + x});
  EXPECT_EQ(slopes(g, {3}), (std::vector<double>{4 * 27 + 6 + 1}));
}

TEST(Gradient, NamesAndOrderOfInputsAndOutputs) {
  Builder b;
  const Value x = b.input("x", {DType::f64, {Dim::symbol("S", 1, 9)}}), n = b.input("n", {DType::i64, {}}),
              w = b.input("w", scalar_type);
  const Graph d = gradient(b.finish({x * w, n}));
  verify(d);
  EXPECT_EQ(d.input_names, (std::vector<std::string>{"x", "n", "w", "d.0"})) << "integers have no cotangent";
  EXPECT_EQ(d.output_names, (std::vector<std::string>{"d.x", "d.w"}));
  EXPECT_EQ(d.type(d.outputs[0]).text(), "f64[S]");
  EXPECT_EQ(d.type(d.outputs[1]).text(), "f64[]");
}

TEST(Gradient, TakenNamesOfCotangents) {
  Builder b;
  const Value x = b.input("d.0", scalar_type), y = b.input("dd.0", scalar_type);
  const Graph d = gradient(b.finish({x * y}));
  EXPECT_EQ(d.input_names, (std::vector<std::string>{"d.0", "dd.0", "ddd.0"}));
}

TEST(Gradient, TwoResultsByRuleAndByDefinition) {
  for (const OpDef* op :
       {static_cast<const OpDef*>(&sum_and_product_op), static_cast<const OpDef*>(&sum_and_product_vjp_op)}) {
    Builder b;
    const Value x = b.input("x", scalar_type), y = b.input("y", scalar_type);
    const Values r = b.emit(*op, Attrs(), std::vector{x, y});
    const Graph both = b.finish({r[0], r[1]});
    EXPECT_EQ(slopes(both, {3, 5}, {10, 1}), (std::vector<double>{10 + 5, 10 + 3})) << op->name();
    EXPECT_EQ(slopes(both, {3, 5}, {0, 1}), (std::vector<double>{5, 3}));

    Builder one;  // the cotangent of the other result is absent
    const Value p = one.input("x", scalar_type), q = one.input("y", scalar_type);
    const Graph product = one.finish({one.emit(*op, Attrs(), std::vector{p, q})[1]});
    EXPECT_EQ(slopes(product, {3, 5}), (std::vector<double>{5, 3}));

    Builder twice;  // one value as both operands
    const Value z = twice.input("z", scalar_type);
    const Values s = twice.emit(*op, Attrs(), std::vector{z, z});
    EXPECT_EQ(slopes(twice.finish({s[0] + s[1]}), {3}), (std::vector<double>{2 + 6}));
  }
}

TEST(Gradient, ADefinitionThatIsItsOperand) {
  Builder b;
  const Value x = b.input("x", scalar_type);
  const Graph g = b.finish({b.emit_one(knobs_op, KnobAttrs{}, {x * x})});
  EXPECT_EQ(slopes(g, {3}), (std::vector<double>{6}));
}

TEST(Gradient, FusionsThroughTheirBodies) {
  Builder b;
  const Value x = b.input("x", scalar_type), y = b.input("y", scalar_type);
  const Value p = x * y, e = p + x, q = e * e;
  const Graph g = b.finish({q});
  const Graph o = outline(g, std::vector<Id>{0, 1, 4, 4, 4});
  EXPECT_EQ(slopes(o, {3, 5}), slopes(g, {3, 5}));
  EXPECT_EQ(slopes(g, {3, 5}), (std::vector<double>{2 * 18 * 6, 2 * 18 * 3}));
}

TEST(Gradient, AnOpWithoutGradientIsAnError) {
  Builder b;
  const Value x = b.input("x", {DType::f64, {4}}), y = b.input("y", {DType::f64, {4}});
  const Values h = b.emit(halves_op, Attrs(AxisAttrs{0}), std::vector{x});
  const Graph g = b.finish({h[0] + h[1], y});
  EXPECT_EQ(error_of([&] { gradient(g); }), "node %2 = halves(f64[4]) has no gradient");

  Builder free;  // nothing flows through the op: no error
  const Value p = free.input("x", {DType::f64, {4}});
  free.emit(halves_op, Attrs(AxisAttrs{0}), std::vector{p});
  const Graph unused = free.finish({exp(p)});
  verify(gradient(unused));
}

TEST(Gradient, InputsWithoutPathGetZeros) {
  Builder b;
  const Value x = b.input("x", {DType::f64, {2}}), y = b.input("y", {DType::f64, {3}});
  const Graph g = b.finish({sign(y), x});
  const Graph d = gradient(g);
  verify(d);
  const std::vector<Tensor> out =
      evaluate(d, std::vector{Tensor(DType::f64, {2}), Tensor(DType::f64, {3}), Tensor(DType::f64, {3}),
                              Tensor::of<double>(DType::f64, {2}, {7, 8})});
  EXPECT_EQ(load<double>(out[0]), (std::vector<double>{7, 8})) << "an input that is an output";
  EXPECT_EQ(load<double>(out[1]), (std::vector<double>{0, 0, 0})) << "a flat function";
}

TEST(Gradient, EncodedInputsAreFrozen) {
  Builder b;
  const Value w = b.input("w", TensorType(DType::f32, {2, 64}, q4_0, 1)), x = b.input("x", {DType::f32, {2, 64}});
  const Graph g = b.finish({x * b.emit_one(decode_op, NoAttrs{}, {w}), w});
  const Graph d = gradient(g);
  verify(d);
  EXPECT_EQ(d.input_names, (std::vector<std::string>{"w", "x", "d.0"}));
  EXPECT_EQ(d.output_names, (std::vector<std::string>{"d.x"}));
  const Tensor data = encode_q4_0({2, 64}, 0.5, 7),
               ones = Tensor::of<double>(DType::f32, {2, 64}, std::vector<double>(128, 1));
  Builder plain;
  const Value v = plain.input("w", TensorType(DType::f32, {2, 64}, q4_0, 1));
  const Graph decode = plain.finish({plain.emit_one(decode_op, NoAttrs{}, {v})});
  EXPECT_TRUE(identical(evaluate(d, std::vector{data, ones, ones})[0], evaluate(decode, std::vector{data})[0]));
}

TEST(Gradient, ToInnerValuesAndThroughThem) {
  Builder b;
  const Value x = b.input("x", scalar_type), y = x * x, z = y * y;
  const Grads g =
      gradient(std::vector{z}, std::vector<std::optional<Value>>{constant(b, DType::f64, 1)}, std::vector{x, y});
  ASSERT_TRUE(g[0] && g[1]);
  const Graph d = b.finish({*g[0], *g[1]});
  const std::vector<Tensor> out = evaluate(d, std::vector{number(3)});
  EXPECT_EQ(load<double>(out[0])[0], 108);
  EXPECT_EQ(load<double>(out[1])[0], 18);
}

TEST(Gradient, AbsentCotangentsAndPaths) {
  Builder b;
  const Value x = b.input("x", scalar_type), y = b.input("y", scalar_type), z = exp(x);
  const Grads none = gradient(std::vector{z}, std::vector<std::optional<Value>>{std::nullopt}, std::vector{x});
  EXPECT_FALSE(none[0]);
  const Grads apart =
      gradient(std::vector{z}, std::vector<std::optional<Value>>{constant(b, DType::f64, 1)}, std::vector{y});
  EXPECT_FALSE(apart[0]);
  EXPECT_TRUE(gradient(std::vector{z}, std::vector<std::optional<Value>>{std::nullopt}, {}).empty());
  const Value single = constant(b, DType::f32, 1);
  EXPECT_EQ(error_of([&] { gradient(std::vector{z}, std::vector<std::optional<Value>>{single}, std::vector{x}); }),
            "output 0 is f64[], its cotangent f32[]");
  EXPECT_EQ(error_of([&] { gradient(std::vector{z}, std::vector<std::optional<Value>>{}, std::vector{x}); }),
            "1 outputs are given 0 cotangents");
  Builder stranger;
  const Value far = stranger.input("x", scalar_type);
  EXPECT_EQ(
      error_of([&] { gradient(std::vector{far}, std::vector<std::optional<Value>>{std::nullopt}, std::vector{x}); }),
      "a value of another graph, or none, is used as an operand");
}

TEST(Gradient, SecondOrder) {
  Builder b;
  const Value x = b.input("x", scalar_type), y = b.input("y", scalar_type);
  const Graph g = b.finish({x * x * x * y});  // d.x = 3 x^2 y c, d.y = x^3 c
  const Graph dd = gradient(gradient(g));
  verify(dd);
  // inputs x y d.0 | cotangents of d.x and d.y
  const std::vector<Tensor> out = evaluate(dd, std::vector{number(2), number(5), number(1), number(1), number(0)});
  EXPECT_EQ(load<double>(out[0])[0], 6 * 2 * 5);
  EXPECT_EQ(load<double>(out[1])[0], 3 * 4);
  EXPECT_EQ(load<double>(out[2])[0], 3 * 4 * 5);
}

TEST(Gradient, CentralDifferencesOfAMixedGraph) {
  const Dim s = Dim::symbol("S", 1, 9);
  Builder b;
  const Value x = b.input("x", {DType::f64, {s, 3}}), w = b.input("w", {DType::f64, {3}});
  const Value h = tanh(x * w), n = h / (sum(h * h, {-1}, true) + like(h, 1));
  const Graph g = b.finish({mean(n, {0}), sum(exp(n), {0, 1})});
  std::string where;
  const std::vector<Tensor> in{Tensor::of<double>(DType::f64, {2, 3}, {0.1, -0.4, 0.9, 1.2, -0.3, 0.5}),
                               Tensor::of<double>(DType::f64, {3}, {0.7, -1.1, 0.4})};
  EXPECT_LE(gradient_error(g, in, {}, where), 1e-6) << where;
}

TEST(Gradient, ChecksOfTheGraphStay) {
  const Dim s = Dim::symbol("S", 2, 9), t = Dim::symbol("T", 2, 9);
  Builder b;
  const Value x = b.input("x", {DType::f64, {s}}), y = b.input("y", {DType::f64, {t}});
  const Graph d = gradient(b.finish({x * y}));
  verify(d);
  EXPECT_FALSE(d.checks.empty());
}

}  // namespace
}  // namespace rlx::test
