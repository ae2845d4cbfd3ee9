// Single ops against PyTorch and NumPy: cases of scripts/make_op_goldens, by the references and as programs of the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "core/error.h"
#include "io/npy.h"
#include "ir/print.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

using Archive = std::map<std::string, Tensor>;

std::string text_at(const Archive& a, const std::string& name) {
  const auto bytes = a.at(name + "/text").bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Results of f64 as those of the type that the op gives.
void expect_near(const Tensor& got, const Tensor& want, double allowed, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  if (!is_float(got.dtype())) {
    EXPECT_TRUE(identical(got, want)) << what;
    return;
  }
  const std::vector<double> a = load<double>(got), b = load<double>(want);
  double largest = 1e-30;
  for (const double v : b) largest = std::max(largest, std::isfinite(v) ? std::fabs(v) : 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) || std::isinf(b[i])) {
      EXPECT_TRUE(std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) << what << ", element " << i;
    } else {
      EXPECT_LE(std::fabs(a[i] - b[i]), allowed * largest) << what << ", element " << i << ": " << a[i] << ", " << b[i];
    }
  }
}

TEST(OpGoldens, ReferencesAndKernelsGiveWhatPyTorchGives) {
  const Archive all = read_npz(RLX_TEST_DATA "/ops/goldens.npz");
  std::set<std::string_view> ops;
  int cases = 0;
  for (const auto& [entry, t] : all) {
    if (!entry.ends_with("/text")) continue;
    const std::string name = entry.substr(0, entry.size() - 5);
    SCOPED_TRACE(name);
    const Graph g = parse(text_at(all, name));
    ops.insert(g.nodes.back().op->name());
    std::vector<Tensor> inputs;
    NamedTensors named;
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      inputs.push_back(all.at(fmt::format("{}/in/{}", name, i)));
      named.emplace(g.input_names[i], inputs.back());
    }
    const std::vector<Tensor> slow = evaluate(g, inputs, {false, {}}),
                              fast = cpu_session({.threads = 1}).compile(g, {}, {.poison = true}).run(named);
    for (std::size_t r = 0; r < slow.size(); ++r) {
      const Tensor& want = all.at(fmt::format("{}/out/{}", name, r));
      expect_near(slow[r], want, 1e-6, "reference");
      expect_near(fast[r], want, 2e-6, "kernel");
    }
    ++cases;
  }
  EXPECT_GE(cases, 120);
  EXPECT_GE(ops.size(), 65U);
}

}  // namespace
}  // namespace rlx::test
