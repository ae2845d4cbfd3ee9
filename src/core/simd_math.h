// Functions over packs of f32. Where an f32 form would lose more than two bits, or would need a case for every range,
// the function is computed in packs of f64 and rounded once; levels with a fused multiply-add have some of them wholly
// in f32 (simd_math_f32.h). Level-only, as simd.h.
//
// Every polynomial is an interpolation at the Chebyshev nodes of its interval; the error stated is that of the
// function, relative.
#pragma once

#include "core/simd_f64.h"
#if defined(__FMA__)
#include "core/simd_math_f32.h"
#endif

namespace rlx::RLX_LEVEL {

/// x = n·ln 2 + r with whole n, |r| <= ln(2) / 2, and e^r - 1 within 2^-44. x must be within ±710.
struct ReducedExp {
  F64 n, e;
};
inline ReducedExp reduce_exp(F64 x) {
  static constexpr double q[] = {2.76176854651650691e-6, 0.0000248680029780569638, 0.000198412244182919442,
                                 0.0013888838910996057,  0.00833333334426839424,   0.0416666667869855564,
                                 0.166666666666625538,   0.499999999999547462};
  const F64 n = round(x * splat(1.4426950408889634));
  // n times the first part of ln 2 is exact, having 21 bits less than f64 holds.
  F64 r = x - n * splat(0x1.62e42feep-1);
  r = r - n * splat(0x1.a39ef35793c76p-33);
  return {n, fma(polynomial(r, q), r * r, r)};
}

/// e^x; 0 below -708, at most e^709.
inline F64 exp(F64 x) {
  const F64 c = max_or_second(splat(-708.0), min_or_second(splat(709.0), x));
  const ReducedExp p = reduce_exp(c);
  const F64 scale = power_of_two(p.n);
  return select(less(x, splat(-708.0)), splat(0.0), fma(scale, p.e, scale));
}

/// e^x - 1; at most e^709.
inline F64 expm1(F64 x) {
  const F64 c = max_or_second(splat(-700.0), min_or_second(splat(709.0), x));
  const ReducedExp p = reduce_exp(c);
  const F64 scale = power_of_two(p.n);
  return copysign(fma(scale, p.e, scale - splat(1.0)), x);
}

/// ln of 2^n·(1 + f) within 2^-50 where |f| < 0.42, for whole n.
inline F64 log_parts(F64 n, F64 f) {
  static constexpr double p[] = {0.130896291606746226, 0.132684856806544268, 0.153862504479401886,
                                 0.181817954423719854, 0.222222223935666087, 0.285714285707954309,
                                 0.400000000000008904, 0.666666666666666665};
  const F64 s = f / (splat(2.0) + f);
  const F64 z = s * s;
  const F64 l = fma(polynomial(z, p), z * s, s + s);
  return fma(n, splat(0.69314718055994531), l);
}

/// A positive normal x as 2^n·m with m in [sqrt(1/2), sqrt(2)].
struct Scaled {
  F64 n, m;
};
inline Scaled scaled(F64 x) {
  const Lanes64 bits = to_bits(x);
  // Placed behind the point of 2^52, the exponent becomes a number.
  const F64 n = from_bits((bits >> 52) | 0x4330000000000000ull) - splat(0x1p52 + 1023);
  const F64 m = from_bits((bits & 0x000FFFFFFFFFFFFFull) | 0x3FF0000000000000ull);
  const Mask64 large = less(splat(1.4142135623730951), m);
  return {select(large, n + splat(1.0), n), select(large, m * splat(0.5), m)};
}

/// The values of a logarithm at the ends of its domain: `zero` is where it is -inf.
inline F64 log_ends(F64 result, F64 x, F64 zero) {
  const F64 inf = splat(__builtin_inf());
  result = select(less(zero, x) & less(x, inf), result, x + inf);  // NaN and infinity stay what they are
  result = select(less(x, zero), splat(__builtin_nan("")), result);
  return select(equal(x, zero), -inf, result);
}

/// ln x; x is no f64 denormal.
inline F64 log(F64 x) {
  const Scaled s = scaled(x);
  return log_ends(log_parts(s.n, s.m - splat(1.0)), x, splat(0.0));
}

/// ln(1 + x).
inline F64 log1p(F64 x) {
  const F64 one = splat(1.0), u = one + x;
  const Scaled s = scaled(u);
  const F64 f = select(equal(s.n, splat(0.0)), x, s.m - one);  // x itself where 1 + x would lose bits
  return copysign(log_ends(log_parts(s.n, f), x, splat(-1.0)), x);
}

/// What is left of an angle after a multiple n of pi/2.
struct ReducedAngle {
  F64 n, r;
};
/// |x| <= 2^27: the parts of pi/2 have 26 bits, their products with n are exact.
inline ReducedAngle reduce_angle(F64 x) {
  const F64 n = round(x * splat(0.63661977236758134));
  F64 r = x - n * splat(0x1.921fb5p+0);
  r = r - n * splat(0x1.110b46p-26);
  return {n, r - n * splat(0x1.1a62633145c07p-54)};
}
inline F64 sin_near_zero(F64 r) {
  static constexpr double p[] = {-2.48051454067474318e-8, 2.75559856252008621e-6, -0.000198412668994373986,
                                 0.00833333333106116007, -0.16666666666663858};
  const F64 z = r * r;
  return fma(polynomial(z, p), z * r, r);
}
inline F64 cos_near_zero(F64 r) {
  static constexpr double p[] = {2.07002494675627724e-9, -2.75563659022590211e-7, 0.0000248015849984412168,
                                 -0.0013888888887264426, 0.0416666666666646587};
  const F64 z = r * r;
  return fma(polynomial(z, p), z * z, splat(1.0) - splat(0.5) * z);
}
/// Whether the whole numbers n, |n| < 2^51, are odd.
inline Mask64 is_odd(F64 n) {
  const F64 half = n * splat(0.5);
  return !equal(trunc(half), half);
}

/// sin(x + quarter·pi/2).
inline F64 sin_from(F64 x, double quarter) {
  const ReducedAngle a = reduce_angle(x);
  const F64 turn = a.n + splat(quarter);
  const F64 y = select(is_odd(turn), cos_near_zero(a.r), sin_near_zero(a.r));
  // Negative in the third and fourth quarter: where the whole part of turn/2 is odd.
  const F64 half = round(turn * splat(0.5) - splat(0.25));
  return select(is_odd(half), -y, y);
}
inline F64 tan_reduced(F64 x) {
  const ReducedAngle a = reduce_angle(x);
  const F64 s = sin_near_zero(a.r), c = cos_near_zero(a.r);
  const Mask64 odd = is_odd(a.n);
  return select(odd, -c, s) / select(odd, s, c);
}

/// `y` with the lanes where |x| > 2^27 computed by `f`, one by one. NaN and infinity among them give NaN.
template <class F>
inline F32 for_large(F32 x, F32 y, F f) {
  const F32 bound = splat(0x1p27f);
  if (!any(!less_equal(abs(x), bound))) return y;
  float in[F32::lanes], out[F32::lanes];
  store(in, x);
  store(out, y);
  for (Index i = 0; i < F32::lanes; ++i) {
    if (!(__builtin_fabsf(in[i]) <= 0x1p27f)) out[i] = static_cast<float>(f(static_cast<double>(in[i])));
  }
  return load(out);
}
/// Sine, cosine and tangent, any finite argument; ±0 keeps its sign.
inline F32 sin_by_f64(F32 x) {
  const F32 y = in_f64(x, [](F64 v) { return sin_from(v, 0); });
  return for_large(x, select(equal(x, splat(0.0f)), x, y), [](double v) { return __builtin_sin(v); });
}
inline F32 cos_by_f64(F32 x) {
  const F32 y = in_f64(x, [](F64 v) { return sin_from(v, 1); });
  return for_large(x, y, [](double v) { return __builtin_cos(v); });
}
#if defined(__FMA__)
inline F32 sin(F32 x) {
  const F32 y = select(equal(x, splat(0.0f)), x, sin_from(x, 0u));
  const Mask small = less_equal(abs(x), splat(largest_f32_angle));
  return any(!small) ? select(small, y, sin_by_f64(x)) : y;
}
inline F32 cos(F32 x) {
  const Mask small = less_equal(abs(x), splat(largest_f32_angle));
  return any(!small) ? select(small, sin_from(x, 1u), cos_by_f64(x)) : sin_from(x, 1u);
}
#else
inline F32 sin(F32 x) { return sin_by_f64(x); }
inline F32 cos(F32 x) { return cos_by_f64(x); }
#endif
inline F32 tan(F32 x) {
  const F32 y = in_f64(x, [](F64 v) { return tan_reduced(v); });
  return for_large(x, select(equal(x, splat(0.0f)), x, y), [](double v) { return __builtin_tan(v); });
}

/// atan x within 2^-50.
inline F64 atan(F64 x) {
  static constexpr double p[] = {0.0225924334083054215,  -0.044717241833921131, 0.0573279065001749168,
                                 -0.0664903323195106985, 0.0769099993389114344, -0.0909084948510510837,
                                 0.111111095410446673,   -0.142857142646189227, 0.199999999998896677,
                                 -0.333333333333332378};
  const F64 one = splat(1.0), a = abs(x);
  // atan a = base + atan t with |t| <= tan(pi/8).
  const Mask64 beyond = less(splat(2.414213562373095), a), middle = less(splat(0.41421356237309503), a);
  const F64 above = select(beyond, -one, a - one), below = select(beyond, a, a + one);
  const F64 t = select(middle, above / below, a);
  const F64 base = select(beyond, splat(1.5707963267948966), splat(0.78539816339744831));
  const F64 z = t * t, y = fma(polynomial(z, p), z * t, t);
  return copysign(select(middle, base + y, y), x);
}

/// The angle of (x, y), where both are f32 numbers.
inline F64 atan2(F64 y, F64 x) {
  const F64 zero = splat(0.0), inf = splat(__builtin_inf()), one = splat(1.0);
  const Mask64 infinite = equal(abs(y), inf) & equal(abs(x), inf);
  F64 q = select(infinite, one, abs(y) / abs(x));
  q = select(equal(y, zero) & equal(x, zero), zero, q);
  const F64 angle = atan(q);
  const Mask64 left = less(copysign(one, x), zero);
  return copysign(select(left, splat(3.1415926535897931) - angle, angle), select(equal(x, x), y, x));
}

/// Hyperbolic tangent.
inline F64 tanh(F64 x) {
  const F64 e = expm1(splat(-2.0) * abs(x));
  return copysign(-e / (splat(2.0) + e), x);
}
/// Logistic function.
inline F64 sigmoid(F64 x) {
  const F64 one = splat(1.0), e = exp(-abs(x));
  return select(less(x, splat(0.0)), e, one) / (one + e);
}
/// ln(1 + e^x).
inline F64 softplus(F64 x) { return maximum(x, splat(0.0)) + log1p(exp(-abs(x))); }

/// erf t within 2^-45, |t| <= 1.
inline F64 erf_near_zero(F64 t) {
  static constexpr double p[] = {-1.04644927303225248e-7, 1.5304407309379163e-6,    -0.0000147946838354021362,
                                 0.000120462282556731306, -0.000854793191659656633, 0.00522396713489647374,
                                 -0.0268661690400422108,  0.112837916584541363,     -0.376126389028053767,
                                 1.12837916709549364};
  return t * polynomial(t * t, p);
}
/// erfc t within 2^-36, t >= 1: (1 + 2t)·e^(t²)·erfc t is smooth in (t - 2) / (t + 2).
inline F64 erfc_tail(F64 t) {
  static constexpr double p[] = {-0.0000914765040961593519, 0.000207973440964440165, 0.00021036626621379644,
                                 -0.000470682089910002324,  -0.0014534130854049995,  0.00127279414845283023,
                                 0.00872218884571777746,    -0.00803406302987814789, -0.0542199814595109405,
                                 0.164051280465811504,      -0.166030397833613101,   -0.0927638265836745497,
                                 1.27697838155261313};
  const F64 c = min_or_second(splat(28.0), t), two = splat(2.0);
  // One division for both quotients.
  const F64 d = c + two, e = fma(two, c, splat(1.0)), inverse = splat(1.0) / (d * e);
  return exp(-(t * t)) * polynomial((c - two) * e * inverse, p) * (d * inverse);
}
inline F64 erf(F64 x) {
  const F64 t = abs(x);
  return select(less(t, splat(1.0)), erf_near_zero(x), copysign(splat(1.0) - erfc_tail(t), x));
}
inline F64 erfc(F64 x) {
  const F64 t = abs(x), tail = erfc_tail(t);
  const F64 far = select(less(x, splat(0.0)), splat(2.0) - tail, tail);
  return select(less(t, splat(1.0)), splat(1.0) - erf_near_zero(x), far);
}

/// x to the power y as C pow, where both are f32 numbers.
inline F64 pow(F64 x, F64 y) {
  const F64 zero = splat(0.0), one = splat(1.0), inf = splat(__builtin_inf());
  const F64 a = abs(x);
  F64 r = exp(y * log(a));
  const F64 half = y * splat(0.5);
  const Mask64 whole = equal(trunc(y), y), odd = whole & !equal(trunc(half), half);
  const Mask64 negative = less(copysign(one, x), zero);
  r = select(negative & odd, -r, r);
  r = select(less(x, zero) & less(a, inf) & !whole, splat(__builtin_nan("")), r);
  const Mask64 is_one = equal(x, one) | equal(y, zero) | (equal(a, one) & equal(abs(y), inf));
  return select(is_one, one, r);
}

/// Logistic function within 4 ulp.
inline F32 sigmoid(F32 x) {
  const F32 one = splat(1.0f), e = exp(-abs(x));
  return select(less(x, splat(0.0f)), e, one) / (one + e);
}

// Rounded once from f64.
#if !defined(__FMA__)  // else they are in simd_math_f32.h
inline F32 log(F32 x) {
  return in_f64(x, [](F64 v) { return log(v); });
}
inline F32 tanh(F32 x) {
  return in_f64(x, [](F64 v) { return tanh(v); });
}
inline F32 erf(F32 x) {
  return in_f64(x, [](F64 v) { return erf(v); });
}
#endif
inline F32 expm1(F32 x) {
  return in_f64(x, [](F64 v) { return expm1(v); });
}
inline F32 log1p(F32 x) {
  return in_f64(x, [](F64 v) { return log1p(v); });
}
inline F32 atan(F32 x) {
  return in_f64(x, [](F64 v) { return atan(v); });
}
inline F32 softplus(F32 x) {
  return in_f64(x, [](F64 v) { return softplus(v); });
}
inline F32 erfc(F32 x) {
  return in_f64(x, [](F64 v) { return erfc(v); });
}
inline F32 atan2(F32 y, F32 x) {
  return in_f64(y, x, [](F64 a, F64 b) { return atan2(a, b); });
}
inline F32 pow(F32 x, F32 y) {
  return in_f64(x, y, [](F64 a, F64 b) { return pow(a, b); });
}

/// Remainder of x / y with the sign of x, exact.
inline F32 fmod(F32 x, F32 y) {
  // Below 2^29 the whole part of the quotient is right and its product with y exact.
  const F32 quotient = abs(x) / abs(y);
  const F32 r = in_f64(x, y, [](F64 a, F64 b) { return copysign(a - trunc(a / b) * b, a); });
  const Mask simple = less(quotient, splat(0x1p28f)) & less(abs(y), splat(__builtin_inff()));
  if (!any(!simple)) return r;
  float a[F32::lanes], b[F32::lanes], out[F32::lanes];
  store(a, x);
  store(b, y);
  for (Index i = 0; i < F32::lanes; ++i) out[i] = __builtin_fmodf(a[i], b[i]);
  return load(out);
}

}  // namespace rlx::RLX_LEVEL
