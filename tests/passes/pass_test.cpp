// The pass runner: order, verification, options, report; on graphs with two results, symbols, states and encoded types.
#include "passes/pass.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/broadcast/broadcast.h"
#include "ops/scalar/scalar.h"
#include "passes/define.h"

namespace rlx {
namespace {

static constexpr Plane planes[] = {{"blocks", 18}};
static constexpr Encoding q4{"q4_0", 32, planes};

struct HalvesAttrs {
  Index axis = 0;
  static void fields(auto& a, auto&& f) { f("axis", a.axis); }
};
constinit const Op<HalvesAttrs> halves_op{{
    .name = "halves",
    .doc = "Two results.",
    .infer = [](const HalvesAttrs& a, InferContext& c) -> std::vector<TensorType> {
      const TensorType t = c.in[0].with(a.axis, floordiv(c.in[0].dim(a.axis), 2));
      return {t, t};
    },
}};

Graph sample() {
  Builder b;
  const Dim batch = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 2, 512);
  const Value x = b.input("x", {DType::f32, {batch, s * 2}});
  b.input("w", TensorType(DType::f32, {s, 64}, q4, 1));
  const Value cache = b.input("cache", {DType::f32, {batch, s}});
  const Values h = b.emit(halves_op, Attrs(HalvesAttrs{1}), std::span(&x, 1));
  b.state("cache", cache, cache + h[0]);
  exp(h[1]);  // dead
  return b.finish({relu(h[1])});
}

std::vector<Pass> named(std::initializer_list<std::string_view> names) {
  std::vector<Pass> passes;
  for (const std::string_view name : names) passes.push_back(find_pass(name));
  return passes;
}

TEST(Passes, RunInOrderAndReport) {
  const DeviceInfo device;
  CompileOptions options;
  options.print_after.insert("drop-dead");
  options.disabled.insert("inline-bodies");  // rewriting leaves dead nodes out as well
  Report report;
  PassContext context{device, options, report};
  const Graph g = sample();
  const Graph r = run_passes(g, named({"inline-bodies", "drop-dead"}), context);
  EXPECT_EQ(r.nodes.size(), g.nodes.size() - 1);
  ASSERT_EQ(report.timings.size(), 1U);
  EXPECT_EQ(report.timings.back().nodes_after, r.nodes.size());
  ASSERT_EQ(report.remarks.size(), 2U);
  EXPECT_EQ(report.remarks[0].text, "1 nodes dropped");
  EXPECT_EQ(report.remarks[1].pass, "drop-dead");
  EXPECT_EQ(report.remarks[1].text, print(r));
  EXPECT_NE(report.remarks[1].text.find("%w: f32:q4_0@1[S,64]"), std::string::npos);
}

TEST(Passes, CanBeDisabledByName) {
  const DeviceInfo device;
  CompileOptions options;
  options.disabled = {"drop-dead", "inline-bodies"};
  Report report;
  PassContext context{device, options, report};
  const Graph g = sample();
  const std::vector<Pass> passes = named({"inline-bodies", "drop-dead"});
  EXPECT_TRUE(same(run_passes(g, passes, context), g));
  EXPECT_TRUE(report.timings.empty());
  options.disabled = {"drop-live"};
  try {
    run_passes(g, passes, context);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "unknown pass \"drop-live\", expected one of inline-bodies, drop-dead");
  }
}

TEST(Passes, ABrokenResultNamesThePass) {
  static constexpr Pass renaming[] = {{"rename-input", "", [](const Graph& g, PassContext&) {
                                         Graph r = g;
                                         r.input_names[0] = "y";
                                         return r;
                                       }}};
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  try {
    run_passes(sample(), renaming, context);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("pass rename-input broke the graph"), std::string::npos) << e.what();
  }
}

TEST(Define, HalfTypesWidenOnce) {
  Builder b;
  const Value x = b.input("x", {DType::f16, {3}});
  const Values made = define(*silu(x).builder->graph().nodes[silu(x).at.node].op, Attrs(), std::span(&x, 1));
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0].dtype(), DType::f16);
  const Graph g = b.finish(made);
  EXPECT_EQ(g.nodes[g.outputs[0].node].op->name(), "cast");
  int casts = 0;
  for (const Node& n : g.nodes) casts += n.op->name() == "cast";
  EXPECT_EQ(casts, 2);
}

TEST(Define, PrimitivesHaveNoDefinition) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {3}});
  const Value y = exp(x);
  EXPECT_THROW(define(*b.graph().nodes[y.at.node].op, Attrs(), std::span(&x, 1)), Error);
}

}  // namespace
}  // namespace rlx
