// legalise: what a device refuses is expanded, down to what it takes, or reported, all of it at once.
#include "passes/legalise.h"

#include <gtest/gtest.h>

#include "conformance.h"
#include "core/error.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "ops/softmax/softmax.h"
#include "ops/topk/topk.h"
#include "ops/transpose/transpose.h"
#include "passes/match.h"
#include "probe_ops.h"
#include "random_graph.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

std::optional<Step> takes(const StepArgs& n) {
  StepBuilder s(std::string(n.node.op->name()));
  return s.run(1, 1, [](const Memory&, const DimValues&, Range) {});
}
std::optional<Step> takes_f32(const StepArgs& n) {
  return n.in[0].type.dtype == DType::f32 ? takes(n) : n.decline("only f32");
}
std::optional<Step> takes_rows(const StepArgs& n) {
  return n.in[0].type.rank() == 2 ? takes(n) : n.decline("only rank 2");
}
std::optional<Step> long_rows(const StepArgs& n) { return n.decline("only long rows"); }
std::optional<Step> too_small(const StepArgs& n) { return n.decline("too small"); }
std::optional<Step> takes_constant_divisor(const StepArgs& n) {
  return n.in[1].constant ? takes(n) : n.decline("the divisor is no constant");
}

MakerTable table(std::initializer_list<MakerRow> rows) {
  MakerTable t;
  for (const MakerRow& row : rows) t.add(row);
  return t;
}

struct Result {
  std::string text, error;
  std::vector<std::string> remarks;
};

Result run(const Graph& g, const MakerTable& makers) {
  const DeviceInfo device{.name = "toy", .accepts = accepts_by(makers)};
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  Result r;
  r.error = error_of([&] {
    const Pass pass = find_pass("legalise");
    r.text = print(run_passes(g, std::span(&pass, 1), context));
  });
  for (const Remark& remark : report.remarks) r.remarks.push_back(remark.text);
  return r;
}

Graph softmax_graph() {
  Builder b;
  return b.finish({softmax(b.input("x", {DType::f32, {2, 3}}))});
}

TEST(Legalise, WhatADeviceTakesStays) {
  const MakerTable makers = table({{&softmax_op, takes}});
  EXPECT_EQ(run(softmax_graph(), makers).text, print(softmax_graph()));
}

TEST(Legalise, WithoutADeviceNothingChanges) {
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  EXPECT_TRUE(same(legalise(softmax_graph(), context), softmax_graph()));
}

TEST(Legalise, AnOpBecomesItsDefinition) {
  const MakerTable makers = table({{&reduce_op, takes},
                                   {&match::op("sub"), takes},
                                   {&match::op("exp"), takes},
                                   {&match::op("div"), takes},
                                   {&softmax_op, takes_rows},
                                   {&softmax_op, long_rows}});
  Builder b;
  const Graph deep = b.finish({softmax(b.input("x", {DType::f32, {2, 3, 4}}))});
  const Result r = run(deep, makers);
  EXPECT_EQ(r.error, "");
  EXPECT_EQ(r.text.find("softmax"), std::string::npos);
  ASSERT_EQ(r.remarks.size(), 1u);
  EXPECT_EQ(r.remarks[0], "softmax expanded (only long rows; only rank 2): 1");
  EXPECT_EQ(run(softmax_graph(), makers).text, print(softmax_graph()));
}

TEST(Legalise, DefinitionsAreTakenApartInTurn) {
  Builder b;
  const Graph g = b.finish({hard_swish(b.input("x", {DType::f16, {4}}))});
  const MakerTable makers = table({{&match::op("cast"), takes},
                                   {&match::op("mul"), takes_f32},
                                   {&match::op("add"), takes_f32},
                                   {&match::op("div"), takes_constant_divisor},
                                   {&match::op("maximum"), takes_f32},
                                   {&match::op("minimum"), takes_f32}});
  const Result r = run(g, makers);
  EXPECT_EQ(r.error, "");
  EXPECT_NE(r.text.find("= mul "), std::string::npos) << r.text;
}

Graph region() {
  Builder body;
  const Value x = body.input("a", {DType::f32, {4}});
  const GraphPtr inner = std::make_shared<Graph>(body.finish({exp(neg(x))}));
  Builder b;
  const Value in = b.input("x", {DType::f32, {4}});
  return b.finish(b.emit(fusion_op(), Attrs(), std::span(&in, 1), {inner}));
}

TEST(Legalise, ARegionNobodyClaimsIsInlined) {
  const MakerTable whole = table({{&fusion_op(), takes}});
  EXPECT_EQ(run(region(), whole).text, print(region()));
  const MakerTable parts = table({{&match::op("exp"), takes}, {&match::op("neg"), takes}, {&fusion_op(), too_small}});
  const Result r = run(region(), parts);
  EXPECT_EQ(r.text, "rlx 1\ngraph(%x: f32[4]) {\n  %0 = neg %x : f32[4]\n  %1 = exp %0 : f32[4]\n  return %1\n}\n");
  ASSERT_EQ(r.remarks.size(), 1u);
  EXPECT_EQ(r.remarks[0], "regions inlined (too small): 1");
}

TEST(Legalise, OneErrorListsAllThatCannotRun) {
  Builder b;
  const Value x = b.input("x", {DType::f64, {4}});
  const Graph g = b.finish({exp(x), tanh(x), softmax(x)});
  const MakerTable makers = table({{&match::op("exp"), takes_f32}, {&match::op("div"), takes}, {&reduce_op, takes}});
  EXPECT_EQ(run(g, makers).error,
            "4 nodes of the graph cannot run on device toy:\n"
            "  %1 = exp(f64[4]): only f32\n"
            "  %2 = tanh(f64[4]): no kernel\n"
            "  %4 = sub(f64[4], f64[1]): no kernel\n"
            "  %5 = exp(f64[4]): only f32");
}

TEST(Legalise, ConstantsAndInputsNeedNoKernel) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  const Graph g = b.finish({x, constant(b, DType::f32, 3)});
  EXPECT_EQ(run(g, MakerTable()).error, "");
}

TEST(Legalise, ViewsNeedNoKernel) {
  Builder b;
  const Graph g = b.finish({transpose(b.input("x", {DType::f32, {2, 3}}), {1, 0})});
  EXPECT_EQ(run(g, MakerTable()).error, "");
}

// A device of primitives: the graph then is what its definitions say, bit by bit.
TEST(Legalise, RandomGraphsBecomeTheirDefinitions) {
  const DeviceInfo device{.accepts = [](const Graph& g, Id id, std::string*) {
    const OpDef& op = *g.nodes[id].op;
    return &op != &fusion_op() && !op.has_definition();
  }};
  const CompileOptions options;
  int expanded = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Graph before = random_graph(seed, {.states = false});
    Report report;
    PassContext context{device, options, report};
    const Graph after = legalise(before, context);
    verify(after);
    verify_interface(before, after);
    for (const Node& n : after.nodes) EXPECT_FALSE(n.op->has_definition() && !is_input(n)) << n.op->name();
    expanded += !report.remarks.empty();
    const DimEnv dims = random_dims(before, seed);
    const std::vector<Tensor> inputs = random_inputs(before, dims, seed);
    const std::vector<Tensor> want = evaluate(before, inputs, {true, dims}),
                              got = evaluate(after, inputs, {true, dims});
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Difference d = compare(got[i], want[i], exact);
      EXPECT_TRUE(d.ok) << "output " << i << ", " << d.where;
    }
  }
  EXPECT_GT(expanded, 100);
}

}  // namespace
}  // namespace rlx::test
