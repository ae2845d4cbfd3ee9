// What the machine can do at most, at one level.
#include "core/machine_peak.kernel.h"
#include "core/simd.h"
#include "core/simd_f64.h"

namespace rlx::RLX_LEVEL {

// Enough to hide the latency of every instruction.
static constexpr int chains = 12;
static constexpr Index block = 8 * F32::lanes;

template <class P, class T>
static float sum_of(long steps) {
  P sum[chains];
  for (P& s : sum) s = splat(T(0.5));
  const P x = splat(T(0.999));
  for (long i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j) sum[j] = fma(sum[j], x, x);
  }
  P all = sum[0];
  for (int j = 1; j < chains; ++j) all = fma(sum[j], splat(T(1)), all);
  T lanes[P::lanes];
  store(lanes, all);
  return static_cast<float>(lanes[0]);
}

static constexpr MultiplyAddPeak peak_f32 = {sum_of<F32, float>, 2 * chains* F32::lanes};
static constexpr MultiplyAddPeak peak_f64 = {sum_of<F64, double>, 2 * chains* F64::lanes};

#if defined(__AVX512BF16__)
static float sum_bf16(long steps) {
  __m512 sum[chains];
  for (__m512& s : sum) s = _mm512_set1_ps(0.5f);
  const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.999f), _mm512_set1_ps(-0.999f));
  for (long i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j) sum[j] = _mm512_dpbf16_ps(sum[j], x, x);
  }
  for (int j = 1; j < chains; ++j) sum[0] = _mm512_add_ps(sum[0], sum[j]);
  return _mm512_cvtss_f32(sum[0]);
}
static constexpr MultiplyAddPeak peak_bf16 = {sum_bf16, 4 * chains * 16};
#else
static constexpr MultiplyAddPeak peak_bf16 = peak_f32;
#endif

#if defined(__AVX512VNNI__)
static float sum_i8(long steps) {
  __m512i sum[chains];
  for (__m512i& s : sum) s = _mm512_set1_epi32(1);
  const __m512i x = _mm512_set1_epi32(0x02FF0301);
  for (long i = 0; i < steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < chains; ++j) sum[j] = _mm512_dpbusd_epi32(sum[j], x, x);
  }
  for (int j = 1; j < chains; ++j) sum[0] = _mm512_add_epi32(sum[0], sum[j]);
  return static_cast<float>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum[0])));
}
static constexpr MultiplyAddPeak peak_i8 = {sum_i8, 8 * chains * 16};
#else
static constexpr MultiplyAddPeak peak_i8 = peak_f32;
#endif

static float read(const float* a, long count) {
  F32 sum[8];
  for (F32& s : sum) s = splat(0.0f);
  for (long i = 0; i < count; i += block) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) sum[j] = sum[j] + load(a + i + j * F32::lanes);
  }
  for (int j = 1; j < 8; ++j) sum[0] = sum[0] + sum[j];
  float lanes[F32::lanes];
  store(lanes, sum[0]);
  return lanes[0];
}

struct Cached {
  static void store(float* p, F32 a) { RLX_LEVEL::store(p, a); }
};

struct Streaming {
  static void store(float* p, F32 a) { stream(p, a); }
};

template <class To>
static void copy(const float* a, float* b, long count) {
  for (long i = 0; i < count; i += block) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) To::store(b + i + j * F32::lanes, load(a + i + j * F32::lanes));
  }
}

template <class To>
static void triad(const float* a, const float* b, float* c, long count) {
  const F32 factor = splat(0.5f);
  for (long i = 0; i < count; i += block) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
      const long at = i + j * F32::lanes;
      To::store(c + at, fma(load(b + at), factor, load(a + at)));
    }
  }
}

extern const MachinePeaks machine_peaks;
const MachinePeaks machine_peaks = {peak_f32,     peak_f64,        peak_bf16,     peak_i8,         read,
                                    copy<Cached>, copy<Streaming>, triad<Cached>, triad<Streaming>};

}  // namespace rlx::RLX_LEVEL
