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

/// x·Phi(x), Phi the normal distribution, within 4 ulp of the larger of |result| and 2^-24·|x|: max(x, 0) -
/// |x|·e^(-t²/2)·R(t), where R(t) = e^(t²/2)·Phi(-t) of t = |x| is smooth in (t - 2) / (t + 2). t² is taken in two
/// parts. Both polynomials are fits (R: weighted by the bound, within 2^-26 up to t = 7.25), moved by single units
/// where that made the largest rounding error smaller. A quotient of polynomials in t is faster, but loses 5 ulp to
/// rounding.
inline F32 gelu(F32 x) {
  static constexpr float r_of_v[] = {-0x1.1f8ea4p-15f, 0x1.5b058cp-15f, 0x1.4b20acp-11f, 0x1.31c56ep-10f,
                                     -0x1.97e838p-10f, -0x1.307bbep-7f, 0x1.037cfp-9f,   0x1.70d872p-4f,
                                     -0x1.00f9dap-2f,  0x1.5845dep-3f};
  static constexpr float exp2m1[] = {0x1.41f62p-13f, 0x1.5f4706p-10f, 0x1.3b2d68p-7f,
                                     0x1.c6aed8p-5f, 0x1.ebfbdcp-3f,  0x1.62e43p-1f};
  const F32 zero = splat(0.0f), c = splat(2.0f);
  // |x|, where positive x end at 16: there nothing is left to take away, and infinity times 0 would be NaN.
  const F32 size = max_or_second(min_or_second(splat(16.0f), x), -x), t = min_or_second(splat(16.0f), size);
  const F32 v = (t - c) * (splat(1.0f) / (t + c));
  const F32 r = polynomial(v, r_of_v);
  // e^(-t²/2) = 2^n·2^f; the halved binary logarithm of e is in two parts too.
  const F32 square = t * t, rest = fma(t, t, -square), k = splat(-0.5f * log2_e), magic = splat(whole_in_low_bits);
  const F32 whole = fma(square, k, magic);
  const F32 f = fma(square, k, magic - whole) + fma(square, splat(-0x1.4ae0cp-27f), rest * k);
  const F32 tail = shift_exponent(fma(polynomial(f, exp2m1) * f, r, r), whole);
  const F32 q = select(less(t, splat(12.0f)), tail, zero);  // beyond, less than 2^-107
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
