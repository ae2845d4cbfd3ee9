// Error bounds of the f32 functions over the whole range, at every level, against f64 and the C library.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/num.h"
#include "levels.h"
#include "ops/scalar/scalar.kernel.h"

namespace rlx::test {
namespace {

constexpr double largest = 0x1.fffffep127;

// What a row promises: `units` of the last place, of the result or, for activations, of the larger of the result and
// 2^-24 |x|.
struct Row {
  const char* name;
  double (*f)(double);
  double units;
  bool activation;
};

template <class R>
double reference(double x) {
  return R::value(Num<double>{x}).v;
}

// Forms of which the f64 evaluation itself loses nothing that shows in f32.
double gelu_of(double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }

double units_of(std::string_view name) {
  for (const char* two : {"exp", "log", "sin", "cos", "expm1", "log1p", "tan", "atan", "sqrt", "neg", "abs"}) {
    if (name == two) return 2;
  }
  return 4;
}
bool is_activation(std::string_view name) {
  for (const char* a :
       {"relu", "relu6", "silu", "gelu", "gelu_tanh", "mish", "elu", "hard_sigmoid", "hard_swish", "softsign"}) {
    if (name == a) return true;
  }
  return false;
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> r{
#define RLX_TEST_ROW(Type, function) {#function, reference<base::Type>, units_of(#function), is_activation(#function)},
        RLX_UNARY_ROWS(RLX_TEST_ROW)
#undef RLX_TEST_ROW
    };
    for (Row& row : r) {
      if (row.name == std::string_view("gelu")) row.f = gelu_of;
    }
    return r;
  }();
  return all;
}

// |got - want| in units of the last place of f32 at `scale`; exact for infinities and NaN.
double error_in_units(float got, double want, double scale) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : INFINITY;
  if (std::fabs(want) > largest * (1 + 0x1p-24)) {
    // Beyond the largest number: infinity, or the largest one within the bound of the row.
    return std::isinf(got) && std::signbit(got) == std::signbit(want) ? 0 : std::fabs(got) >= largest ? 1 : INFINITY;
  }
  if (std::isinf(got)) return std::fabs(want) >= largest * (1 - 0x1p-22) ? 1 : INFINITY;
  const int exponent = scale == 0 ? -126 : std::max(std::ilogb(scale), -126);
  return std::fabs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 23);
}

struct Worst {
  double units = 0;
  float at = 0, got = 0;
};

std::vector<double> wanted(std::size_t row, const std::vector<float>& x) {
  std::vector<double> want;
  want.reserve(x.size());
  for (const float v : x) want.push_back(rows()[row].f(v));
  return want;
}

Worst worst_of(std::size_t row, const std::vector<float>& x, const std::vector<double>& want) {
  std::vector<float> y(x.size());
  const void* const in[] = {x.data(), x.data(), x.data()};
  unary_kernels().f32[row](in, y.data(), static_cast<long>(x.size()));
  Worst w;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scale = rows()[row].activation ? std::max(std::fabs(want[i]), 0x1p-24 * std::fabs(x[i])) : want[i];
    const double e = error_in_units(y[i], want[i], scale);
    if (e > w.units) w = {e, x[i], y[i]};
  }
  return w;
}

// Every `step`-th pattern from `first` on: both signs, denormals, infinities and NaN among them.
std::vector<float> patterns(std::uint64_t first, std::uint64_t step, std::uint64_t last = std::uint64_t{1} << 32) {
  std::vector<float> x;
  for (std::uint64_t b = first; b < last; b += step) x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(b)));
  return x;
}

std::vector<float> edges() {
  std::vector<float> x;
  for (const double v : {0.0,
                         1e-45,
                         1e-40,
                         1.1754943508222875e-38,
                         1e-20,
                         1e-4,
                         0.24,
                         0.41421356,
                         0.5,
                         0.6931472,
                         1.0,
                         1.41421356,
                         1.5,
                         2.0,
                         2.41421356,
                         2.5,
                         3.0,
                         3.14159274,
                         6.0,
                         8.0,
                         9.0,
                         10.0,
                         17.0,
                         28.0,
                         64.0,
                         87.3,
                         88.72,
                         88.73,
                         89.0,
                         103.0,
                         104.0,
                         110.0,
                         1e4,
                         134217728.0,
                         134217744.0,
                         1e10,
                         3e38,
                         3.4028234663852886e38,
                         double{INFINITY},
                         double{NAN}}) {
    for (const float f : {static_cast<float>(v), std::nextafter(static_cast<float>(v), 0.0f),
                          std::nextafter(static_cast<float>(v), INFINITY)}) {
      x.push_back(f);
      x.push_back(-f);
    }
  }
  return x;
}

void check_rows(const std::vector<float>& x) {
  for (std::size_t r = 0; r < rows().size(); ++r) {
    const std::vector<double> want = wanted(r, x);
    at_every_level([&] {
      const Worst w = worst_of(r, x, want);
      EXPECT_LE(w.units, rows()[r].units) << rows()[r].name << " at " << std::hexfloat << w.at << ": " << w.got;
    });
  }
}

TEST(ScalarMaths, RowsKeepTheirBoundsOnASample) {
  check_rows(patterns(0, 4099 * 16));
  check_rows(edges());
}

TEST(BulkScalarMaths, RowsKeepTheirBoundsOnADenseSample) {
  for (const std::uint64_t first : {3U, 131U}) check_rows(patterns(first, 256 * 16));
}

// Every number near multiples of pi/2 that f32 comes closest to, and arguments up to the largest.
TEST(ScalarMaths, SinesOfLargeArguments) {
  std::vector<float> x{0x1.921fb6p0f, 0x1.921fb6p1f, 16367173.0f * 0x1p72f, 0x1.f9cbe2p7f, 3.4028235e38f, 1e30f, 1e22f};
  for (int k = 1; k < 2000; ++k) x.push_back(static_cast<float>(k * std::numbers::pi / 2));
  for (int e = 20; e < 128; ++e) x.push_back(std::ldexp(1.234567f, e));
  at_every_level([&] {
    for (std::size_t r = 0; r < rows().size(); ++r) {
      const std::string_view name = rows()[r].name;
      if (name == "sin" || name == "cos" || name == "tan") {
        EXPECT_LE(worst_of(r, x, wanted(r, x)).units, 2) << name;
      }
    }
  });
}

using Binary = double (*)(double, double);
double binary_worst(int row, Binary f, const std::vector<float>& a, const std::vector<float>& b, float& x, float& y) {
  std::vector<float> out(a.size());
  const void* const in[] = {a.data(), b.data(), a.data()};
  binary_kernels().f32[row](in, out.data(), static_cast<long>(a.size()));
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double want = f(a[i], b[i]), e = error_in_units(out[i], want, want);
    if (e > worst) worst = e, x = a[i], y = b[i];
  }
  return worst;
}

TEST(ScalarMaths, PowersAnglesAndRemainders) {
  std::vector<float> a, b;
  const std::vector<float> e = edges();
  for (const float x : e) {
    for (const float y : e) a.push_back(x), b.push_back(y);
  }
  std::uint64_t state = 1;
  const auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; };
  for (int i = 0; i < 100000; ++i) {
    a.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(next() * 2)));
    b.push_back(i % 2 ? std::bit_cast<float>(static_cast<std::uint32_t>(next() * 2))
                      : static_cast<float>(next() % 4096) / 64 - 32);
  }
  for (int i = 0; i < 100000; ++i) {  // results of every size
    a.push_back(static_cast<float>(next() % 1000000) * 1e-5f);
    b.push_back(static_cast<float>(next() % 100000) * 1e-3f - 50);
  }
  enum {
    place_begin = -1,
#define RLX_PLACE(Type, function) place_##function,
    RLX_BINARY_ROWS(RLX_PLACE)
#undef RLX_PLACE
  };
  at_every_level([&] {
    float x = 0, y = 0;
    EXPECT_LE(binary_worst(
                  place_pow, [](double p, double q) { return std::pow(p, q); }, a, b, x, y),
              4)
        << x << " " << y;
    EXPECT_LE(binary_worst(
                  place_atan2, [](double p, double q) { return std::atan2(p, q); }, a, b, x, y),
              2)
        << x << " " << y;
    EXPECT_EQ(binary_worst(
                  place_fmod, [](double p, double q) { return std::fmod(p, q); }, a, b, x, y),
              0)
        << x << " " << y;
    EXPECT_EQ(binary_worst(
                  place_maximum, [](double p, double q) { return std::isnan(p) || p >= q ? p : q; }, a, b, x, y),
              0)
        << x << " " << y;
    EXPECT_EQ(binary_worst(
                  place_minimum, [](double p, double q) { return std::isnan(p) || p <= q ? p : q; }, a, b, x, y),
              0)
        << x << " " << y;
  });
}

TEST(ScalarMaths, SignsOfZerosAreKept) {
  const std::vector<float> x{0.0f, -0.0f};
  at_every_level([&] {
    for (std::size_t r = 0; r < rows().size(); ++r) {
      float y[2];
      const void* const in[] = {x.data(), x.data(), x.data()};
      unary_kernels().f32[r](in, y, 2);
      for (std::size_t i = 0; i < 2; ++i) {
        const double want = rows()[r].f(x[i]);
        if (want == 0) {
          EXPECT_EQ(std::signbit(y[i]), std::signbit(want)) << rows()[r].name << " of " << x[i];
        }
      }
    }
  });
}

// A block's place and length change no bits: tails are masked packs of the same functions.
TEST(ScalarMaths, EveryLengthGivesTheSameBits) {
  std::vector<float> x;
  for (int i = 0; i < 70; ++i) x.push_back(static_cast<float>(i - 35) * 0.37f);
  at_every_level([&] {
    for (std::size_t r = 0; r < rows().size(); ++r) {
      std::vector<float> all(x.size());
      const void* const in[] = {x.data(), x.data(), x.data()};
      unary_kernels().f32[r](in, all.data(), static_cast<long>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) {
        float one = 0;
        const void* const at[] = {&x[i], &x[i], &x[i]};
        unary_kernels().f32[r](at, &one, 1);
        EXPECT_EQ(std::bit_cast<std::uint32_t>(one), std::bit_cast<std::uint32_t>(all[i])) << rows()[r].name;
      }
    }
  });
}

}  // namespace
}  // namespace rlx::test
