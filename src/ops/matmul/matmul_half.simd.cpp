// Products of f16 and bf16, compiled once per level.
#include "ops/matmul/matmul_elements.h"

namespace rlx::RLX_LEVEL {

namespace {

[[maybe_unused]] inline float as_float(Bits32 bits) { return __builtin_bit_cast(float, bits); }
inline Bits32 as_bits(float x) { return __builtin_bit_cast(Bits32, x); }

// Nearest, ties to even; NaN stays NaN.
inline Bits16 to_bf16(float x) {
  const Bits32 b = as_bits(x);
  if (x != x) return static_cast<Bits16>(b >> 16 | 0x40);
  return static_cast<Bits16>((b + 0x7fff + (b >> 16 & 1)) >> 16);
}

#if defined(__F16C__)

inline float from_f16(Bits16 h) { return _cvtsh_ss(h); }
inline Bits16 to_f16(float x) { return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT); }

#else

// The bits of a half, moved to the place of f32's, are the number times 2^-112; denormals come out right too.
inline float from_f16(Bits16 h) {
  const Bits32 magnitude = h & 0x7fffu, sign = static_cast<Bits32>(h & 0x8000) << 16;
  if (magnitude >= 0x7c00) return as_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  return as_float(sign | as_bits(as_float(magnitude << 13) * 0x1p112f));
}

inline Bits16 to_f16(float x) {
  const Bits32 all = as_bits(x), sign = all >> 16 & 0x8000, magnitude = all & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<Bits16>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  if (magnitude >= 0x477ff000) return static_cast<Bits16>(sign | 0x7c00);
  // Below the least normal half: adding 1/2 rounds to multiples of 2^-24, the unit of halves there.
  if (magnitude < 0x38800000) return static_cast<Bits16>(sign | (as_bits(as_float(magnitude) + 0.5f) - 0x3f000000));
  const Bits32 rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<Bits16>(sign | (rounded - 0x38000000) >> 13);
}

#endif

inline void all_to_bf16(const float* sums, Bits16* to, Index n) {
  using Words = Wrapping<Bits32>::Vector;
  using Halves [[gnu::vector_size(Wrapping<Bits32>::bytes / 2)]] = Bits16;
  Index j = 0;
  for (; j + F32::lanes <= n; j += F32::lanes) {
    Words b;
    __builtin_memcpy(&b, sums + j, sizeof b);
    const Words rounded = (b + 0x7fffu + (b >> 16 & 1u)) >> 16, quiet = b >> 16 | 0x40u;
    const Words result = (b & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
    const Halves halves = __builtin_convertvector(result, Halves);
    __builtin_memcpy(to + j, &halves, sizeof halves);
  }
  for (; j < n; ++j) to[j] = to_bf16(sums[j]);
}

// What both halves have in common: sums in f32.
struct Half : FloatTile {
  using P = F32;
  using In = Bits16;
  using Out = Bits16;
  using Sum = float;
  static constexpr bool copies_left = true, sums_are_results = false;
};

// Halves as f32 on the left; on the right too where the level widens with one instruction.
struct Widened : Half {
  using Left = float;
  static constexpr Index step = 1;
  static F32 splat(const float* a) { return RLX_LEVEL::splat(*a); }
  static F32 multiply_add(F32 x, F32 y, F32 sum) { return fma(x, y, sum); }
};

struct F16 : Widened {
  static float left(const Bits16* a, Index, Index) { return from_f16(*a); }
#if defined(__F16C__)
  using Right = Bits16;
  static constexpr bool plain_right = true;
  static Bits16 right(const Bits16* b, Index, Index) { return *b; }
#if defined(__AVX512F__)
  static F32 load(const Bits16* b) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)))};
  }
#else
  static F32 load(const Bits16* b) { return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)))}; }
#endif
  static void left_row(const Bits16* a, Index n, float* to) {
    Index k = 0;
    for (; k + F32::lanes <= n; k += F32::lanes) store(to + k, load(a + k));
    for (; k < n; ++k) to[k] = from_f16(a[k]);
  }
  static void results(const float* sums, Bits16* to, Index n) {
    Index j = 0;
    for (; j + 8 <= n; j += 8) {
      const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(sums + j), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + j), halves);
    }
    for (; j < n; ++j) to[j] = to_f16(sums[j]);
  }
#else
  using Right = float;
  static constexpr bool plain_right = false;
  static float right(const Bits16* b, Index, Index) { return from_f16(*b); }
  static F32 load(const float* b) { return RLX_LEVEL::load(b); }
#endif
  static Bits16 result(float sum) { return to_f16(sum); }
};

#if defined(__AVX512BF16__)

// Pairs of adjacent inner indices: one instruction adds both products to a sum.
struct Bf16 : Half {
  using Left = Bits32;
  using Right = Bits32;
  static constexpr Index step = 2;
  static constexpr bool plain_right = false;
  struct Pairs {
    __m512i v;
  };
  static Bits32 join(const Bits16* x, Index stride, Index n) {
    return n > 1 ? x[0] | static_cast<Bits32>(x[stride]) << 16 : x[0];
  }
  static Bits32 left(const Bits16* a, Index stride, Index n) { return join(a, stride, n); }
  static Bits32 right(const Bits16* b, Index stride, Index n) { return join(b, stride, n); }
  static void left_row(const Bits16* a, Index n, Bits32* to) {
    __builtin_memcpy(to, a, static_cast<Bits64>(n) * sizeof *a);
    if (n % 2) to[n / 2] = a[n - 1];
  }
  static Pairs splat(const Bits32* a) { return {_mm512_set1_epi32(static_cast<int>(*a))}; }
  static Pairs load(const Bits32* b) { return {_mm512_loadu_si512(b)}; }
  static F32 multiply_add(Pairs x, Pairs y, F32 sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(x.v), reinterpret_cast<__m512bh>(y.v))};
  }
  static void results(const float* sums, Bits16* to, Index n) { all_to_bf16(sums, to, n); }
};

#else

struct Bf16 : Widened {
  using Right = Bits16;
  static constexpr bool plain_right = true;
  static float left(const Bits16* a, Index, Index) { return as_float(static_cast<Bits32>(*a) << 16); }
  static Bits16 right(const Bits16* b, Index, Index) { return *b; }
#if defined(__AVX512F__)
  static F32 load(const Bits16* b) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
  }
#elif defined(__AVX2__)
  static F32 load(const Bits16* b) {
    const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
  }
#else
  static F32 load(const Bits16* b) {
    const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(b));
    return {_mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(half), 16))};
  }
#endif
  static void left_row(const Bits16* a, Index n, float* to) {
    Index k = 0;
    for (; k + F32::lanes <= n; k += F32::lanes) store(to + k, load(a + k));
    for (; k < n; ++k) to[k] = left(a + k, 1, 1);
  }
  static void results(const float* sums, Bits16* to, Index n) { all_to_bf16(sums, to, n); }
};

#endif

}  // namespace

const MatmulKernel matmul_f16 = kernel_of<F16>;
const MatmulKernel matmul_bf16 = kernel_of<Bf16>;

}  // namespace rlx::RLX_LEVEL
