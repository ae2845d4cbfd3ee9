// Packs of f64, half as many lanes as a pack of f32: in them f32 functions are computed whose f32 form would lose bits.
// Level-only, as simd.h.
#pragma once

#include "core/simd.h"

namespace rlx::RLX_LEVEL {

#if defined(__AVX512F__)

struct F64 {
  static constexpr Index lanes = 8;
  __m512d v;
};
struct Mask64 {
  __mmask8 m;
};
inline F64 splat(double x) { return {_mm512_set1_pd(x)}; }
inline F64 load(const double* p) { return {_mm512_loadu_pd(p)}; }
inline void store(double* p, F64 a) { _mm512_storeu_pd(p, a.v); }
inline F64 fma(F64 a, F64 b, F64 c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
inline F64 round(F64 a) { return {_mm512_roundscale_pd(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F64 trunc(F64 a) { return {_mm512_roundscale_pd(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
inline F64 max_or_second(F64 a, F64 b) { return {_mm512_max_pd(a.v, b.v)}; }
inline F64 min_or_second(F64 a, F64 b) { return {_mm512_min_pd(a.v, b.v)}; }
inline Mask64 operator&(Mask64 a, Mask64 b) { return {static_cast<__mmask8>(a.m & b.m)}; }
inline Mask64 operator|(Mask64 a, Mask64 b) { return {static_cast<__mmask8>(a.m | b.m)}; }
inline Mask64 operator!(Mask64 a) { return {static_cast<__mmask8>(~a.m)}; }
inline bool any(Mask64 a) { return a.m != 0; }
inline Mask64 less(F64 a, F64 b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask64 less_equal(F64 a, F64 b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_LE_OQ)}; }
inline Mask64 equal(F64 a, F64 b) { return {_mm512_cmp_pd_mask(a.v, b.v, _CMP_EQ_OQ)}; }
inline F64 select(Mask64 c, F64 a, F64 b) { return {_mm512_mask_mov_pd(b.v, c.m, a.v)}; }
inline F64 low_half(F32 a) { return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.v))}; }
inline F64 high_half(F32 a) { return {_mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1))}; }
inline F32 join(F64 low, F64 high) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low.v)), _mm512_cvtpd_ps(high.v), 1)};
}

#elif defined(__AVX2__)

struct F64 {
  static constexpr Index lanes = 4;
  __m256d v;
};
struct Mask64 {
  __m256d m;
};
inline F64 splat(double x) { return {_mm256_set1_pd(x)}; }
inline F64 load(const double* p) { return {_mm256_loadu_pd(p)}; }
inline void store(double* p, F64 a) { _mm256_storeu_pd(p, a.v); }
inline F64 fma(F64 a, F64 b, F64 c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
inline F64 round(F64 a) { return {_mm256_round_pd(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F64 trunc(F64 a) { return {_mm256_round_pd(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
inline F64 max_or_second(F64 a, F64 b) { return {_mm256_max_pd(a.v, b.v)}; }
inline F64 min_or_second(F64 a, F64 b) { return {_mm256_min_pd(a.v, b.v)}; }
inline Mask64 operator&(Mask64 a, Mask64 b) { return {_mm256_and_pd(a.m, b.m)}; }
inline Mask64 operator|(Mask64 a, Mask64 b) { return {_mm256_or_pd(a.m, b.m)}; }
inline Mask64 operator!(Mask64 a) { return {_mm256_xor_pd(a.m, _mm256_castsi256_pd(_mm256_set1_epi32(-1)))}; }
inline bool any(Mask64 a) { return _mm256_movemask_pd(a.m) != 0; }
inline Mask64 less(F64 a, F64 b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask64 less_equal(F64 a, F64 b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_LE_OQ)}; }
inline Mask64 equal(F64 a, F64 b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_EQ_OQ)}; }
inline F64 select(Mask64 c, F64 a, F64 b) { return {_mm256_blendv_pd(b.v, a.v, c.m)}; }
inline F64 low_half(F32 a) { return {_mm256_cvtps_pd(_mm256_castps256_ps128(a.v))}; }
inline F64 high_half(F32 a) { return {_mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1))}; }
inline F32 join(F64 low, F64 high) {
  return {_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(low.v)), _mm256_cvtpd_ps(high.v), 1)};
}

#else

struct F64 {
  static constexpr Index lanes = 2;
  __m128d v;
};
struct Mask64 {
  __m128d m;
};
inline F64 splat(double x) { return {_mm_set1_pd(x)}; }
inline F64 load(const double* p) { return {_mm_loadu_pd(p)}; }
inline void store(double* p, F64 a) { _mm_storeu_pd(p, a.v); }
/// This level has no fused instruction: the product is rounded too.
inline F64 fma(F64 a, F64 b, F64 c) { return {_mm_add_pd(_mm_mul_pd(a.v, b.v), c.v)}; }
inline F64 round(F64 a) { return {_mm_round_pd(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline F64 trunc(F64 a) { return {_mm_round_pd(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }
inline F64 max_or_second(F64 a, F64 b) { return {_mm_max_pd(a.v, b.v)}; }
inline F64 min_or_second(F64 a, F64 b) { return {_mm_min_pd(a.v, b.v)}; }
inline Mask64 operator&(Mask64 a, Mask64 b) { return {_mm_and_pd(a.m, b.m)}; }
inline Mask64 operator|(Mask64 a, Mask64 b) { return {_mm_or_pd(a.m, b.m)}; }
inline Mask64 operator!(Mask64 a) { return {_mm_xor_pd(a.m, _mm_castsi128_pd(_mm_set1_epi32(-1)))}; }
inline bool any(Mask64 a) { return _mm_movemask_pd(a.m) != 0; }
inline Mask64 less(F64 a, F64 b) { return {_mm_cmplt_pd(a.v, b.v)}; }
inline Mask64 less_equal(F64 a, F64 b) { return {_mm_cmple_pd(a.v, b.v)}; }
inline Mask64 equal(F64 a, F64 b) { return {_mm_cmpeq_pd(a.v, b.v)}; }
inline F64 select(Mask64 c, F64 a, F64 b) { return {_mm_blendv_pd(b.v, a.v, c.m)}; }
inline F64 low_half(F32 a) { return {_mm_cvtps_pd(a.v)}; }
inline F64 high_half(F32 a) { return {_mm_cvtps_pd(_mm_movehl_ps(a.v, a.v))}; }
inline F32 join(F64 low, F64 high) { return {_mm_movelh_ps(_mm_cvtpd_ps(low.v), _mm_cvtpd_ps(high.v))}; }

#endif

using Lanes64 = unsigned long long __attribute__((vector_size(sizeof(F64))));
inline F64 from_bits(Lanes64 b) { return {(decltype(F64::v))b}; }
inline Lanes64 to_bits(F64 a) { return (Lanes64)a.v; }
inline F64 operator+(F64 a, F64 b) { return {a.v + b.v}; }
inline F64 operator-(F64 a, F64 b) { return {a.v - b.v}; }
inline F64 operator*(F64 a, F64 b) { return {a.v * b.v}; }
inline F64 operator/(F64 a, F64 b) { return {a.v / b.v}; }
inline constexpr unsigned long long sign64 = 1ull << 63;
inline F64 operator-(F64 a) { return from_bits(to_bits(a) ^ sign64); }
inline F64 abs(F64 a) { return from_bits(to_bits(a) & ~sign64); }
/// |a| with the sign of b.
inline F64 copysign(F64 a, F64 b) { return from_bits((to_bits(a) & ~sign64) | (to_bits(b) & sign64)); }
inline F64 like(F64, double c) { return splat(c); }
inline F64 maximum(F64 a, F64 b) { return select(!equal(b, b), b, max_or_second(b, a)); }
inline F64 minimum(F64 a, F64 b) { return select(!equal(b, b), b, min_or_second(b, a)); }

/// 2^n for whole n, -1022 <= n <= 1023: the sum holds n + 1023 in its low bits.
inline F64 power_of_two(F64 n) { return from_bits(to_bits(n + splat(0x1.8p52 + 1023)) << 52); }

/// The polynomial with these coefficients, the highest power first, in packs of either type.
template <class P, class T, int n>
inline P polynomial(P x, const T (&c)[n]) {
  P y = splat(c[0]);
  for (int i = 1; i < n; ++i) y = fma(y, x, splat(c[i]));
  return y;
}

/// A function of f64 packs on both halves of an f32 pack; the result is rounded once.
template <class F>
inline F32 in_f64(F32 x, F f) {
  return join(f(low_half(x)), f(high_half(x)));
}
template <class F>
inline F32 in_f64(F32 x, F32 y, F f) {
  return join(f(low_half(x), low_half(y)), f(high_half(x), high_half(y)));
}

}  // namespace rlx::RLX_LEVEL
