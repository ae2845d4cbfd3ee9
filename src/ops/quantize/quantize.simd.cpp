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

const QuantizeRowsKernels quantize_rows_kernels{
    .rows = {quantize_rows_of<float>, quantize_rows_of<StoredF16>, quantize_rows_of<StoredBF16>}};

}  // namespace rlx::RLX_LEVEL
