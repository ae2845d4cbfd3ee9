// Packs of f32: one type a level, as wide as its registers, with arithmetic, comparisons and masks. Only *.simd.cpp
// files include this; everything stands in rlx::RLX_LEVEL, and no standard header is included, so that no symbol leaves
// the namespace. Functions other than exp are in simd_math.h.
#pragma once

#include <immintrin.h>

namespace rlx::RLX_LEVEL {

using Index = long;

// stream() writes a whole pack to a multiple of its size past the caches: for large results that nobody reads soon.
// stream_end() must follow before other threads read them.
//
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
inline void stream(float* p, F32 a) { _mm512_stream_ps(p, a.v); }
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
inline F32 sqrt(F32 a) { return {_mm512_sqrt_ps(a.v)}; }
inline F32 floor(F32 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
inline F32 ceil(F32 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
inline F32 trunc(F32 a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }

struct Mask {
  __mmask16 m;
};
inline Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.m & b.m)}; }
inline Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.m | b.m)}; }
inline Mask operator!(Mask a) { return {static_cast<__mmask16>(~a.m)}; }
inline bool any(Mask a) { return a.m != 0; }
inline Mask less(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask less_equal(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
inline Mask equal(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
inline Mask unordered(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q)}; }
inline F32 select(Mask c, F32 a, F32 b) { return {_mm512_mask_mov_ps(b.v, c.m, a.v)}; }
inline void store(unsigned char* p, Mask a, Index n) { _mm_mask_storeu_epi8(p, first(n), _mm_maskz_set1_epi8(a.m, 1)); }
inline void store(unsigned char* p, Mask a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_maskz_set1_epi8(a.m, 1));
}
inline Mask load_mask(const unsigned char* p) {
  const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm_test_epi8_mask(all, all)};
}
inline Mask load_mask(const unsigned char* p, Index n) {
  const __m128i all = _mm_maskz_loadu_epi8(first(n), p);
  return {_mm_test_epi8_mask(all, all)};
}

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
inline void stream(float* p, F32 a) { _mm256_stream_ps(p, a.v); }
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
inline F32 sqrt(F32 a) { return {_mm256_sqrt_ps(a.v)}; }
inline F32 floor(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
inline F32 ceil(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
inline F32 trunc(F32 a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }

struct Mask {
  __m256 m;
};
inline Mask operator&(Mask a, Mask b) { return {_mm256_and_ps(a.m, b.m)}; }
inline Mask operator|(Mask a, Mask b) { return {_mm256_or_ps(a.m, b.m)}; }
inline Mask operator!(Mask a) { return {_mm256_xor_ps(a.m, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
inline bool any(Mask a) { return _mm256_movemask_ps(a.m) != 0; }
inline Mask less(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask less_equal(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
inline Mask equal(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
inline Mask unordered(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_UNORD_Q)}; }
inline F32 select(Mask c, F32 a, F32 b) { return {_mm256_blendv_ps(b.v, a.v, c.m)}; }
inline unsigned lane_bits(Mask a) { return static_cast<unsigned>(_mm256_movemask_ps(a.m)); }
inline Mask mask_of(unsigned long long bytes) {
  const __m256i wide = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes)));
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(wide, _mm256_setzero_si256()))};
}

#else

struct F32 {
  static constexpr Index lanes = 4;
  __m128 v;
};
inline F32 splat(float x) { return {_mm_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm_loadu_ps(p)}; }
inline void store(float* p, F32 a) { _mm_storeu_ps(p, a.v); }
inline void stream(float* p, F32 a) { _mm_stream_ps(p, a.v); }
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
inline F32 sqrt(F32 a) { return {_mm_sqrt_ps(a.v)}; }
inline F32 floor(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
inline F32 ceil(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
inline F32 trunc(F32 a) { return {_mm_round_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }

struct Mask {
  __m128 m;
};
inline Mask operator&(Mask a, Mask b) { return {_mm_and_ps(a.m, b.m)}; }
inline Mask operator|(Mask a, Mask b) { return {_mm_or_ps(a.m, b.m)}; }
inline Mask operator!(Mask a) { return {_mm_xor_ps(a.m, _mm_castsi128_ps(_mm_set1_epi32(-1)))}; }
inline bool any(Mask a) { return _mm_movemask_ps(a.m) != 0; }
inline Mask less(F32 a, F32 b) { return {_mm_cmplt_ps(a.v, b.v)}; }
inline Mask less_equal(F32 a, F32 b) { return {_mm_cmple_ps(a.v, b.v)}; }
inline Mask equal(F32 a, F32 b) { return {_mm_cmpeq_ps(a.v, b.v)}; }
inline Mask unordered(F32 a, F32 b) { return {_mm_cmpunord_ps(a.v, b.v)}; }
inline F32 select(Mask c, F32 a, F32 b) { return {_mm_blendv_ps(b.v, a.v, c.m)}; }
inline unsigned lane_bits(Mask a) { return static_cast<unsigned>(_mm_movemask_ps(a.m)); }
inline Mask mask_of(unsigned long long bytes) {
  const __m128i wide = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(static_cast<int>(bytes)));
  return {_mm_castsi128_ps(_mm_cmpgt_epi32(wide, _mm_setzero_si128()))};
}

#endif

/// Whether stream() may write rows of `columns` elements from p on.
inline bool may_stream(const void* p, Index columns) {
  constexpr auto size = static_cast<Index>(sizeof(F32));
  return reinterpret_cast<unsigned long>(p) % sizeof(F32) == 0 &&
         columns * static_cast<Index>(sizeof(float)) % size == 0;
}
inline void stream_end() { _mm_sfence(); }

#if !defined(__AVX512F__)
// Masks in memory are one byte a lane, 0 or 1; any other byte than 0 reads as set.
inline void store(unsigned char* p, Mask a, Index n) {
  unsigned bits = lane_bits(a);
  for (Index i = 0; i < n; ++i, bits >>= 1) p[i] = bits & 1;
}
inline void store(unsigned char* p, Mask a) { store(p, a, F32::lanes); }
inline Mask load_mask(const unsigned char* p, Index n) {
  unsigned char all[8] = {};
  for (Index i = 0; i < n; ++i) all[i] = p[i];
  unsigned long long bytes = 0;
  __builtin_memcpy(&bytes, all, sizeof bytes);
  return mask_of(bytes);
}
inline Mask load_mask(const unsigned char* p) {
  unsigned long long bytes = 0;
  __builtin_memcpy(&bytes, p, F32::lanes);
  return mask_of(bytes);
}
#endif

// What each level defines above: max() is NaN if either operand is; max_or_second() and min_or_second() return the
// second operand if either is. times_power_of_two(a, n) is a·2^n for whole |n| <= 252, rounded once where the result is
// denormal.

// The lanes as bits: the compilers' vector types have the same operators at every level.
using Lanes32 = unsigned __attribute__((vector_size(sizeof(F32))));
inline F32 from_bits(Lanes32 b) { return {(decltype(F32::v))b}; }
inline Lanes32 to_bits(F32 a) { return (Lanes32)a.v; }
inline F32 operator-(F32 a) { return from_bits(to_bits(a) ^ 0x80000000u); }
inline F32 abs(F32 a) { return from_bits(to_bits(a) & 0x7FFFFFFFu); }
/// |a| with the sign of b.
inline F32 copysign(F32 a, F32 b) { return from_bits((to_bits(a) & 0x7FFFFFFFu) | (to_bits(b) & 0x80000000u)); }
inline F32 like(F32, double c) { return splat(static_cast<float>(c)); }

/// The larger and the smaller, the first at a tie; NaN when either is.
inline F32 maximum(F32 a, F32 b) { return select(unordered(b, b), b, max_or_second(b, a)); }
inline F32 minimum(F32 a, F32 b) { return select(unordered(b, b), b, min_or_second(b, a)); }
/// -1, 0 or 1; a zero keeps its sign, NaN stays NaN.
inline F32 sign(F32 a) {
  const F32 zero = splat(0.0f);
  return select(less(a, zero) | less(zero, a), copysign(splat(1.0f), a), a);
}

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
