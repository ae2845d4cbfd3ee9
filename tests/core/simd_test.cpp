// Tests of the pack maths at every level: error bounds over the whole range, special values, tails.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd_probe.kernel.h"
#include "levels.h"

namespace rlx {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

/// |got - want| in units of the last place of f32 at `want`; `want` is finite and in the range of f32.
double error_in_ulp(float got, double want) {
  const int exponent = std::max(std::ilogb(want), -126);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 23);
}

/// Every `step`-th f32 with |x| <= limit, both signs.
std::vector<float> sample(float limit, std::uint32_t step) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits <= std::bit_cast<std::uint32_t>(limit); bits += step) {
    values.push_back(std::bit_cast<float>(bits));
    values.push_back(-values.back());
  }
  return values;
}

double worst_exp_error(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  simd_probe().exp(x.data(), y.data(), static_cast<long>(x.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp(static_cast<double>(x[i]));
    // Above the largest f32 the nearest one is infinity from half a unit on.
    if (want >= 0x1.ffffffp127) {
      EXPECT_EQ(y[i], inf) << x[i];
    } else if (!(y[i] == inf && want > 0x1.fffffep127 * (1 - 0x1p-23))) {
      worst = std::max(worst, error_in_ulp(y[i], want));
    }
  }
  return worst;
}

TEST(Simd, ExpIsWithinTwoUlp) {
  const std::vector<float> x = sample(110.0f, 4999);
  at_every_level([&] { EXPECT_LE(worst_exp_error(x), 2.0) << "over " << x.size() << " values"; });
}

TEST(BulkSimd, ExpIsWithinTwoUlpOnADenseSample) {
  const std::vector<float> x = sample(110.0f, 31 * 16);
  for (std::uint32_t shift = 0; shift < 16; ++shift) {
    std::vector<float> shifted;
    shifted.reserve(x.size());
    for (const float v : x) shifted.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(v) + 31 * shift));
    at_every_level([&] { EXPECT_LE(worst_exp_error(shifted), 2.0) << "over " << x.size() << " values"; });
  }
}

TEST(Simd, ExpOfSpecialValues) {
  at_every_level([] {
    const std::vector<float> x = {0.0f, -0.0f, 1e-40f, -1e-40f, inf, -inf, nan, 89.0f, 1e30f, -104.0f, -1e30f, -103.0f};
    const std::vector<float> want = {1, 1, 1, 1, inf, 0, nan, inf, inf, 0, 0, std::exp(-103.0f)};
    std::vector<float> y(x.size());
    simd_probe().exp(x.data(), y.data(), static_cast<long>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << x[i];
      } else {
        EXPECT_EQ(y[i], want[i]) << x[i];
      }
    }
  });
}

TEST(Simd, TailsHaveTheBitsOfWholePacks) {
  at_every_level([] {
    const std::vector<float> x = sample(88.0f, 40000003);
    ASSERT_GT(x.size(), 48u);
    std::vector<float> whole(64, 0.0f);
    std::vector<float> padded(x.begin(), x.begin() + 48);
    padded.resize(64, 0.0f);
    simd_probe().exp(padded.data(), whole.data(), 64);
    for (std::size_t n = 1; n <= 48; ++n) {
      // Exact size: a read or write past the end is an address error under the sanitizer.
      const std::vector<float> in(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n));
      std::vector<float> out(n);
      simd_probe().exp(in.data(), out.data(), static_cast<long>(n));
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(whole[i])) << n << " " << i;
      }
    }
  });
}

TEST(Simd, MaxPropagatesNaN) {
  at_every_level([] {
    const std::vector<float> a = {1, 2, nan, 3, -inf, nan, 7};
    const std::vector<float> b = {2, 1, 1, nan, -1, nan, inf};
    const std::vector<float> want = {2, 2, nan, nan, -1, nan, inf};
    std::vector<float> y(a.size());
    simd_probe().max(a.data(), b.data(), y.data(), static_cast<long>(a.size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      EXPECT_TRUE(y[i] == want[i] || (std::isnan(y[i]) && std::isnan(want[i]))) << i << ": " << y[i];
    }
  });
}

}  // namespace
}  // namespace rlx
