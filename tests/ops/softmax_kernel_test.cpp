// Tests of the softmax kernel at every level against a loop in f64.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "levels.h"
#include "ops/softmax/softmax.kernel.h"

namespace rlx {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> softmax_in_f64(const std::vector<float>& x) {
  double top = -std::numeric_limits<double>::infinity();
  for (const float v : x) top = std::max(top, static_cast<double>(v));
  std::vector<double> y;
  double sum = 0;
  for (const float v : x) {
    y.push_back(std::exp(v - top));
    sum += y.back();
  }
  for (double& v : y) v /= sum;
  return y;
}

std::vector<float> run(const std::vector<float>& x, std::size_t rows) {
  std::vector<float> y(x.size());
  softmax_kernels().rows_f32(x.data(), y.data(), static_cast<long>(rows), static_cast<long>(x.size() / rows));
  return y;
}

/// x - max is rounded once, which moves its exponential by |x - max|·2^-24 relatively; exp, sum and division add a few
/// units.
void expect_softmax(const std::vector<float>& x) {
  const std::vector<float> y = run(x, 1);
  const std::vector<double> want = softmax_in_f64(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(y[i] - want[i]), want[i] * 110 * 0x1p-24 + 0x1p-148) << "element " << i << " of " << x.size();
  }
}

std::vector<float> random_row(std::size_t size, float scale, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> x(size);
  for (float& v : x) v = uniform(generator);
  return x;
}

TEST(SoftmaxKernel, EveryRowLength) {
  at_every_level([] {
    for (std::size_t size = 1; size <= 67; ++size) {
      for (const float scale : {1.0f, 20.0f, 200.0f})
        expect_softmax(random_row(size, scale, static_cast<unsigned>(size)));
    }
  });
}

TEST(SoftmaxKernel, LargeValuesDoNotOverflow) {
  at_every_level([] {
    expect_softmax({200, 0, -200});
    expect_softmax({-200, -200, -200, -200});
    expect_softmax({1e30f, -1e30f, 0, 1e30f, 5});
    EXPECT_EQ(run({200, 0, -200}, 1), (std::vector<float>{1, 0, 0}));
  });
}

TEST(SoftmaxKernel, MinusInfinityGetsNothing) {
  at_every_level([] {
    std::vector<float> x(37, -inf);
    x[20] = 3;
    std::vector<float> want(37, 0.0f);
    want[20] = 1;
    EXPECT_EQ(run(x, 1), want);
  });
}

TEST(SoftmaxKernel, RowsWithoutAResultAreNaN) {
  at_every_level([] {
    for (const float bad : {inf, nan}) {
      for (std::size_t size = 1; size <= 67; size += 11) {
        for (std::size_t place = 0; place < size; ++place) {
          std::vector<float> x = random_row(size, 1, 7);
          x[place] = bad;
          const std::vector<float> y = run(x, 1);
          EXPECT_TRUE(std::isnan(y[place])) << size << " " << place;
        }
      }
    }
    for (const float v : run(std::vector<float>(21, -inf), 1)) EXPECT_TRUE(std::isnan(v));
    for (const float v : run(std::vector<float>(35, nan), 1)) EXPECT_TRUE(std::isnan(v));
  });
}

TEST(SoftmaxKernel, ARowDoesNotDependOnTheOthersOrOnItsPlace) {
  at_every_level([] {
    for (const std::size_t cols : {1u, 5u, 16u, 33u, 67u}) {
      const std::vector<float> x = random_row(7 * cols, 10, 3);
      const std::vector<float> all = run(x, 7);
      std::vector<float> in_place = x;
      softmax_kernels().rows_f32(in_place.data(), in_place.data(), 7, static_cast<long>(cols));
      for (std::size_t r = 0; r < 7; ++r) {
        const auto begin = x.begin() + static_cast<std::ptrdiff_t>(r * cols);
        const std::vector<float> alone = run({begin, begin + static_cast<std::ptrdiff_t>(cols)}, 1);
        for (std::size_t c = 0; c < cols; ++c) {
          EXPECT_EQ(std::bit_cast<std::uint32_t>(alone[c]), std::bit_cast<std::uint32_t>(all[r * cols + c]));
          EXPECT_EQ(std::bit_cast<std::uint32_t>(in_place[r * cols + c]),
                    std::bit_cast<std::uint32_t>(all[r * cols + c]));
        }
      }
    }
  });
}

TEST(SoftmaxKernel, StreamedRowsHaveTheSameBits) {
  at_every_level([] {
    for (const std::size_t cols : {1u, 16u, 33u, 64u, 4096u, 4112u}) {
      for (const std::size_t shift : {0u, 1u}) {  // a result off the boundary of a pack is written as ever
        const std::vector<float> x = random_row(3 * cols, 10, 5), want = run(x, 3);
        std::vector<float> memory(x.size() + 17 + shift);
        const auto past = reinterpret_cast<std::uintptr_t>(memory.data()) % 64 / sizeof(float);
        float* y = memory.data() + (past == 0 ? 0 : 16 - past) + shift;
        softmax_kernels().rows_streamed(x.data(), y, 3, static_cast<long>(cols));
        for (std::size_t i = 0; i < x.size(); ++i) {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(want[i])) << cols << " " << i;
        }
      }
    }
  });
}

TEST(SoftmaxKernel, NoRowsAndNoColumnsDoNothing) {
  at_every_level([] {
    float guard = 5;
    softmax_kernels().rows_f32(&guard, &guard, 0, 1);
    softmax_kernels().rows_f32(&guard, &guard, 3, 0);
    EXPECT_EQ(guard, 5);
  });
}

}  // namespace
}  // namespace rlx
