// Packs of f32: one type a level, as wide as its registers, and the maths over them. Only *.simd.cpp files include
// this; everything stands in rlx::RLX_LEVEL, and no standard header is included, so that no symbol leaves the
// namespace.
#pragma once

#include <immintrin.h>

namespace rlx::RLX_LEVEL {

using Index = long;

// A tail is a pack of which only the first n lanes, 0 < n < lanes, exist in memory. Loading fills the others with
// `fill`.

#if defined(__AVX512F__)

struct F32 {
  static constexpr Index lanes = 16;
  __m512 v;
};
inline __mmask16 first(Index n) { return static_cast<__mmask16>((1u << n) - 1); }
inline F32 splat(float x) { return {_mm512_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline F32 load(const float* p, Index n, F32 fill) { return {_mm512_mask_loadu_ps(fill.v, first(n), p)}; }
inline void store(float* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline void store(float* p, F32 a, Index n) { _mm512_mask_storeu_ps(p, first(n), a.v); }
inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 round(F32 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F32 max_or_second(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F32 min_or_second(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F32 max(F32 a, F32 b) {
  return {_mm512_mask_mov_ps(_mm512_max_ps(a.v, b.v), _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q), a.v)};
}
inline F32 times_power_of_two(F32 a, F32 n) { return {_mm512_scalef_ps(a.v, n.v)}; }

#elif defined(__AVX2__)

struct F32 {
  static constexpr Index lanes = 8;
  __m256 v;
};
inline __m256i first(Index n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline F32 splat(float x) { return {_mm256_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline F32 load(const float* p, Index n, F32 fill) {
  const __m256i mask = first(n);
  return {_mm256_blendv_ps(fill.v, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask))};
}
inline void store(float* p, F32 a) { _mm256_storeu_ps(p, a.v); }
inline void store(float* p, F32 a, Index n) { _mm256_maskstore_ps(p, first(n), a.v); }
inline F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 round(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F32 max_or_second(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
inline F32 min_or_second(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
inline F32 max(F32 a, F32 b) {
  return {_mm256_blendv_ps(_mm256_max_ps(a.v, b.v), a.v, _mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q))};
}
/// 2^n by its exponent bits, -127 < n < 128.
inline F32 power_of_two(__m256i n) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23))};
}
inline F32 times_power_of_two(F32 a, F32 n) {
  const __m256i all = _mm256_cvtps_epi32(n.v);
  const __m256i half = _mm256_srai_epi32(all, 1);
  return a * power_of_two(half) * power_of_two(_mm256_sub_epi32(all, half));
}

#else

struct F32 {
  static constexpr Index lanes = 4;
  __m128 v;
};
inline F32 splat(float x) { return {_mm_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm_loadu_ps(p)}; }
inline void store(float* p, F32 a) { _mm_storeu_ps(p, a.v); }
inline F32 load(const float* p, Index n, F32 fill) {
  float all[4];
  store(all, fill);
  for (Index i = 0; i < n; ++i) all[i] = p[i];
  return load(all);
}
inline void store(float* p, F32 a, Index n) {
  float all[4];
  store(all, a);
  for (Index i = 0; i < n; ++i) p[i] = all[i];
}
inline F32 operator+(F32 a, F32 b) { return {_mm_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm_div_ps(a.v, b.v)}; }
/// This level has no fused instruction: the product is rounded too.
inline F32 fma(F32 a, F32 b, F32 c) { return a * b + c; }
inline F32 round(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F32 max_or_second(F32 a, F32 b) { return {_mm_max_ps(a.v, b.v)}; }
inline F32 min_or_second(F32 a, F32 b) { return {_mm_min_ps(a.v, b.v)}; }
inline F32 max(F32 a, F32 b) { return {_mm_blendv_ps(_mm_max_ps(a.v, b.v), a.v, _mm_cmpunord_ps(a.v, a.v))}; }
/// 2^n by its exponent bits, -127 < n < 128.
inline F32 power_of_two(__m128i n) {
  return {_mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(n, _mm_set1_epi32(127)), 23))};
}
inline F32 times_power_of_two(F32 a, F32 n) {
  const __m128i all = _mm_cvtps_epi32(n.v);
  const __m128i half = _mm_srai_epi32(all, 1);
  return a * power_of_two(half) * power_of_two(_mm_sub_epi32(all, half));
}

#endif

// What each level defines above: max() is NaN if either operand is; max_or_second() and min_or_second() return the
// second operand if either is. times_power_of_two(a, n) is a·2^n for whole |n| <= 252, rounded once where the result is
// denormal.

/// e^x within 2 ulp for every x, denormal results included: 2^n · e^r with n = round(x / ln 2), |r| <= ln(2) / 2.
inline F32 exp(F32 x) {
  // Outside these bounds the result is 0 or infinity; NaN passes as the second operand.
  x = max_or_second(splat(-104.0f), min_or_second(splat(89.0f), x));
  const F32 n = round(x * splat(1.44269504f));
  // ln 2 in two parts: n times the first is exact, having 9 bits less than f32 holds.
  F32 r = fma(n, splat(-0x1.62e4p-1f), x);
  r = fma(n, splat(-0x1.7f7d1cp-20f), r);
  // e^r = 1 + r + r²·q(r); q is the minimax polynomial, its error 2^-29 of e^r.
  F32 q = splat(0.00138148f);
  q = fma(q, r, splat(0.00836872614f));
  q = fma(q, r, splat(0.0416683821f));
  q = fma(q, r, splat(0.166665207f));
  q = fma(q, r, splat(0.499999935f));
  return times_power_of_two(splat(1.0f) + fma(q, r * r, r), n);
}

/// Joins the lanes with f, first to last.
template <class F>
inline float fold(F32 a, F f) {
  float all[F32::lanes];
  store(all, a);
  float joined = all[0];
  for (Index i = 1; i < F32::lanes; ++i) joined = f(joined, all[i]);
  return joined;
}

}  // namespace rlx::RLX_LEVEL
