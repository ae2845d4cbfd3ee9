// Packs of integers for products of codes: bytes, and sums of 32 bits, of one level.
#pragma once

#include "core/simd_float.h"

namespace rlx::RLX_LEVEL {

#if defined(__AVX512F__)
using Raw = __m512i;
#elif defined(__AVX2__)
using Raw = __m256i;
#else
using Raw = __m128i;
#endif

inline Raw load_raw(const char* p) {
  Raw r;
  __builtin_memcpy(&r, p, sizeof r);
  return r;
}

#if defined(__AVX512F__)
inline Raw splat_raw(int x) { return _mm512_set1_epi32(x); }
inline Raw splat_bytes(char x) { return _mm512_set1_epi8(x); }
inline Raw both(Raw a, Raw b) { return _mm512_and_si512(a, b); }
/// (a & b) | c
inline Raw both_or(Raw a, Raw b, Raw c) { return _mm512_ternarylogic_epi32(a, b, c, 0xEA); }
template <int n>
inline Raw down(Raw a) {
  return _mm512_srli_epi16(a, n);
}
template <int n>
inline Raw up(Raw a) {
  return _mm512_slli_epi16(a, n);
}
template <int n>
inline Raw up32(Raw a) {
  return _mm512_slli_epi32(a, n);
}
inline Raw signed_down8(Raw a) { return _mm512_srai_epi16(a, 8); }
inline Raw look_up(Raw table, Raw at) { return _mm512_shuffle_epi8(table, at); }
inline Raw table_of(const signed char* p) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Raw add32(Raw a, Raw b) { return _mm512_add_epi32(a, b); }
inline Raw sub8(Raw a, Raw b) { return _mm512_sub_epi8(a, b); }
template <int n>
inline Raw signed_down32(Raw a) {
  return _mm512_srai_epi32(a, n);
}
inline Raw multiply_bytes(Raw u, Raw s) { return _mm512_maddubs_epi16(u, s); }
inline Raw multiply_pairs(Raw a, Raw b) { return _mm512_madd_epi16(a, b); }
inline F32 to_floats(Raw a) { return {_mm512_cvtepi32_ps(a)}; }
/// Integers of 8 bits as f32.
inline F32 small_integers(const signed char* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
#elif defined(__AVX2__)
inline Raw splat_raw(int x) { return _mm256_set1_epi32(x); }
inline Raw splat_bytes(char x) { return _mm256_set1_epi8(x); }
inline Raw both(Raw a, Raw b) { return _mm256_and_si256(a, b); }
inline Raw both_or(Raw a, Raw b, Raw c) { return _mm256_or_si256(_mm256_and_si256(a, b), c); }
template <int n>
inline Raw down(Raw a) {
  return _mm256_srli_epi16(a, n);
}
template <int n>
inline Raw up(Raw a) {
  return _mm256_slli_epi16(a, n);
}
template <int n>
inline Raw up32(Raw a) {
  return _mm256_slli_epi32(a, n);
}
inline Raw signed_down8(Raw a) { return _mm256_srai_epi16(a, 8); }
inline Raw look_up(Raw table, Raw at) { return _mm256_shuffle_epi8(table, at); }
inline Raw table_of(const signed char* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Raw add32(Raw a, Raw b) { return _mm256_add_epi32(a, b); }
inline Raw sub8(Raw a, Raw b) { return _mm256_sub_epi8(a, b); }
template <int n>
inline Raw signed_down32(Raw a) {
  return _mm256_srai_epi32(a, n);
}
inline Raw multiply_bytes(Raw u, Raw s) { return _mm256_maddubs_epi16(u, s); }
inline Raw multiply_pairs(Raw a, Raw b) { return _mm256_madd_epi16(a, b); }
inline F32 to_floats(Raw a) { return {_mm256_cvtepi32_ps(a)}; }
inline F32 small_integers(const signed char* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
#else
inline Raw splat_raw(int x) { return _mm_set1_epi32(x); }
inline Raw splat_bytes(char x) { return _mm_set1_epi8(x); }
inline Raw both(Raw a, Raw b) { return _mm_and_si128(a, b); }
inline Raw both_or(Raw a, Raw b, Raw c) { return _mm_or_si128(_mm_and_si128(a, b), c); }
template <int n>
inline Raw down(Raw a) {
  return _mm_srli_epi16(a, n);
}
template <int n>
inline Raw up(Raw a) {
  return _mm_slli_epi16(a, n);
}
template <int n>
inline Raw up32(Raw a) {
  return _mm_slli_epi32(a, n);
}
inline Raw signed_down8(Raw a) { return _mm_srai_epi16(a, 8); }
inline Raw look_up(Raw table, Raw at) { return _mm_shuffle_epi8(table, at); }
inline Raw table_of(const signed char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline Raw add32(Raw a, Raw b) { return _mm_add_epi32(a, b); }
inline Raw sub8(Raw a, Raw b) { return _mm_sub_epi8(a, b); }
template <int n>
inline Raw signed_down32(Raw a) {
  return _mm_srai_epi32(a, n);
}
inline Raw multiply_bytes(Raw u, Raw s) { return _mm_maddubs_epi16(u, s); }
inline Raw multiply_pairs(Raw a, Raw b) { return _mm_madd_epi16(a, b); }
inline F32 to_floats(Raw a) { return {_mm_cvtepi32_ps(a)}; }
inline F32 small_integers(const signed char* p) {
  int four;
  __builtin_memcpy(&four, p, sizeof four);
  return {_mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)))};
}
#endif

/// Signed byte i of each i32.
template <int i>
inline Raw byte_of(Raw a) {
  if constexpr (i == 3) return signed_down32<24>(a);
  return signed_down32<24>(up32<24 - 8 * i>(a));
}

/// Signed bytes as unsigned ones, 128 more.
inline Raw with_bias(Raw a) { return a ^ splat_bytes(static_cast<char>(-128)); }

/// A broadcast of four codes of activations, in the form that add_products() wants.
struct Four {
  Raw v;
};
inline Four load_four(const char* p) {
  int four;
  __builtin_memcpy(&four, p, sizeof four);
  return {splat_raw(four)};
}

/// Adds to each i32 the four products of the unsigned bytes `u` by the signed ones `x` that stand there. Without
/// `wide`, `u` is at most 64.
template <bool wide>
inline Raw add_products(Raw sum, Raw u, Four x) {
#if defined(__AVX512VNNI__)
  return _mm512_dpbusd_epi32(sum, u, x.v);
#else
  if constexpr (wide) {
    const Raw even = both(u, splat_raw(0x00FF00FF)), odd = down<8>(u);
    return add32(sum, add32(multiply_pairs(even, signed_down8(up<8>(x.v))), multiply_pairs(odd, signed_down8(x.v))));
  } else {
    return add32(sum, multiply_pairs(multiply_bytes(u, x.v), splat_raw(0x00010001)));
  }
#endif
}

}  // namespace rlx::RLX_LEVEL
