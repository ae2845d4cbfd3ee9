// What the machine can do at most: kernels do the work that is counted, and rates are numbers that can be.
#include "core/machine_peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/machine_peak.kernel.h"
#include "core/thread_pool.h"

namespace rlx {
namespace {

class Floats {
 public:
  explicit Floats(std::size_t count) : all_(count + 16) {
    first_ = (64 - reinterpret_cast<std::uintptr_t>(all_.data()) % 64) % 64 / sizeof(float);
  }
  float* data() { return all_.data() + first_; }
  float& operator[](std::size_t i) { return data()[i]; }

 private:
  std::vector<float> all_;
  std::size_t first_ = 0;
};

TEST(MachinePeak, KernelsOfEveryLevelMoveAndAddEveryElement) {
  constexpr std::size_t count = 3 * 128;
  for (const Level level : available_levels()) {
    SCOPED_TRACE(level_name(level));
    const MachinePeaks& k = machine_peaks(level);
    Floats a(count), b(count), c(count);
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      a[i] = static_cast<float>(i % 7);
      b[i] = static_cast<float>(2 * i);
    }
    // The read kernel gives one lane of its sums: with one lane set, every eighth vector adds to it.
    for (std::size_t i = 0; i < count; i += 16) sum += a[i];
    Floats lane(count);
    for (std::size_t i = 0; i < count; i += 16) lane[i] = a[i];
    EXPECT_EQ(k.read(lane.data(), count), sum);
    for (const auto copy : {k.copy, k.copy_streaming}) {
      for (std::size_t i = 0; i < count; ++i) c[i] = -1;
      copy(a.data(), c.data(), count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(c[i], a[i]) << i;
    }
    for (const auto triad : {k.triad, k.triad_streaming}) {
      for (std::size_t i = 0; i < count; ++i) c[i] = -1;
      triad(a.data(), b.data(), c.data(), count);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(c[i], a[i] + static_cast<float>(i)) << i;
    }
  }
}

// Operations that are counted are those that are done: a chain s = s * x + x has a value that tells its length.
TEST(MachinePeak, ChainsHaveTheStatedLength) {
  for (const Level level : available_levels()) {
    SCOPED_TRACE(level_name(level));
    const MachinePeaks& k = machine_peaks(level);
    double s = 0.5;
    for (int i = 0; i < 3; ++i) s = s * 0.999 + 0.999;
    EXPECT_NEAR(k.f32.run(3), 12 * s, 1e-4);
    EXPECT_NEAR(k.f64.run(3), 12 * s, 1e-4);
    EXPECT_GE(k.bf16.operations, k.f32.operations);
    EXPECT_GE(k.i8.operations, k.bf16.operations);
    EXPECT_EQ(k.f64.operations * 2, k.f32.operations);
  }
}

TEST(MachinePeak, RatesAreMeasuredOnEveryNumberOfThreads) {
  for (int threads = 1; threads <= std::min(2, usable_processors()); ++threads) {
    const PeakOptions options{.threads = threads, .repetitions = 2, .seconds = 0.0005};
    for (const DType d : {DType::f32, DType::f64, DType::bf16, DType::i8})
      EXPECT_GT(multiply_add_rate(d, level(), options), 1e7);
    for (const Traffic t :
         {Traffic::read, Traffic::copy, Traffic::copy_streaming, Traffic::triad, Traffic::triad_streaming})
      EXPECT_GT(bandwidth(t, 1 << 16, options), 1e6);
  }
  EXPECT_EQ(cache_line_round_trip() > 1e-9, usable_processors() > 1);
}

TEST(MachinePeak, RefusesThreadsThatTheMachineLacks) {
  EXPECT_THROW(multiply_add_rate(DType::f32, level(), {.threads = 0}), Error);
  EXPECT_THROW(bandwidth(Traffic::read, 1024, {.threads = 0}), Error);
  EXPECT_THROW(bandwidth(Traffic::read, 1024, {.threads = 100'000}), Error);
}

}  // namespace
}  // namespace rlx
