// Random graphs optimised against the same graphs only made fit for the device: the same bits where every pass that ran
// is exact.
#include <gtest/gtest.h>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "ir/print.h"
#include "random_graph.h"

namespace rlx::test {
namespace {

// Without the passes that may round otherwise; `plain`: without all but legalise.
CompileOptions options(bool plain) {
  CompileOptions o;
  for (const Pass& p : default_passes()) {
    if (p.name != "legalise" && (plain || p.tolerance > 0)) o.disabled.emplace(p.name);
  }
  return o;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return compare(a, b, exact).ok;  // NaN equals NaN
}

void check_all(unsigned first, unsigned count) {
  const Session session = cpu_session({.threads = 2});
  int compared = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    const Graph g = random_graph(seed, {.states = false});
    const Executable fast = session.compile(g, options(false), {.poison = true, .check = true}),
                     plain = session.compile(g, options(true));
    for (unsigned k = 0; k < 2; ++k) {
      const DimEnv dims = random_dims(g, seed + k);
      const std::vector<Tensor> inputs = random_inputs(g, dims, seed + k, k == 1);
      NamedTensors named;
      for (std::size_t i = 0; i < inputs.size(); ++i) named.emplace(g.input_names[i], inputs[i]);
      const std::vector<Tensor> got = fast.run(named, {.dims = &dims}), want = plain.run(named, {.dims = &dims});
      for (std::size_t i = 0; i < want.size(); ++i) {
        ++compared;
        ASSERT_TRUE(same_bits(got[i], want[i]))
            << "seed " << seed << ", output " << i << ": " << compare(got[i], want[i], exact).where << "\n"
            << print(g);
      }
    }
  }
  testing::Test::RecordProperty("graphs", static_cast<int>(count));
  EXPECT_GT(compared, static_cast<int>(count));
}

TEST(Optimised, HasTheBitsOfTheUnoptimised) { check_all(1, 150); }
TEST(BulkOptimised, HasTheBitsOfTheUnoptimised) { check_all(20000, 2000); }

}  // namespace
}  // namespace rlx::test
