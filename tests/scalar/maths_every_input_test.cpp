// Error bounds of the f32 functions over all 2^32 inputs, at every level. The references are the f64 vector functions
// of the C library, four at a time; a sample of them is compared with its scalar functions. Runs for minutes, so only
// when asked: `ctest -C slow -L slow`, or --gtest_also_run_disabled_tests with --gtest_filter=*Slow*.
#include <gtest/gtest.h>

#if defined(RLX_LIBMVEC)  // of glibc 2.35 or later
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numbers>
#include <thread>

#include "levels.h"
#include "ops/scalar/scalar.kernel.h"

extern "C" {
// How the compilers name the AVX2 forms of these functions.
__m256d vector_exp(__m256d) __asm__("_ZGVdN4v_exp");
__m256d vector_log(__m256d) __asm__("_ZGVdN4v_log");
__m256d vector_sin(__m256d) __asm__("_ZGVdN4v_sin");
__m256d vector_cos(__m256d) __asm__("_ZGVdN4v_cos");
__m256d vector_tanh(__m256d) __asm__("_ZGVdN4v_tanh");
__m256d vector_erf(__m256d) __asm__("_ZGVdN4v_erf");
__m256d vector_erfc(__m256d) __asm__("_ZGVdN4v_erfc");
}

namespace rlx::test {
namespace {

constexpr std::size_t chunk = 4096;
constexpr double inf = std::numeric_limits<double>::infinity();
using Floats = std::array<float, chunk>;
using Doubles = std::array<double, chunk>;

#define RLX_AVX2 [[gnu::target("avx2,fma")]]

enum class Form { plain, logarithm, sigmoid, silu, gelu, gelu_tanh };

RLX_AVX2 double half_sum(double x) { return 2 * 0.79788456080286535588 * (x + 0.044715 * (x * x * x)); }

// x within ±bound, or NaN: beyond it functions whose result is 0 or too large for f32 have slow cases.
RLX_AVX2 double within(double x, double bound) { return x < -bound ? -bound : x > bound ? bound : x; }

// What the function is given: of the logistic forms e^-|u|.
RLX_AVX2 double argument(Form form, double x, double bound) {
  switch (form) {
    case Form::plain:
      return within(x, bound);
    case Form::logarithm:
      return std::fabs(x);
    case Form::sigmoid:
    case Form::silu:
      return within(-std::fabs(x), bound);
    case Form::gelu:
      return within(-x / std::numbers::sqrt2, bound);
    default:
      return within(-std::fabs(half_sum(x)), bound);
  }
}
RLX_AVX2 double result(Form form, double x, double f) {
  if (form == Form::plain) return f;
  if (form == Form::logarithm) return x < 0 ? std::numeric_limits<double>::quiet_NaN() : f;
  if (f < 0x1p-900) f = 0;  // at the bound
  if (form == Form::gelu) return 0.5 * x * f;
  const double logistic = (x < 0 ? f : 1.0) / (1 + f);
  return form == Form::sigmoid ? logistic : x * logistic;
}

struct Row {
  const char* name;
  __m256d (*vector)(__m256d);
  double (*scalar)(double);
  Form form;
  double bound;  // of arguments
  double units;  // of the last place of the result or, for activations, of the larger of it and 2^-24·|x|
  bool activation;
};

// The C library's scalar functions, without overloads.
const Row rows[] = {
    {"exp", vector_exp, [](double x) { return std::exp(x); }, Form::plain, 700, 2, false},
    {"log", vector_log, [](double x) { return std::log(x); }, Form::logarithm, inf, 2, false},
    {"sin", vector_sin, [](double x) { return std::sin(x); }, Form::plain, inf, 2, false},
    {"cos", vector_cos, [](double x) { return std::cos(x); }, Form::plain, inf, 2, false},
    {"tanh", vector_tanh, [](double x) { return std::tanh(x); }, Form::plain, 30, 4, false},
    {"erf", vector_erf, [](double x) { return std::erf(x); }, Form::plain, 8, 4, false},
    {"sigmoid", vector_exp, [](double x) { return std::exp(x); }, Form::sigmoid, 700, 4, false},
    {"silu", vector_exp, [](double x) { return std::exp(x); }, Form::silu, 700, 4, true},
    {"gelu", vector_erfc, [](double x) { return std::erfc(x); }, Form::gelu, 26, 4, true},
    {"gelu_tanh", vector_exp, [](double x) { return std::exp(x); }, Form::gelu_tanh, 700, 4, true},
};

std::size_t place_of(std::string_view name) {
  constexpr const char* names[] = {
#define RLX_NAME(Type, function) #function,
      RLX_UNARY_ROWS(RLX_NAME)
#undef RLX_NAME
  };
  return static_cast<std::size_t>(std::ranges::find(names, name) - std::begin(names));
}

RLX_AVX2 void references(const Row& row, const Floats& x, Doubles& want) {
  for (std::size_t i = 0; i < chunk; ++i) want[i] = argument(row.form, static_cast<double>(x[i]), row.bound);
  for (std::size_t i = 0; i < chunk; i += 4) {
    _mm256_storeu_pd(&want[i], row.vector(_mm256_loadu_pd(&want[i])));
  }
  for (std::size_t i = 0; i < chunk; ++i) want[i] = result(row.form, static_cast<double>(x[i]), want[i]);
}

struct Worst {
  double units = 0;
  float at = 0;
  void take(double u, float x) {
    if (!(u <= units)) units = u, at = x;
  }
};

// |got - want| in units of the last place of f32 at `scale`; too large a number stands for what infinity rounds from.
double error(float got, double want, double scale) {
  constexpr double largest = std::numeric_limits<float>::max();
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : inf;
  const double value = std::isinf(got) ? std::copysign(largest + 0x1p104, got) : static_cast<double>(got);
  const double held = std::fabs(want) > largest + 0x1p104 ? std::copysign(largest + 0x1p104, want) : want;
  const auto exponent = static_cast<int>(std::bit_cast<std::uint64_t>(scale) >> 52 & 0x7FF) - 1023;
  const int place = std::min(std::max(exponent, -126), 127) - 23;
  return std::fabs(value - held) * std::bit_cast<double>(static_cast<std::uint64_t>(1023 - place) << 52);
}

bool same_bits(const Floats& a, const Floats& b) {
  return std::ranges::equal(a, b, {}, std::bit_cast<std::uint32_t, float>, std::bit_cast<std::uint32_t, float>);
}

struct Found {
  std::array<Worst, level_count> worst;
  Worst reference;  // relative difference of the vector and the scalar function
};

Found search(const Row& row, std::uint64_t first, std::uint64_t step) {
  std::array<BlockKernel, level_count> kernels{};
  int levels = 0;
  for (const Level l : available_levels()) {
    const UnaryKernels* const tables[] = {&v2::unary_kernels, &v3::unary_kernels, &v4::unary_kernels,
                                          &v4b::unary_kernels};
    kernels[static_cast<std::size_t>(levels++)] = tables[static_cast<int>(l)]->f32[place_of(row.name)];
  }
  Found found;
  Floats x, got, before{};
  Doubles want;
  for (std::uint64_t c = first; c < (std::uint64_t{1} << 32) / chunk; c += step) {
    for (std::size_t i = 0; i < chunk; ++i) x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(c * chunk + i));
    references(row, x, want);
    const auto one = static_cast<double>(x[c % chunk]);
    const double scalar = result(row.form, one, row.scalar(argument(row.form, one, row.bound)));
    if (std::fabs(scalar) > 0x1p-1000 && std::fabs(scalar) < inf) {
      found.reference.take(std::fabs(want[c % chunk] / scalar - 1), x[c % chunk]);
    }
    const void* const in[] = {x.data(), x.data(), x.data()};
    for (int l = 0; l < levels; ++l) {
      Worst& worst = found.worst[static_cast<std::size_t>(l)];
      kernels[static_cast<std::size_t>(l)](in, got.data(), chunk);
      if (l > 0 && same_bits(got, before)) {
        worst.take(found.worst[static_cast<std::size_t>(l - 1)].units, found.worst[static_cast<std::size_t>(l - 1)].at);
        continue;
      }
      for (std::size_t i = 0; i < chunk; ++i) {
        const double scale = row.activation ? std::max(std::fabs(want[i]), 0x1p-24 * std::fabs(double{x[i]})) : want[i];
        worst.take(error(got[i], want[i], scale), x[i]);
      }
      before = got;
    }
  }
  return found;
}

class SlowScalarMaths : public testing::TestWithParam<Row> {};

TEST_P(SlowScalarMaths, DISABLED_EveryInput) {
  int levels = 0;
  for (const Level l : available_levels()) levels = static_cast<int>(l) + 1;
  if (levels < 2) GTEST_SKIP() << "the references need AVX2";
  const Row& row = GetParam();
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<Found> parts(threads);
  std::vector<std::thread> pool;
  for (std::size_t t = 0; t < threads; ++t) pool.emplace_back([&, t] { parts[t] = search(row, t, threads); });
  for (std::thread& t : pool) t.join();
  std::string line = std::string("| ") + row.name + " |";
  for (std::size_t l = 0; l < static_cast<std::size_t>(levels); ++l) {
    Worst worst;
    for (const Found& p : parts) worst.take(p.worst[l].units, p.worst[l].at);
    EXPECT_LE(worst.units, row.units) << row.name << " at " << std::hexfloat << worst.at << ", "
                                      << level_name(static_cast<Level>(l));
    char text[64];
    std::snprintf(text, sizeof text, " %.3f at %a |", worst.units, static_cast<double>(worst.at));
    line += text;
  }
  for (const Found& p : parts) {
    EXPECT_LE(p.reference.units, 0x1p-40) << row.name << " at " << std::hexfloat << p.reference.at;
  }
  std::puts(line.c_str());
}

INSTANTIATE_TEST_SUITE_P(Functions, SlowScalarMaths, testing::ValuesIn(rows),
                         [](const testing::TestParamInfo<Row>& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace rlx::test
#endif
