// Nanoseconds an element of the f32 functions in L1, on one thread, at every level; beside them those of SLEEF, where
// it was found at configuration: u10 within 1 ulp, u35 within 3.5. Ours and theirs alternate; the best of the
// repetitions counts. Prints a line a level and function; a dash is a form that SLEEF lacks.
#include <fmt/core.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ops/scalar/scalar.kernel.h"
#include "probe.h"

namespace {

using namespace rlx;

constexpr long count = 2048;
constexpr int calls = 50, repetitions = 40;

using Loop = void (*)(const float* x, float* y);

#if defined(RLX_SLEEF)
// SLEEF's header declares a form only to what is compiled for its level.
#define RLX_LOOPS(f, bound)                                                            \
  extern "C" __m512 Sleef_##f##16_##bound##avx512f(__m512);                            \
  extern "C" __m256 Sleef_##f##8_##bound##avx2(__m256);                                \
  [[gnu::target("avx512f")]] void f##_##bound##_v4(const float* x, float* y) {         \
    for (long i = 0; i < count; i += 16) {                                             \
      _mm512_storeu_ps(y + i, Sleef_##f##16_##bound##avx512f(_mm512_loadu_ps(x + i))); \
    }                                                                                  \
  }                                                                                    \
  [[gnu::target("avx2,fma")]] void f##_##bound##_v3(const float* x, float* y) {        \
    for (long i = 0; i < count; i += 8) {                                              \
      _mm256_storeu_ps(y + i, Sleef_##f##8_##bound##avx2(_mm256_loadu_ps(x + i)));     \
    }                                                                                  \
  }
RLX_LOOPS(expf, u10)
RLX_LOOPS(logf, u10)
RLX_LOOPS(logf, u35)
RLX_LOOPS(sinf, u10)
RLX_LOOPS(sinf, u35)
RLX_LOOPS(cosf, u10)
RLX_LOOPS(cosf, u35)
RLX_LOOPS(tanhf, u10)
RLX_LOOPS(tanhf, u35)
RLX_LOOPS(erff, u10)
#undef RLX_LOOPS
#define RLX_U10(f) {f##_u10_v3, f##_u10_v4}
#define RLX_U35(f) {f##_u35_v3, f##_u35_v4}
#else
#define RLX_U10(f) \
  {                \
  }
#define RLX_U35(f) \
  {                \
  }
#endif

struct Function {
  std::string_view name;
  float low, high;                   // of the arguments
  std::array<Loop, 2> u10{}, u35{};  // at v3 and at v4
};

const Function functions[] = {
    {"exp", -10, 10, RLX_U10(expf), {}},
    {"log", 1e-3f, 100, RLX_U10(logf), RLX_U35(logf)},
    {"sin", -10, 10, RLX_U10(sinf), RLX_U35(sinf)},
    {"cos", -10, 10, RLX_U10(cosf), RLX_U35(cosf)},
    {"tanh", -4, 4, RLX_U10(tanhf), RLX_U35(tanhf)},
    {"erf", -4, 4, RLX_U10(erff), {}},
    {"sigmoid", -10, 10, {}, {}},
    {"silu", -10, 10, {}, {}},
    {"gelu", -4, 4, {}, {}},
    {"gelu_tanh", -4, 4, {}, {}},
};

BlockKernel kernel_of(std::string_view name) {
  constexpr std::string_view names[] = {
#define RLX_NAME(Type, function) #function,
      RLX_UNARY_ROWS(RLX_NAME)
#undef RLX_NAME
  };
  return unary_kernels().f32[std::find(std::begin(names), std::end(names), name) - std::begin(names)];
}

template <class F>
void time(F f, double& best) {
  const double begin = bench::thread_seconds();
  for (int i = 0; i < calls; ++i) f();
  best = std::min(best, (bench::thread_seconds() - begin) * 1e9 / (calls * count));
}

std::string figure(double nanoseconds) { return nanoseconds < 1e9 ? fmt::format("{:.3f}", nanoseconds) : "-"; }

void measure(const Function& f) {
  std::vector<float> x(count), y(count);
  std::uint32_t state = 1;
  for (float& v : x) {
    state = state * 1664525u + 1013904223u;
    v = f.low + (f.high - f.low) * (static_cast<float>(state >> 8) * 0x1p-24f);
  }
  const BlockKernel kernel = kernel_of(f.name);
  const void* const in[] = {x.data(), x.data(), x.data()};
  const bool sleef = level() >= Level::v3;
  const std::size_t form = level() >= Level::v4 ? 1 : 0;
  double ours = 1e9, u10 = 1e9, u35 = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    time([&] { kernel(in, y.data(), count); }, ours);
    if (sleef && f.u10[form]) time([&] { f.u10[form](x.data(), y.data()); }, u10);
    if (sleef && f.u35[form]) time([&] { f.u35[form](x.data(), y.data()); }, u35);
  }
  fmt::print("{:4} {:10} {:>7} {:>10} {:>10}\n", level_name(level()), f.name, figure(ours), figure(u10), figure(u35));
}

}  // namespace

int main() {
  fmt::print("{:4} {:10} {:>7} {:>10} {:>10}\n", "", "ns/element", "rlx", "sleef u10", "sleef u35");
  for (const Level each : available_levels()) {
    force_level(each);
    for (const Function& f : functions) measure(f);
  }
}
