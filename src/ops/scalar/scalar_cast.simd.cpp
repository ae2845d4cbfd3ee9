// Casts between plain C++ types, and between halves and f32, compiled once per level.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // at -O2 g++ leaves loops of unknown length as they are
#endif
#include <immintrin.h>

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

static void bf16_f32(const void* const* in, void* out, long n) {
  const unsigned short* x = static_cast<const unsigned short*>(in[0]);
  unsigned* y = static_cast<unsigned*>(out);
  for (long i = 0; i < n; ++i) y[i] = static_cast<unsigned>(x[i]) << 16;
}

static void f32_bf16(const void* const* in, void* out, long n) {
  const unsigned* x = static_cast<const unsigned*>(in[0]);
  unsigned short* y = static_cast<unsigned short*>(out);
  for (long i = 0; i < n; ++i) {
    const unsigned b = x[i];
    const unsigned rounded = (b + 0x7FFF + (b >> 16 & 1)) >> 16;  // ties to even; a carry reaches infinity by itself
    const unsigned quiet = (b >> 16 & 0x8000) | 0x7FC0;
    y[i] = static_cast<unsigned short>((b & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded);
  }
}

#if defined(__F16C__) && defined(__AVX2__)

static void f16_f32(const void* const* in, void* out, long n) {
  const unsigned short* x = static_cast<const unsigned short*>(in[0]);
  float* y = static_cast<float*>(out);
  long i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
  }
  for (; i < n; ++i) y[i] = _cvtsh_ss(x[i]);
}
static void f32_f16(const void* const* in, void* out, long n) {
  const float* x = static_cast<const float*>(in[0]);
  unsigned short* y = static_cast<unsigned short*>(out);
  long i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
  }
  for (; i < n; ++i) y[i] = static_cast<unsigned short>(_cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT));
}

#else

// The mantissa is moved into place and the product with 2^112 mends the exponent, denormals included.
static void f16_f32(const void* const* in, void* out, long n) {
  const unsigned short* x = static_cast<const unsigned short*>(in[0]);
  unsigned* y = static_cast<unsigned*>(out);
  for (long i = 0; i < n; ++i) {
    const unsigned b = x[i], sign = (b & 0x8000) << 16, magnitude = (b & 0x7FFF) << 13;
    const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
    const unsigned special = magnitude | 0x7F800000 | ((b & 0x3FF) != 0 ? 0x400000u : 0u);
    y[i] = sign | (magnitude >= 0x0F800000 ? special : __builtin_bit_cast(unsigned, scaled));
  }
}
static void f32_f16(const void* const* in, void* out, long n) {
  const unsigned* x = static_cast<const unsigned*>(in[0]);
  unsigned short* y = static_cast<unsigned short*>(out);
  for (long i = 0; i < n; ++i) {
    const unsigned sign = x[i] >> 16 & 0x8000, b = x[i] & 0x7FFFFFFF;
    // Normal results: ties to even on the 13 bits that go. Denormal ones: a sum with 1/2 rounds at their last bit.
    const unsigned normal = (b - 0x38000000 + 0xFFF + (b >> 13 & 1)) >> 13;
    const unsigned small = __builtin_bit_cast(unsigned, __builtin_bit_cast(float, b) + 0.5f) - 0x3F000000;
    const unsigned finite = b < 0x38800000 ? small : normal;
    const unsigned code = b > 0x7F800000 ? 0x7E00 : b >= 0x477FF000 ? 0x7C00 : finite;
    y[i] = static_cast<unsigned short>(sign | code);
  }
}

#endif

#define RLX_CAST_ROW(From)                                                                           \
  {cast_block<From, signed char>, cast_block<From, short>,         cast_block<From, int>,            \
   cast_block<From, long>,        cast_block<From, unsigned char>, cast_block<From, unsigned short>, \
   cast_block<From, unsigned>,    cast_block<From, unsigned long>, cast_block<From, Truth>,          \
   cast_block<From, float>,       cast_block<From, double>}
const CastKernels cast_kernels{
    .plain = {RLX_CAST_ROW(signed char), RLX_CAST_ROW(short), RLX_CAST_ROW(int), RLX_CAST_ROW(long),
              RLX_CAST_ROW(unsigned char), RLX_CAST_ROW(unsigned short), RLX_CAST_ROW(unsigned),
              RLX_CAST_ROW(unsigned long), RLX_CAST_ROW(Truth), RLX_CAST_ROW(float), RLX_CAST_ROW(double)},
    .f16_f32 = f16_f32,
    .f32_f16 = f32_f16,
    .bf16_f32 = bf16_f32,
    .f32_bf16 = f32_bf16};
#undef RLX_CAST_ROW

}  // namespace rlx::RLX_LEVEL
