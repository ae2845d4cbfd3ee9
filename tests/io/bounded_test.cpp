// The harness itself: it must see crashes, lost time, memory beyond the budget, and complaints.
#include "io/bounded.h"

#include <gtest/gtest.h>

#include <csignal>
#include <ctime>
#include <stdexcept>

namespace rlx::test {
namespace {

TEST(Bounded, ReportsTheFirstComplaint) {
  EXPECT_EQ(run_bounded(0, 10, 1 << 26, [](Index) { return std::string(); }), "");
  EXPECT_EQ(run_bounded(0, 10, 1 << 26, [](Index i) { return std::string(i == 7 ? "bad" : ""); }), "input 7: bad");
  EXPECT_EQ(run_bounded(3, 10, 1 << 26, [](Index) -> std::string { throw std::runtime_error("x"); }),
            "input 3: it threw x");
}

TEST(Bounded, ReportsSignals) {
  EXPECT_EQ(run_bounded(0, 10, 1 << 26,
                        [](Index i) {
                          if (i == 4) ::raise(SIGKILL);
                          return std::string();
                        }),
            "input 4: signal 9");
}

TEST(BulkBounded, ReportsLostTime) {
  const std::string wrong = run_bounded(0, 1, 1 << 26, [](Index) {
    const std::clock_t start = std::clock();
    while (std::clock() - start < CLOCKS_PER_SEC * 21 / 10) continue;
    return std::string();
  });
  EXPECT_EQ(wrong.substr(0, 20), "input 0: it took 2.1");
}

TEST(Bounded, ReportsMemory) {
  if (!limits_memory()) GTEST_SKIP() << "sanitizers need the address space themselves";
  const auto take = [](Index mega) {
    return run_bounded(0, 1, 32 << 20, [=](Index) {
      const std::vector<char> v(static_cast<std::size_t>(mega) << 20, 'x');
      return std::string(v[v.size() / 2] == 'x' ? "" : "lost");
    });
  };
  EXPECT_EQ(take(16), "");
  EXPECT_EQ(take(40), "input 0: it threw std::bad_alloc");
}

}  // namespace
}  // namespace rlx::test
