// Casts between plain C++ types, and between halves and f32, compiled once per level.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // at -O2 g++ leaves loops of unknown length as they are
#endif
#include "core/simd_float.h"
#include "ops/scalar/scalar.kernel.h"

namespace rlx::RLX_LEVEL {

struct Truth {
  unsigned char byte;
};

template <class T>
inline constexpr bool real = false;
template <>
inline constexpr bool real<float> = true;
template <>
inline constexpr bool real<double> = true;

// Float to integer: toward zero, saturating, NaN to 0.
template <class To, class From>
static inline To saturated(From x) {
  constexpr bool has_sign = To(-1) < To(0);
  constexpr int width = static_cast<int>(8 * sizeof(To)) - (has_sign ? 1 : 0);
  constexpr From limit = static_cast<From>(width == 64   ? 0x1p64
                                           : width == 63 ? 0x1p63
                                                         : static_cast<double>(1ull << (width & 63)));
  constexpr To most = static_cast<To>(~0ull >> (64 - width)), least = has_sign ? static_cast<To>(-most - 1) : To(0);
  if (!(x == x)) return 0;  // NOLINT(misc-redundant-expression): NaN alone
  if (x >= limit) return most;
  if (has_sign ? x < -limit : x <= From(0)) return least;
  return static_cast<To>(x);
}

template <class To, class From>
static inline To convert(From x) {
  if constexpr (real<From> && !real<To>) {
    return saturated<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class From, class To>
static void cast_block(const void* const* in, void* out, long n) {
  const From* x = static_cast<const From*>(in[0]);
  To* y = static_cast<To*>(out);
  for (long i = 0; i < n; ++i) {
    if constexpr (__is_same(To, Truth)) {
      if constexpr (__is_same(From, Truth)) {
        y[i].byte = x[i].byte != 0;
      } else {
        y[i].byte = !(x[i] == From(0));  // NaN too is true
      }
    } else if constexpr (__is_same(From, Truth)) {
      y[i] = static_cast<To>(x[i].byte != 0);
    } else {
      y[i] = convert<To>(x[i]);
    }
  }
}

template <class Half>
static void half_to_f32(const void* const* in, void* out, long n) {
  const auto* x = static_cast<const Half*>(in[0]);
  auto* y = static_cast<float*>(out);
  long i = 0;
  for (; i + F32::lanes <= n; i += F32::lanes) store(y + i, load(x + i));
  for (; i < n; ++i) y[i] = widen(x[i]);
}
template <class Half>
static void f32_to_half(const void* const* in, void* out, long n) {
  const auto* x = static_cast<const float*>(in[0]);
  auto* y = static_cast<Half*>(out);
  long i = 0;
  for (; i + F32::lanes <= n; i += F32::lanes) store(y + i, load(x + i));
  for (; i < n; ++i) narrow(x[i], y[i]);
}

#define RLX_CAST_ROW(From)                                                                           \
  {cast_block<From, signed char>, cast_block<From, short>,         cast_block<From, int>,            \
   cast_block<From, long>,        cast_block<From, unsigned char>, cast_block<From, unsigned short>, \
   cast_block<From, unsigned>,    cast_block<From, unsigned long>, cast_block<From, Truth>,          \
   cast_block<From, float>,       cast_block<From, double>}
const CastKernels cast_kernels{
    .plain = {RLX_CAST_ROW(signed char), RLX_CAST_ROW(short), RLX_CAST_ROW(int), RLX_CAST_ROW(long),
              RLX_CAST_ROW(unsigned char), RLX_CAST_ROW(unsigned short), RLX_CAST_ROW(unsigned),
              RLX_CAST_ROW(unsigned long), RLX_CAST_ROW(Truth), RLX_CAST_ROW(float), RLX_CAST_ROW(double)},
    .f16_f32 = half_to_f32<StoredF16>,
    .f32_f16 = f32_to_half<StoredF16>,
    .bf16_f32 = half_to_f32<StoredBF16>,
    .f32_bf16 = f32_to_half<StoredBF16>};
#undef RLX_CAST_ROW

}  // namespace rlx::RLX_LEVEL
