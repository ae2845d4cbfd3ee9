// What benchmarks of one thread compare with: the peak of multiply-add in registers; and the time of a thread.
#pragma once

#include <immintrin.h>

#include <ctime>

#include "core/levels.h"

namespace rlx::bench {

/// Processor time of this thread, so that other programs count less.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline constexpr int probe_chains = 12;  // enough to hide the latency
inline constexpr long probe_steps = 200'000;
inline volatile float probe_result;

/// Operations of one probe.
inline double probe_flops(Level level) {
  const double lanes = level >= Level::v4 ? 16 : level == Level::v3 ? 8 : 4;
  return 2.0 * probe_chains * probe_steps * lanes;
}

[[gnu::target("avx512f")]] inline void probe_avx512() {
  __m512 sum[probe_chains];
  for (__m512& s : sum) s = _mm512_set1_ps(0.5f);
  const __m512 x = _mm512_set1_ps(0.999f);
  for (long i = 0; i < probe_steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < probe_chains; ++j) sum[j] = _mm512_fmadd_ps(sum[j], x, x);
  }
  for (const __m512& s : sum) probe_result = probe_result + _mm512_cvtss_f32(s);
}

[[gnu::target("avx2,fma")]] inline void probe_avx2() {
  __m256 sum[probe_chains];
  for (__m256& s : sum) s = _mm256_set1_ps(0.5f);
  const __m256 x = _mm256_set1_ps(0.999f);
  for (long i = 0; i < probe_steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < probe_chains; ++j) sum[j] = _mm256_fmadd_ps(sum[j], x, x);
  }
  for (const __m256& s : sum) probe_result = probe_result + _mm256_cvtss_f32(s);
}

inline void probe_sse() {
  __m128 sum[probe_chains];
  for (__m128& s : sum) s = _mm_set1_ps(0.5f);
  const __m128 x = _mm_set1_ps(0.999f);
  for (long i = 0; i < probe_steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < probe_chains; ++j) sum[j] = _mm_add_ps(_mm_mul_ps(sum[j], x), x);
  }
  for (const __m128& s : sum) probe_result = probe_result + _mm_cvtss_f32(s);
}

/// Chains of multiply-add in the registers of a level.
inline void probe(Level level) {
  if (level >= Level::v4) return probe_avx512();
  if (level == Level::v3) return probe_avx2();
  probe_sse();
}

}  // namespace rlx::bench
