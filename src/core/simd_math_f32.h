// Functions of f32 packs computed wholly in f32, for levels with a fused multiply-add: the same operations, and so the
// same bits, at all of them. Included by simd_math.h only; level-only, as simd.h.
//
// Coefficients, unless said otherwise: minimax fits on 300 to 500 Chebyshev nodes against 40-digit values, each a
// linear programme (quotients: repeated ones, weighted by the last denominator); they are rounded to f32 one after the
// other, lowest power first, the rest fitted anew each time. The error stated is that of the rounded coefficients,
// relative to the function.
#pragma once

#include "core/simd_f64.h"

namespace rlx::RLX_LEVEL {

/// Added to a number within ±2^21, it leaves the nearest whole number in the low bits.
inline constexpr float whole_in_low_bits = 0x1.8p23f;
inline constexpr float log2_e = 0x1.715476p0f;

/// y·2^n, where n are the low bits of `whole`; y, and the result, are normal.
inline F32 shift_exponent(F32 y, F32 whole) { return from_bits(to_bits(y) + (to_bits(whole) << 23)); }

/// 2^f - 1 within 2^-26, |f| <= 1/2.
inline F32 exp2m1_near_zero(F32 f) {
  static constexpr float p[] = {0x1.42a2a6p-13f, 0x1.5ef01ep-10f, 0x1.3b2c32p-7f,
                                0x1.c6afa6p-5f,  0x1.ebfbdep-3f,  0x1.62e43p-1f};
  return f * polynomial(f, p);
}

/// Hyperbolic tangent within 4 ulp: with e = e^(2|x|) - 1, e / (e + 2).
inline F32 tanh(F32 x) {
  const F32 one = splat(1.0f), twice = splat(2 * log2_e), magic = splat(whole_in_low_bits);
  const F32 t = min_or_second(splat(10.0f), abs(x));  // beyond, the result is 1
  const F32 whole = fma(t, twice, magic), f = fma(t, twice, magic - whole);
  const F32 scale = shift_exponent(one, whole);
  const F32 e = fma(scale, exp2m1_near_zero(f), scale - one);
  return copysign(e / (e + splat(2.0f)), x);
}

/// erf within 4 ulp: up to 1, x + x·p(x²); beyond, 1 - 2^q(|x|). p is within 2^-29 of erf x / x, the power within 2^-29
/// absolutely up to 4, where the result has reached 1.
inline F32 erf(F32 x) {
  static constexpr float p[] = {0x1.4771fep-14f, -0x1.a3515ep-11f, 0x1.53f224p-8f, -0x1.b7f71ap-6f,
                                0x1.ce2ce6p-4f,  -0x1.81273ep-2f,  0x1.06eba8p-3f};
  static constexpr float q[] = {0x1.18ba6p-12f,  -0x1.15eecp-8f, 0x1.01b4b4p-5f,  -0x1.306ffap-3f,
                                -0x1.d76e94p-1f, -0x1.a03fe2p0f, -0x1.0b95d8p-11f};
  const F32 one = splat(1.0f), magic = splat(whole_in_low_bits);
  const F32 t = min_or_second(splat(4.0f), abs(x));
  const Mask beyond = less(one, t);
  const F32 v = select(beyond, t, t * t);
  F32 y = select(beyond, splat(q[0]), splat(p[0]));
#pragma GCC unroll 6
  for (int i = 1; i < 7; ++i) y = fma(y, v, select(beyond, splat(q[i]), splat(p[i])));
  const F32 whole = y + magic;
  const F32 power = shift_exponent(one + exp2m1_near_zero(y - (whole - magic)), whole);
  return copysign(select(beyond, one - power, fma(t, y, t)), x);
}

/// table[n] for the low four bits n of each lane of `which`; the table is aligned to 64 bytes.
inline F32 lookup16(const float* table, Lanes32 which) {
#if defined(__AVX512F__)
  return {_mm512_permutexvar_ps((__m512i)which, _mm512_load_ps(table))};
#else
  const __m256i n = (__m256i)which;
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_load_ps(table), n),
               high = _mm256_permutevar8x32_ps(_mm256_load_ps(table + 8), n);
  return {_mm256_blendv_ps(low, high, (__m256)(which << 28))};
#endif
}

/// x·Phi(x), Phi the normal distribution, within 4 ulp of the larger of |result| and 2^-24·|x|: max(x, 0) -
/// |x|·Phi(-|x|), the latter as 16 polynomials of degree 9 around the multiples of 17/32, relatively within 2^-24.2 of
/// max(Phi, 2^-24); from 7.7 on it is 0. The fits are iteratively reweighted least squares against 40-digit values at
/// 200 Chebyshev nodes, rounded as described above.
inline F32 gelu(F32 x) {
  alignas(64) static constexpr float phi[10][16] = {
      {-0x1.fd3204p-2f, 0x1.077302p-5f, 0x1.1f81b4p-5f, 0x1.011c76p-6f, -0x1.7882a4p-8f, 0x1.890af8p-9f,
       -0x1.7b3b08p-12f, -0x1.c0de48p-15f, 0x1.b89b86p-18f, 0x1.b14302p-22f, -0x1.d1ebe2p-24f, -0x1.609eb4p-26f,
       -0x1.14c14ap-29f, -0x1.23aa92p-33f, -0x1.a74ed4p-38f, 0},
      {0x1.302d6ep-1f, -0x1.5c2868p-6f, -0x1.58af96p-6f, -0x1.2bc22ap-7f, 0x1.4d0eacp-9f, -0x1.2f99fap-10f,
       0x1.3f8c3ep-14f, 0x1.d6c5dap-17f, 0x1.05fe44p-19f, 0x1.9cfd08p-20f, 0x1.64aa98p-22f, 0x1.7698ccp-25f,
       0x1.f46b6ep-29f, 0x1.ccc716p-33f, 0x1.2d2dcap-37f, 0},
      {-0x1.2d4fe4p-2f, -0x1.2dd262p-8f, -0x1.813e0ep-8f, -0x1.4faa16p-9f, 0x1.0abed6p-10f, -0x1.b3cd62p-13f,
       0x1.56178ap-14f, -0x1.717c2p-16f, -0x1.2ce122p-16f, -0x1.2fe802p-18f, -0x1.7651ecp-21f, -0x1.37737ep-24f,
       -0x1.670f0cp-28f, -0x1.23f97ap-32f, -0x1.53f532p-37f, 0},
      {0x1.43d504p-4f, 0x1.8f3fbp-8f, 0x1.2f8de6p-8f, 0x1.5fe8dp-12f, -0x1.95f5b8p-10f, -0x1.8aad72p-14f,
       0x1.5fdf86p-13f, 0x1.1f4d5ep-13f, 0x1.7e159p-15f, 0x1.2b0c14p-17f, 0x1.376f4ap-20f, 0x1.c008c6p-24f,
       0x1.c8d2dcp-28f, 0x1.4e5798p-32f, 0x1.6272cap-37f, 0},
      {-0x1.6cb306p-6f, -0x1.ed6f1cp-9f, 0x1.44defp-8f, 0x1.67f6fap-8f, 0x1.482b28p-10f, -0x1.0687c4p-10f,
       -0x1.ec0114p-11f, -0x1.81a4bep-12f, -0x1.703f36p-14f, -0x1.d67ee6p-17f, -0x1.a2569ap-20f, -0x1.087e6ap-23f,
       -0x1.e24554p-28f, -0x1.3ff2ap-32f, -0x1.36eb9cp-37f, 0},
      {0x1.240826p-10f, -0x1.579cd8p-6f, -0x1.360a98p-6f, -0x1.c81b3cp-9f, 0x1.6fe9f2p-8f, 0x1.5837c4p-8f,
       0x1.355978p-9f, 0x1.5ca14ep-11f, 0x1.0ae67ep-13f, 0x1.1fa626p-16f, 0x1.bcc6ep-20f, 0x1.f34e02p-24f,
       0x1.9a2674p-28f, 0x1.efdd1cp-33f, 0x1.bb00fcp-38f, 0},
      {0x1.101d88p-4f, 0x1.5379a8p-5f, -0x1.3fa9d6p-8f, -0x1.d727b4p-6f, -0x1.908364p-6f, -0x1.837dd4p-7f,
       -0x1.f07f78p-9f, -0x1.bc3134p-11f, -0x1.1c9588p-13f, -0x1.08e57ap-16f, -0x1.69753ap-20f, -0x1.6bb33cp-24f,
       -0x1.0f0198p-28f, -0x1.2c0582p-33f, -0x1.eea4ep-39f, 0},
      {0x1.6d9454p-20f, 0x1.78ee9ap-4f, 0x1.edab88p-4f, 0x1.6dae3p-4f, 0x1.6b2342p-5f, 0x1.fde5f8p-7f, 0x1.0327a4p-8f,
       0x1.82460ap-11f, 0x1.a94fdcp-14f, 0x1.5b9fb8p-17f, 0x1.a73b1cp-21f, 0x1.80b072p-25f, 0x1.057fbp-29f,
       0x1.0a3be2p-34f, 0x1.9662ecp-40f, 0},
      {-0x1.988454p-2f, -0x1.62c09ap-2f, -0x1.d09f9ap-3f, -0x1.cae38ep-4f, -0x1.55c74p-5f, -0x1.7febcep-7f,
       -0x1.4536f4p-9f, -0x1.9f7cfep-12f, -0x1.904afep-15f, -0x1.22d28p-18f, -0x1.3eaaecp-22f, -0x1.075126p-26f,
       -0x1.4827eep-31f, -0x1.346608p-36f, -0x1.b51fdp-42f, 0},
      {0x1p-1f, 0x1.30c406p-2f, 0x1.26ebc4p-3f, 0x1.c69f96p-5f, 0x1.13243cp-6f, 0x1.02ea98p-8f, 0x1.7832e6p-11f,
       0x1.a3df82p-14f, 0x1.66a5bcp-17f, 0x1.d3a334p-21f, 0x1.d06bc2p-25f, 0x1.5ebc12p-29f, 0x1.9256fep-34f,
       0x1.5e2d8cp-39f, 0x1.ce1bacp-45f, 0},
  };
  const F32 zero = splat(0.0f);
  // |x|, where positive x end at 16: there nothing is left to take away, and infinity times 0 would be NaN.
  const F32 size = max_or_second(min_or_second(splat(16.0f), x), -x);
  const F32 magic = splat(whole_in_low_bits), t = min_or_second(splat(7.9f), size);
  const F32 whole = fma(t, splat(32.0f / 17), magic);
  const F32 u = fma(magic - whole, splat(17.0f / 32), t);
  const Lanes32 which = to_bits(whole);
  F32 q = lookup16(phi[0], which);
#pragma GCC unroll 9
  for (int i = 1; i < 10; ++i) q = fma(q, u, lookup16(phi[i], which));
  return fma(-size, q, max_or_second(zero, x));
}

/// x times the logistic of 2·sqrt(2/pi)·(x + 0.044715·x³), within the bound of gelu.
inline F32 gelu_tanh(F32 x) {
  // The exponent of 2 is t·(b + a·t²); constants and the second factor are held in two parts.
  constexpr double b_exact = 2 * 0.79788456080286535588 * 1.44269504088896340736, a_exact = b_exact * 0.044715;
  constexpr auto b = static_cast<float>(b_exact), a = static_cast<float>(a_exact);
  const F32 b_low = splat(static_cast<float>(b_exact - double{b})),
            a_low = splat(static_cast<float>(a_exact - double{a}));
  const F32 zero = splat(0.0f), one = splat(1.0f), magic = splat(whole_in_low_bits);
  const F32 t = abs(x), s = t * t, s_low = fma(t, t, -s);
  const F32 w = fma(s, splat(a), splat(b));
  const F32 w_low = fma(s, splat(a), splat(b) - w) + fma(s_low, splat(a), fma(s, a_low, b_low));
  const F32 whole = fma(-t, w, magic);
  const F32 f = fma(-t, w_low, fma(-t, w, magic - whole));
  const F32 tail = shift_exponent(one + exp2m1_near_zero(f), whole);
  const F32 e = select(less(t, splat(6.75f)), tail, zero);  // beyond, less than 2^-46
  return x * (select(less(zero, x), one, e) / (one + e));
}

/// ln x within 2 ulp, denormal x included: n·ln 2 + ln(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
inline F32 log(F32 x) {
  // (ln(1 + f) - f + f²/2) / f³; ln(1 + f) within 2^-27.
  static constexpr float p[] = {-0x1.38ca54p-4f, 0x1.055f2p-3f,  -0x1.0d825ap-3f, 0x1.22d928p-3f,
                                -0x1.547288p-3f, 0x1.99a01cp-3f, -0x1.000226p-2f, 0x1.555554p-2f};
  constexpr unsigned sqrt_half_bits = 0x3F3504F3u;
  const F32 zero = splat(0.0f), inf = splat(__builtin_inff());
  const Mask denormal = less(x, splat(0x1p-126f));
  const Lanes32 bits = to_bits(select(denormal, x * splat(0x1p23f), x)) - sqrt_half_bits;
  const F32 f = from_bits((bits & 0x7FFFFFu) + sqrt_half_bits) - splat(1.0f);
  // Placed behind the point of 2^23, the exponent, made positive, becomes a number.
  const F32 n = from_bits(((bits + 0x40000000u) >> 23) | 0x4B000000u) -
                select(denormal, splat(0x1p23f + 128 + 23), splat(0x1p23f + 128));
  const F32 z = f * f;
  // ln 2 in two parts: n times the first is exact.
  F32 y = fma(f * z, polynomial(f, p), n * splat(0x1.7f7d1cp-20f));
  y = fma(z, splat(-0.5f), y) + f;
  y = fma(n, splat(0x1.62e4p-1f), y);
  if (any(!(less(zero, x) & less(x, inf)))) {
    y = select(less(x, inf), y, x);  // infinity and NaN stay what they are
    y = select(less(x, zero), splat(__builtin_nanf("")), y);
    y = select(equal(x, zero), -inf, y);
  }
  return y;
}

/// Beyond this size angles are reduced in f64.
inline constexpr float largest_f32_angle = 0x1p16f;

/// sin(x + quarter·pi/2) within 2 ulp, |x| <= largest_f32_angle.
inline F32 sin_from(F32 x, unsigned quarter) {
  // (sin r - r) / r³ and (cos r - 1 + r²/2) / r⁴, |r| <= 0.79: sine within 2^-27, cosine within 2^-32.
  static constexpr float p[] = {-0x1.991c28p-13f, 0x1.1106c6p-7f, -0x1.555544p-3f};
  static constexpr float q[] = {0x1.99e336p-16f, -0x1.6c0c1ep-10f, 0x1.55554ap-5f};
  const F32 magic = splat(whole_in_low_bits);
  const F32 whole = fma(x, splat(0x1.45f306p-1f), magic), n = whole - magic;
  // pi/2 in three parts; the first difference is exact.
  F32 r = fma(n, splat(-0x1.921fb6p0f), x);
  r = fma(n, splat(0x1.777a5cp-25f), r);
  r = fma(n, splat(0x1.ee59dap-50f), r);
  const F32 z = r * r;
  const F32 sine = fma(z * r, polynomial(z, p), r);
  const F32 cosine = fma(z * z, polynomial(z, q), fma(z, splat(-0.5f), splat(1.0f)));
  const Lanes32 turn = to_bits(whole) + quarter;
  const Mask odd = less(from_bits((turn << 31) | 0x3F800000u), splat(0.0f));
  return from_bits(to_bits(select(odd, cosine, sine)) ^ ((turn & 2u) << 30));
}

}  // namespace rlx::RLX_LEVEL
