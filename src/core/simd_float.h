// f16 and bf16 in memory as packs of f32, and sums of f32 packs held in f64. Only *.simd.cpp files include this.
#pragma once

#include "core/simd.h"

namespace rlx::RLX_LEVEL {

/// An f16 or bf16 element as it lies in memory.
struct StoredF16 {
  unsigned short bits;
};
struct StoredBF16 {
  unsigned short bits;
};

inline float as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned as_bits(float x) { return __builtin_bit_cast(unsigned, x); }

/// To f32; exact.
inline float widen(StoredBF16 h) { return as_float(static_cast<unsigned>(h.bits) << 16); }
inline float widen(StoredF16 h) {
  const unsigned size = h.bits & 0x7FFFu;
  // The exponents differ by 112; the product is exact for denormals too.
  unsigned bits = as_bits(as_float(size << 13) * 0x1p112f);
  if (size >= 0x7C00u) bits |= 0x7F800000u;
  return as_float(bits | (h.bits & 0x8000u) << 16);
}

/// From f32: nearest, ties to even; too large becomes infinity; NaN stays NaN.
inline void narrow(float x, StoredBF16& to) {
  const unsigned bits = as_bits(x);
  const unsigned rounded = x == x ? bits + 0x7FFFu + (bits >> 16 & 1u) : bits | 0x400000u;
  to.bits = static_cast<unsigned short>(rounded >> 16);
}
inline void narrow(float x, StoredF16& to) {
  const unsigned sign = as_bits(x) >> 16 & 0x8000u, size = as_bits(x) & 0x7FFFFFFFu;
  unsigned half;
  if (size > 0x7F800000u) {
    half = 0x7E00u;
  } else if (size >= 0x477FF000u) {  // 65520 and above
    half = 0x7C00u;
  } else if (size < 0x38800000u) {  // below 2^-14: the unit of 0.5 is that of denormal halves
    half = as_bits(as_float(size) + 0.5f) - as_bits(0.5f);
  } else {
    half = (size - 0x38000000u + 0xFFFu + (size >> 13 & 1u)) >> 13;
  }
  to.bits = static_cast<unsigned short>(sign | half);
}

// Packs of halves: load and store as for f32.

#if defined(__AVX512F__)

inline F32 load(const StoredF16* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline F32 load(const StoredF16* p, Index n, F32 fill) {
  return {_mm512_mask_cvtph_ps(fill.v, first(n), _mm256_maskz_loadu_epi16(first(n), p))};
}
inline __m256i halves_of(F32 a) { return _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline void store(StoredF16* p, F32 a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), halves_of(a)); }
inline void store(StoredF16* p, F32 a, Index n) { _mm256_mask_storeu_epi16(p, first(n), halves_of(a)); }

inline __m512 from_bf16(__m256i h) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16)); }
inline __m256i to_bf16(F32 a) {
#if defined(__AVX512BF16__)
  // The instruction takes denormals for 0.
  constexpr int denormal = 0x20;
  if (__builtin_expect(_mm512_fpclass_ps_mask(a.v, denormal) == 0, true)) {
    return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.v));
  }
#endif
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i all = _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(all, 16));
}
inline F32 load(const StoredBF16* p) { return {from_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))}; }
inline F32 load(const StoredBF16* p, Index n, F32 fill) {
  return {_mm512_mask_mov_ps(fill.v, first(n), from_bf16(_mm256_maskz_loadu_epi16(first(n), p)))};
}
inline void store(StoredBF16* p, F32 a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(a)); }
inline void store(StoredBF16* p, F32 a, Index n) { _mm256_mask_storeu_epi16(p, first(n), to_bf16(a)); }

#else

#if defined(__AVX2__)

inline F32 load(const StoredF16* p) { return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
inline void store(StoredF16* p, F32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline F32 load(const StoredBF16* p) {
  const __m128i h = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16))};
}
inline void store(StoredBF16* p, F32 a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i all = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}

#else

inline F32 load(const StoredF16* p) { return {_mm_setr_ps(widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3]))}; }
inline F32 load(const StoredBF16* p) { return {_mm_setr_ps(widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3]))}; }
inline void store(StoredF16* p, F32 a) {
  float all[4];
  store(all, a);
  for (int i = 0; i < 4; ++i) narrow(all[i], p[i]);
}
inline void store(StoredBF16* p, F32 a) {
  float all[4];
  store(all, a);
  for (int i = 0; i < 4; ++i) narrow(all[i], p[i]);
}

#endif

template <class T>
inline F32 load_half_tail(const T* p, Index n, F32 fill) {
  float all[F32::lanes];
  store(all, fill);
  for (Index i = 0; i < n; ++i) all[i] = widen(p[i]);
  return load(all);
}
template <class T>
inline void store_half_tail(T* p, F32 a, Index n) {
  float all[F32::lanes];
  store(all, a);
  for (Index i = 0; i < n; ++i) narrow(all[i], p[i]);
}
inline F32 load(const StoredF16* p, Index n, F32 fill) { return load_half_tail(p, n, fill); }
inline F32 load(const StoredBF16* p, Index n, F32 fill) { return load_half_tail(p, n, fill); }
inline void store(StoredF16* p, F32 a, Index n) { store_half_tail(p, a, n); }
inline void store(StoredBF16* p, F32 a, Index n) { store_half_tail(p, a, n); }

#endif

/// Sums of f32 lanes, each held in f64.
struct WideSum {
#if defined(__AVX512F__)
  using Pack = __m512d;
  static Pack zero() { return _mm512_setzero_pd(); }
  static Pack low(F32 a) { return _mm512_cvtps_pd(_mm512_castps512_ps256(a.v)); }
  static Pack high(F32 a) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1)); }
#elif defined(__AVX2__)
  using Pack = __m256d;
  static Pack zero() { return _mm256_setzero_pd(); }
  static Pack low(F32 a) { return _mm256_cvtps_pd(_mm256_castps256_ps128(a.v)); }
  static Pack high(F32 a) { return _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1)); }
#else
  using Pack = __m128d;
  static Pack zero() { return _mm_setzero_pd(); }
  static Pack low(F32 a) { return _mm_cvtps_pd(a.v); }
  static Pack high(F32 a) { return _mm_cvtps_pd(_mm_movehl_ps(a.v, a.v)); }
#endif
  Pack a = zero(), b = zero();
  void add(F32 x) {
    a = a + low(x);
    b = b + high(x);
  }
  void add_square(F32 x) {
    const Pack l = low(x), h = high(x);
    a = a + l * l;
    b = b + h * h;
  }
  void add(const WideSum& other) {
    a = a + other.a;
    b = b + other.b;
  }
  /// Of all lanes: halves are added until one is left.
  double total() const {
    const Pack sum = a + b;
#if defined(__AVX512F__)
    return _mm512_reduce_add_pd(sum);
#elif defined(__AVX2__)
    const __m128d two = _mm256_castpd256_pd128(sum) + _mm256_extractf128_pd(sum, 1);
    return two[0] + two[1];
#else
    return sum[0] + sum[1];
#endif
  }
};

}  // namespace rlx::RLX_LEVEL
