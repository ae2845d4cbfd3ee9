// fold-constants where text does not reach: values, large constants, evaluators.
#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"
#include "passes/match.h"
#include "passes/passes.h"
#include "runtime/pass_evaluator.h"

namespace rlx {
namespace {

Graph folded(const Graph& g, NodeEvaluator evaluator = {}, Report* report = nullptr) {
  const DeviceInfo device;
  const CompileOptions options;
  Report unread;
  PassContext context{device, options, report ? *report : unread};
  use_reference(context);
  if (evaluator) context.evaluate_node = std::move(evaluator);
  return fold_constants(g, context);
}

// The tensor that the only output is after folding.
Tensor value_of(const Graph& g) {
  const Graph r = folded(g);
  EXPECT_EQ(r.nodes.size(), 1u);
  const Tensor* t = match::constant_of(r.nodes[r.outputs[0].node]);
  require(t != nullptr, "the output is not folded");
  return *t;
}

TEST(FoldConstants, R20_FoldedValuesAreThoseOfARun) {
  {
    Builder b;
    EXPECT_NEAR(load<double>(value_of(b.finish({gelu(constant(b, DType::f32, 1))})))[0], 0.8413447460685429, 1e-7);
  }
  {
    Builder b;  // beyond 2^53, where f64 would round
    const Value x = constant(b, Tensor::of<std::int64_t>(DType::i64, {}, {9007199254740993}));
    const Value y = constant(b, Tensor::of<std::int64_t>(DType::i64, {}, {2}));
    EXPECT_EQ(load<std::int64_t>(value_of(b.finish({x + y})))[0], 9007199254740995);
  }
  {
    Builder b;  // not through f32
    EXPECT_EQ(load<double>(value_of(b.finish({constant(b, DType::f64, 0.1) * constant(b, DType::f64, 3)})))[0],
              0.1 * 3);
  }
  {
    Builder b;
    const Value x = constant(b, DType::u8, 200);
    EXPECT_EQ(load<double>(value_of(b.finish({x + x})))[0], 144);
  }
}

TEST(FoldConstants, AWeightThatAMatmulReadsTransposedStays) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2, 256}});
  const Graph g = b.finish({matmul(x, transpose_last(constant(b, Tensor(DType::f32, {128, 256}))))});
  EXPECT_TRUE(same(folded(g), g));
  Builder c;
  const Graph h = c.finish({softmax(transpose_last(constant(c, Tensor(DType::f32, {128, 256}))))});
  EXPECT_EQ(folded(h).nodes.size(), 1u);
}

TEST(FoldConstants, LargeResultsOnlyFromLargerOperands) {
  Builder b;
  const Value big = constant(b, Tensor(DType::f64, {4, 1 << 20}));  // 32 MiB
  const Value y[] = {cast(big, DType::f32), exp(big), sum(exp(big), {1})};
  const Graph r = folded(b.finish(y));
  const auto folded_to_constant = [&](std::size_t i) {
    return match::constant_of(r.nodes[r.outputs[i].node]) != nullptr;
  };
  EXPECT_TRUE(folded_to_constant(0)) << "half the size of its operand";
  EXPECT_TRUE(folded_to_constant(1)) << "as large as its operand";
  EXPECT_TRUE(folded_to_constant(2));
}

TEST(FoldConstants, TheEvaluatorOfTheContextIsUsed) {
  Builder b;
  const Value one = constant(b, DType::f32, 1);
  const Graph g = b.finish({exp(exp(one))});
  int calls = 0;
  const Graph r = folded(g, [&](const Node& n, std::span<const Tensor> in) {
    ++calls;
    EXPECT_EQ(n.op->name(), "exp");
    return std::vector<Tensor>{Tensor::scalar(DType::f32, load<double>(in[0])[0] + 10)};
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(load<double>(*match::constant_of(r.nodes[r.outputs[0].node]))[0], 21);
}

TEST(FoldConstants, WithoutAnEvaluatorReferencesAreUsed) {
  Builder b;
  const Graph g = b.finish({neg(constant(b, DType::f32, 1))});
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  const Graph r = fold_constants(g, context);
  EXPECT_EQ(load<double>(*match::constant_of(r.nodes[r.outputs[0].node]))[0], -1);
}

TEST(FoldConstants, ANodeThatFailsLetsOthersFold) {
  Builder b;
  const Value zero = constant(b, DType::i32, 0);
  const Value bad = constant(b, DType::i32, 1) / zero;
  Report report;
  const Graph r = folded(b.finish({bad, bad + zero, neg(zero)}), {}, &report);
  EXPECT_EQ(match::constant_of(r.nodes[r.outputs[0].node]), nullptr);
  EXPECT_EQ(match::constant_of(r.nodes[r.outputs[1].node]), nullptr);
  EXPECT_NE(match::constant_of(r.nodes[r.outputs[2].node]), nullptr);
  ASSERT_FALSE(report.remarks.empty());
  EXPECT_NE(report.remarks[0].text.find("integer 1 is divided by 0"), std::string::npos) << report.remarks[0].text;
}

}  // namespace
}  // namespace rlx
