// Every pass, and the whole pipeline, on random graphs: the results of before, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "conformance.h"
#include "core/error.h"
#include "ir/print.h"
#include "passes/pass.h"
#include "random_graph.h"
#include "runtime/evaluate.h"
#include "runtime/pass_evaluator.h"

namespace rlx::test {
namespace {

std::vector<Tensor> results(const Graph& g, const std::vector<Tensor>& inputs, const DimEnv& dims) {
  std::vector<Tensor> all = evaluate(g, inputs, {false, dims});
  if (g.states.empty()) return all;
  NamedTensors named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named.emplace(g.input_names[i], inputs[i]);
  State state(g, dims);
  for (const StatePair& s : g.states) {
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      if (g.inputs[i] != s.input.node) continue;
      state.set(s.name, inputs[i]);
      named.erase(g.input_names[i]);
    }
  }
  evaluate(g, named, &state, {false, dims});
  for (const StatePair& s : g.states) all.push_back(state.at(s.name));
  return all;
}

// Where the graphs differ in what they give; empty: nowhere.
std::string difference(const Graph& before, const Graph& after, unsigned seed) {
  for (unsigned k = 0; k < 2; ++k) {
    const DimEnv dims = random_dims(before, seed + k);
    const std::vector<Tensor> inputs = random_inputs(before, dims, seed + k, k == 1);
    const std::vector<Tensor> want = results(before, inputs, dims), got = results(after, inputs, dims);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Difference d = compare(got[i], want[i], exact);
      if (!d.ok) return fmt::format("output {}: {}", i, d.where);
    }
  }
  return "";
}

void check(std::span<const Pass> passes, unsigned first, unsigned count) {
  int changed = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    const Graph before = random_graph(seed);
    const DeviceInfo device;
    const CompileOptions options;
    Report report;
    PassContext context{device, options, report};
    use_reference(context);
    try {
      const Graph after = run_passes(before, passes, context);
      changed += !same(before, after);
      // Where rounding may differ, a comparison or cast behind it may differ wholly: those passes have tests of their
      // own.
      const std::string where = passes[0].tolerance > 0 ? "" : difference(before, after, seed);
      if (!where.empty()) {
        FAIL() << "seed " << seed << ", pass " << passes[0].name << ", " << where << "\n"
               << print(before) << print(after);
      }
      const Graph again = run_passes(after, passes, context);
      EXPECT_TRUE(same(again, after)) << "seed " << seed << ", pass " << passes[0].name << " is not at rest\n"
                                      << print(after) << print(again);
    } catch (const std::exception& e) {
      FAIL() << "seed " << seed << ", pass " << passes[0].name << ": " << e.what() << "\n" << print(before);
    }
  }
  // Composites written out, which recognition and fusion look for, hardly occur in these graphs.
  constexpr std::string_view general[] = {"fold-constants", "simplify-algebra", "absorb-layout", "drop-dead"};
  const bool common = std::ranges::find(general, passes[0].name) != std::end(general);
  EXPECT_TRUE(changed > 0 || !common) << passes[0].name << " changes nothing";
}

TEST(RandomGraphs, EveryPassKeepsTheResults) {
  for (const Pass& p : all_passes()) {
    if (p.name != "inline-bodies") check(std::span(&p, 1), 1, 150);
  }
}

TEST(BulkRandomGraphs, EveryPassKeepsTheResults) {
  for (const Pass& p : all_passes()) {
    if (p.name != "inline-bodies") check(std::span(&p, 1), 1000, 2000);
  }
}

TEST(RandomGraphs, EqualSeedsGiveEqualGraphs) {
  for (unsigned seed = 1; seed < 20; ++seed) {
    ConstantSink a, b;
    EXPECT_EQ(print(random_graph(seed), &a), print(random_graph(seed), &b));
    const NamedTensors left = a.take(), right = b.take();
    for (const auto& [name, tensor] : left) EXPECT_TRUE(identical(tensor, right.at(name)));
  }
  EXPECT_NE(print(random_graph(7)), print(random_graph(8)));
}

TEST(RandomGraphs, HoldEveryOp) {
  std::map<std::string_view, int> ops;
  for (unsigned seed = 1; seed <= 1000; ++seed) {
    RandomGraphOptions options;
    options.found = seed % 10 == 0;
    for (const Node& n : random_graph(seed, options).nodes) ++ops[n.op->name()];
  }
  const OpRegistry registry;
  for (const OpDef* op : registry.all()) {
    const bool blocks = op->name() == "encode" || op->name() == "decode";  // no values of random graphs are encoded
    if (blocks) continue;
    EXPECT_GE(ops[op->name()], 3) << op->name();
  }
}

}  // namespace
}  // namespace rlx::test
