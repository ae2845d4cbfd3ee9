// verify-numerics: passes that are wrong on purpose are named, right ones pass.
#include "passes/verify_numerics.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ir/rewrite.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "passes/match.h"
#include "probe_ops.h"
#include "runtime/pass_evaluator.h"

namespace rlx::test {
namespace {

// Every `from` becomes a `to`.
Graph exchange(const Graph& g, const char* from, const char* to) {
  return rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    if (g.nodes[id].op != &match::op(from)) return {};
    return r.builder().emit(match::op(to), Attrs(), r.operands(id));
  });
}

Graph sample() {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 0, 8), 3}}), s = b.input("s", {DType::f32, {3}});
  b.state("total", s, s + constant(b, DType::f32, 1));
  const Value y[] = {exp(x) - x, relu(x)};
  return b.finish(y, {"", "kept"});
}

std::string run(const Graph& g, std::vector<Pass> passes, Report& report) {
  const DeviceInfo device;
  CompileOptions options;
  options.verify_numerics = true;
  PassContext context{device, options, report};
  use_reference(context);
  passes.insert(passes.begin(), find_pass("simplify-algebra"));
  return internal_error_of([&] { run_passes(g, passes, context); });
}

std::string run(const Graph& g, const Pass& pass) {
  Report report;
  return run(g, {pass}, report);
}

TEST(VerifyNumerics, RightPassesPass) {
  Report report;
  EXPECT_EQ(run(sample(), {find_pass("drop-dead")}, report), "");
  EXPECT_EQ(report.timings.size(), 2u);
  for (const Remark& r : report.remarks) EXPECT_EQ(r.text.find("not compared"), std::string::npos) << r.text;
}

TEST(VerifyNumerics, NamesTheGuiltyPassAndOutput) {
  const Pass wrong{"swap-operators", "", [](const Graph& g, PassContext&) { return exchange(g, "sub", "add"); }};
  const std::string said = run(sample(), wrong);
  EXPECT_NE(said.find("pass swap-operators changes output 0: element 0 is "), std::string::npos) << said;
  EXPECT_NE(said.find("with N = 3"), std::string::npos) << said;
}

TEST(VerifyNumerics, NamesAnOutputByItsName) {
  const Pass wrong{"forget-relu", "", [](const Graph& g, PassContext&) { return exchange(g, "relu", "abs"); }};
  EXPECT_NE(run(sample(), wrong).find("changes output kept: "), std::string::npos);
}

TEST(VerifyNumerics, StatesAreResults) {
  const Pass wrong{"break-state", "", [](const Graph& g, PassContext&) { return exchange(g, "add", "mul"); }};
  EXPECT_NE(run(sample(), wrong).find("pass break-state changes state total: "), std::string::npos);
}

TEST(VerifyNumerics, ZeroesAreToldApartUnlessThePassHasATolerance) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {64}});
  const Graph g = b.finish({neg(x)});
  const auto subtract = [](const Graph& from, PassContext&) {
    return rewrite(from, [](Rewriter& r, Id id) -> std::optional<Values> {
      const Value v = r.operands(id)[0];
      return Values{like(v, 0) - v};
    });
  };
  EXPECT_NE(run(g, {"subtract-from-zero", "", subtract}).find("element"), std::string::npos);
  EXPECT_EQ(run(g, {"subtract-from-zero", "", subtract, 1e-6}), "");
}

TEST(VerifyNumerics, ToleranceIsRelativeToTheLargestMagnitude) {
  Builder b;
  const Graph g = b.finish({exp(b.input("x", {DType::f32, {64}}))});
  const auto scale = [](const Graph& from, PassContext&) {
    return rewrite(from, [](Rewriter& r, Id id) -> std::optional<Values> {
      const Value y = exp(r.operands(id)[0]);
      return Values{y * like(y, 1.00001)};
    });
  };
  EXPECT_EQ(run(g, {"scale", "", scale, 1e-4}), "");
  EXPECT_NE(run(g, {"scale", "", scale, 1e-7}), "");
}

TEST(VerifyNumerics, AGraphThatFailsAfterwardsIsThePassesFault) {
  Builder b;
  const Value x = b.input("x", {DType::i32, {4}});
  const Graph g = b.finish({x + like(x, 1)});
  const Pass wrong{"divide", "", [](const Graph& from, PassContext&) {
                     return rewrite(from, [](Rewriter& r, Id id) -> std::optional<Values> {
                       if (r.from().nodes[id].operands.empty()) return {};
                       const Value v = r.operands(id)[0];
                       return Values{like(v, 1) / v};
                     });
                   }};
  const std::string said = run(g, wrong);
  EXPECT_NE(said.find("the graph that pass divide gives fails: "), std::string::npos) << said;
  EXPECT_NE(said.find("divided by 0"), std::string::npos) << said;
}

TEST(VerifyNumerics, AGraphThatFailsBeforeIsLeftOut) {
  Builder b;
  const Value x = b.input("x", {DType::i32, {4}});
  Report report;
  EXPECT_EQ(run(b.finish({like(x, 1) / x}), {}, report), "");
  ASSERT_GE(report.remarks.size(), 2u);
  EXPECT_NE(report.remarks[0].text.find("results are not compared: "), std::string::npos);
  EXPECT_EQ(report.remarks[1].text, "no results are compared: no small sizes suit the graph");
}

TEST(VerifyNumerics, BindingsSatisfyBoundsAndChecks) {
  Builder b;
  const Dim n = Dim::symbol("N", 0, 8), m = Dim::symbol("M", 4, 40), k = Dim::symbol("K", 0, 40);
  b.input("x", {DType::f32, {n, m, k}});
  b.check(k, n + m, "sum");
  const Graph g = b.finish({b.input("y", {DType::f32, {}})});
  const std::vector<DimEnv> found = small_bindings(g);
  ASSERT_FALSE(found.empty());
  for (const DimEnv& dims : found) EXPECT_EQ(dims.at("K"), dims.at("N") + dims.at("M"));

  Builder free;
  free.input("x", {DType::f32, {n, m}});
  const Graph h = free.finish({free.input("y", {DType::f32, {}})});
  EXPECT_EQ(small_bindings(h), (std::vector<DimEnv>{{{"M", 4}, {"N", 2}}, {{"M", 4}, {"N", 0}}, {{"M", 4}, {"N", 3}}}));
}

TEST(VerifyNumerics, NeedsAnEvaluator) {
  const DeviceInfo device;
  CompileOptions options;
  options.verify_numerics = true;
  Report report;
  PassContext context{device, options, report};
  EXPECT_EQ(error_of([&] { run_passes(sample(), {}, context); }),
            "verify_numerics needs an evaluator of graphs, none is given");
}

}  // namespace
}  // namespace rlx::test
