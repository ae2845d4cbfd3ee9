// An op of a program that uses rlx: registered, read from text, evaluated and differentiated as the ops of rlx are.
#include <gtest/gtest.h>

#include "autodiff/gradient.h"
#include "core/error.h"
#include "ir/print.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "runtime/evaluate.h"

namespace {

using namespace rlx;

struct HuberAttrs {
  double delta = 1;  // where the parabola becomes a line
  static void fields(auto& a, auto&& f) { f("delta", a.delta); }
};

constinit const Op<HuberAttrs> huber_op{{
    .name = "huber",
    .doc = "x^2 / 2 up to |x| = `delta`, from there on the line that continues it.",
    .infer =
        [](const HuberAttrs& a, Types in) {
          require(in.size() == 1, "{} operands are given, expected 1", in.size());
          require(is_arithmetic_float(in[0].dtype), "x is {}, expected f64, f32, f16 or bf16", in[0].text());
          require(a.delta > 0, "delta is {}, expected a positive number", a.delta);
          return in[0];
        },
    .definition =
        [](const HuberAttrs& a, const DefineArgs& d) {
          const Value size = abs(d[0]), delta = like(size, a.delta);
          const Value line = delta * (size - like(size, a.delta / 2));
          return select(less(size, delta), like(size, 0.5) * size * size, line);
        },
}};

Value huber(Value x, double delta) { return x.builder->emit_one(huber_op, HuberAttrs{delta}, {x}); }

constexpr const char* text = R"(rlx 1
graph(%x: f32[4]) {
  %0 = huber %x {delta=2} : f32[4]
  return %0
}
)";

TEST(UserOp, IsReadFromTextAndEvaluated) {
  OpRegistry ops;
  ops.add(huber_op);
  const Graph g = parse(text, {.ops = &ops});
  EXPECT_EQ(print(g), text);
  const std::vector<Tensor> y = evaluate(g, {{"x", Tensor::of<double>(DType::f32, {4}, {0, 1, -2, 5})}});
  EXPECT_EQ(load<double>(y[0]), (std::vector<double>{0, 0.5, 2, 8}));
}

TEST(UserOp, HasTheGradientOfItsDefinition) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  const Graph g = b.finish({huber(x, 2)});
  const NamedTensors inputs{{"x", Tensor::of<double>(DType::f32, {4}, {0, 1, -1.5, -5})},
                            {"d.0", Tensor::of<double>(DType::f32, {4}, {1, 1, 1, 10})}};
  EXPECT_EQ(load<double>(evaluate(gradient(g), inputs)[0]), (std::vector<double>{0, 1, -1.5, -20}));
}

TEST(UserOp, IsUnknownToTheRegistryOfRlx) {
  EXPECT_THROW(
      {
        try {
          parse(text);
        } catch (const Error& e) {
          EXPECT_NE(std::string(e.what()).find("unknown op \"huber\""), std::string::npos) << e.what();
          throw;
        }
      },
      Error);
}

TEST(UserOp, DescribesItsAttributes) {
  const std::vector<AttrInfo> own = huber_op.describe_attrs(), reduce = reduce_op.describe_attrs();
  ASSERT_EQ(own.size(), 1U);
  EXPECT_EQ(own[0].name + ", " + own[0].kind + ", " + own[0].standard, "delta, number, 1");
  ASSERT_EQ(reduce.size(), 3U);
  EXPECT_EQ(reduce[0].kind + ", " + reduce[0].standard, "sum or mean or max or min or prod, sum");
  EXPECT_EQ(reduce[1].kind + ", " + reduce[1].standard, "list of integer, []");
  EXPECT_EQ(reduce[2].kind + ", " + reduce[2].standard, "bool, false");
}

TEST(UserOp, RefusesWhatItsShapeRuleRefuses) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  EXPECT_THROW(huber(x, 0), Error);
  OpRegistry ops;
  ops.add(huber_op);
  ops.add(huber_op);  // the same op again is no harm
  static constinit const Op<HuberAttrs> other{{.name = "softmax", .doc = "Not the one of rlx."}};
  EXPECT_THROW(ops.add(other), Error);
}

}  // namespace
