// Random graphs, optimised and compiled for the CPU, against the reference evaluator on the graph as it was.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "core/error.h"
#include "ir/print.h"
#include "nudge.h"
#include "random_graph.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

// Rounding of intermediate values moves a result as far as rounding of inputs and constants does, times the depth of
// the graph; where that is much, as behind tan or a comparison, a result says little and may differ much.
void check(const Session& session, unsigned seed, int& compared, std::vector<std::string>& wrong) {
  const Graph g = random_graph(seed, {.states = false});
  const Executable exe = session.compile(g);
  for (unsigned k = 0; k < 2; ++k) {
    const DimEnv dims = random_dims(g, seed + k);
    const std::vector<Tensor> inputs = random_inputs(g, dims, seed + k, k == 1);
    NamedTensors named;
    for (std::size_t i = 0; i < inputs.size(); ++i) named.emplace(g.input_names[i], inputs[i]);
    const std::vector<Tensor> want = evaluate(g, inputs, {false, dims}),
                              near = evaluate(nudged(g), nudged(inputs), {false, dims});
    const std::vector<Tensor> got = exe.run(named, {.dims = &dims});
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Difference spread = compare(near[i], want[i], relative(1e-2));
      if (!spread.ok) continue;
      ++compared;
      const Difference d = compare(got[i], want[i], relative(1e-4 + 1000 * spread.worst));
      if (d.ok) continue;
      wrong.push_back(fmt::format("seed {}, output {}, {}\n{}", seed, i, d.where, print(g)));
      return;  // one edge is seen by all that follows from it
    }
  }
}

// Few graphs stand at an edge that the nudge does not show: sqrt of what is 0 but for rounding, 1 / max(0, -0).
void check_all(unsigned first, unsigned count) {
  const Session session = cpu_session({.threads = 2});
  int compared = 0;
  std::vector<std::string> wrong;
  for (unsigned seed = first; seed < first + count; ++seed) {
    try {
      check(session, seed, compared, wrong);
    } catch (const std::exception& e) {
      FAIL() << "seed " << seed << ": " << e.what() << "\n" << print(random_graph(seed, {.states = false}));
    }
  }
  EXPECT_GT(compared, static_cast<int>(5 * count)) << "most results are compared";
  std::string all;
  for (const std::string& w : wrong) all += w.substr(0, w.find('\n') + 1);
  EXPECT_LE(wrong.size(), static_cast<std::size_t>(compared) / 10000) << all << (wrong.empty() ? "" : wrong[0]);
}

TEST(RandomPrograms, GiveWhatTheReferenceGives) { check_all(2000, 150); }
TEST(BulkRandomPrograms, GiveWhatTheReferenceGives) { check_all(10000, 4000); }

}  // namespace
}  // namespace rlx::test
