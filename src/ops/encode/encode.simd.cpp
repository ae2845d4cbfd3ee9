// Kernels of encode, compiled once per level.
#include "core/simd_float.h"
#include "ops/encode/encode.kernel.h"

namespace rlx::RLX_LEVEL {

// The form of a block, as codecs/a8/a8.h has it.
static constexpr Index block = 32, block_bytes = 48;
static constexpr float least = 0x1p-100F;

struct Sums {
  int all, first;
};

#if defined(__AVX512F__)

// Codes of 32 numbers, their sum, and that of the first 16.
static Sums store_codes(signed char* to, const float* x, float inverse) {
  const __m512 by = _mm512_set1_ps(inverse);
  const __m512i low = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), by));
  const __m512i high = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), by));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(low));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), _mm512_cvtepi32_epi8(high));
  const int first = _mm512_reduce_add_epi32(low);
  return {first + _mm512_reduce_add_epi32(high), first};
}
static unsigned largest(const float* x) {
  const __m512i mask = _mm512_set1_epi32(0x7FFFFFFF);
  const __m512i low = _mm512_and_si512(_mm512_loadu_si512(x), mask);
  const __m512i high = _mm512_and_si512(_mm512_loadu_si512(x + 16), mask);
  return static_cast<unsigned>(_mm512_reduce_max_epi32(_mm512_max_epi32(low, high)));
}

#else

static unsigned largest(const float* x) {
  Lanes32 most{};
  for (Index i = 0; i < block; i += F32::lanes) {
    const Lanes32 magnitude = to_bits(load(x + i)) & 0x7FFFFFFFu;
    most = magnitude > most ? magnitude : most;
  }
  unsigned top = 0;
  for (Index i = 0; i < F32::lanes; ++i) top = most[i] > top ? most[i] : top;
  return top;
}
static Sums store_codes(signed char* to, const float* x, float inverse) {
  Sums sums{};
  const __m128 by = _mm_set1_ps(inverse);
  for (Index i = 0; i < block; i += 4) {
    const __m128i whole = _mm_cvtps_epi32(_mm_mul_ps(_mm_loadu_ps(x + i), by));
    const __m128i words = _mm_packs_epi32(whole, whole);
    const int four = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
    __builtin_memcpy(to + i, &four, sizeof four);
  }
  for (Index i = 0; i < block; ++i) sums.all += to[i];
  for (Index i = 0; i < block / 2; ++i) sums.first += to[i];
  return sums;
}

#endif

static void encode_a8(const float* x, void* to, long blocks) {
  auto* at = static_cast<signed char*>(to);
  for (long b = 0; b < blocks; ++b, x += block, at += block_bytes) {
    const float top = __builtin_bit_cast(float, largest(x));
    float scale = top / 127.0F;
    Sums sums{};
    if (top >= least && top <= 0x1.fffffep127F) {
      sums = store_codes(at, x, 127.0F / top);
    } else {
      __builtin_memset(at, 0, block);
      scale = top < least ? 0.0F : __builtin_nanf("");
    }
    const float scaled_sum = scale * static_cast<float>(sums.all);
    const int negative[] = {-sums.all, -sums.first};
    __builtin_memcpy(at + block, &scale, sizeof scale);
    __builtin_memcpy(at + block + 4, &scaled_sum, sizeof scaled_sum);
    __builtin_memcpy(at + block + 8, negative, sizeof negative);
  }
}

const EncodeKernels encode_kernels{.a8 = encode_a8};

}  // namespace rlx::RLX_LEVEL
