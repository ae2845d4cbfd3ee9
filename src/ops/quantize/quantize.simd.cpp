// Kernels of quantize_rows, compiled once per level.
#include "core/simd_float.h"
#include "ops/quantize/quantize.kernel.h"

namespace rlx::RLX_LEVEL {

// Magnitudes of numbers are in the order of their bits, NaN after all others.
static Lanes32 larger(Lanes32 a, Lanes32 b) { return a > b ? a : b; }

template <class T>
static float largest_magnitude(const T* x, Index cols) {
  constexpr Index lanes = F32::lanes;
  Lanes32 most[4] = {};
  const auto bits_of = [](F32 v) { return to_bits(v) & 0x7FFFFFFFu; };
  Index c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) most[i] = larger(most[i], bits_of(load(x + c + i * lanes)));
  }
  for (; c + lanes <= cols; c += lanes) most[0] = larger(most[0], bits_of(load(x + c)));
  if (c < cols) most[1] = larger(most[1], bits_of(load(x + c, cols - c, splat(0.0f))));
  const Lanes32 all = larger(larger(most[0], most[1]), larger(most[2], most[3]));
  unsigned top = 0;
  for (Index i = 0; i < lanes; ++i) top = all[i] > top ? all[i] : top;
  return __builtin_bit_cast(float, top);
}

// The nearest integers, ties to even, of numbers of at most 127.4 in magnitude.
static void store_codes(signed char* to, F32 a) {
#if defined(__AVX512F__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
#elif defined(__AVX2__)
  const __m256i whole = _mm256_cvtps_epi32(a.v);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packs_epi16(words, words));
#else
  const __m128i words = _mm_packs_epi32(_mm_cvtps_epi32(a.v), _mm_setzero_si128());
  const int four = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
  __builtin_memcpy(to, &four, sizeof four);
#endif
}

template <class T>
static void quantize_rows_of(const void* from, signed char* codes, float* scales, long rows, long cols) {
  const T* x = static_cast<const T*>(from);
  for (Index r = 0; r < rows; ++r, x += cols, codes += cols) {
    const float most = largest_magnitude(x, cols);
    scales[r] = most / 127.0f;
    if (!(most >= 0x1p-120f && most <= 0x1.fffffep127f)) {
      __builtin_memset(codes, 0, static_cast<unsigned long>(cols));
      continue;
    }
    const F32 inverse = splat(127.0f / most);
    Index c = 0;
    for (; c + F32::lanes <= cols; c += F32::lanes) store_codes(codes + c, load(x + c) * inverse);
    if (c == cols) continue;
    signed char last[F32::lanes];
    store_codes(last, load(x + c, cols - c, splat(0.0f)) * inverse);
    __builtin_memcpy(codes + c, last, static_cast<unsigned long>(cols - c));
  }
}

// --- with zero points ---

struct Ends {
  float low, high;  // 0 among them
  bool has_nan;
};

template <class T>
static Ends ends_of(const T* x, Index cols) {
  constexpr Index lanes = F32::lanes;
  const F32 zero = splat(0.0f);
  F32 low[4] = {zero, zero, zero, zero}, high[4] = {zero, zero, zero, zero};
  Mask nan = less(zero, zero);
  const auto take = [&](int i, F32 v) __attribute__((always_inline)) {
    low[i] = min_or_second(v, low[i]);
    high[i] = max_or_second(v, high[i]);
    nan = nan | unordered(v, v);
  };
  Index c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) take(i, load(x + c + i * lanes));
  }
  for (; c + lanes <= cols; c += lanes) take(0, load(x + c));
  if (c < cols) take(1, load(x + c, cols - c, zero));
  const F32 bottom = min_or_second(min_or_second(low[0], low[1]), min_or_second(low[2], low[3]));
  const F32 top = max_or_second(max_or_second(high[0], high[1]), max_or_second(high[2], high[3]));
  return {fold(bottom, [](float a, float b) { return b < a ? b : a; }),
          fold(top, [](float a, float b) { return a < b ? b : a; }), any(nan)};
}

// The nearest integers, ties to even, of numbers of less than 2^15 in magnitude, plus `zero`, cut to 0..255.
static void store_codes(unsigned char* to, F32 a, int zero) {
#if defined(__AVX512F__)
  const __m512i all = _mm512_add_epi32(_mm512_cvtps_epi32(a.v), _mm512_set1_epi32(zero));
  const __m512i positive = _mm512_max_epi32(all, _mm512_setzero_si512());
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtusepi32_epi8(positive));
#elif defined(__AVX2__)
  const __m256i all = _mm256_add_epi32(_mm256_cvtps_epi32(a.v), _mm256_set1_epi32(zero));
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
#else
  const __m128i all = _mm_add_epi32(_mm_cvtps_epi32(a.v), _mm_set1_epi32(zero));
  const __m128i words = _mm_packs_epi32(all, all);
  const int four = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  __builtin_memcpy(to, &four, sizeof four);
#endif
}

template <class T>
static void zero_point_rows_of(const void* from, unsigned char* codes, float* scales, unsigned char* zeros, long rows,
                               long cols) {
  const T* x = static_cast<const T*>(from);
  for (Index r = 0; r < rows; ++r, x += cols, codes += cols) {
    const Ends ends = ends_of(x, cols);
    const float range = ends.has_nan ? __builtin_nanf("") : ends.high - ends.low;
    scales[r] = range / 255.0f;
    zeros[r] = 0;
    if (!(range >= 0x1p-120f && range <= 0x1.fffffep127f)) {
      __builtin_memset(codes, 0, static_cast<unsigned long>(cols));
      continue;
    }
    const F32 inverse = splat(255.0f / range);
    unsigned char last[F32::lanes];
    store_codes(last, splat(-ends.low) * inverse, 0);
    zeros[r] = last[0];
    const int zero = last[0];
    Index c = 0;
    for (; c + F32::lanes <= cols; c += F32::lanes) store_codes(codes + c, load(x + c) * inverse, zero);
    if (c == cols) continue;
    store_codes(last, load(x + c, cols - c, splat(0.0f)) * inverse, zero);
    __builtin_memcpy(codes + c, last, static_cast<unsigned long>(cols - c));
  }
}

const QuantizeRowsKernels quantize_rows_kernels{
    .rows = {quantize_rows_of<float>, quantize_rows_of<StoredF16>, quantize_rows_of<StoredBF16>},
    .zero_point_rows = {zero_point_rows_of<float>, zero_point_rows_of<StoredF16>, zero_point_rows_of<StoredBF16>}};

}  // namespace rlx::RLX_LEVEL
