// Num: a scalar as the rows of ops/scalar read it. Wrapped, so that argument-dependent lookup finds the mathematics and
// small integers are not promoted. Reals follow IEEE 754; integers wrap.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <type_traits>

namespace rlx {

template <class T>
struct Num {
  T v;
};

namespace detail {
/// Integers are computed unsigned, where wrapping is defined.
template <class T>
constexpr auto wrapping(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(x);
  } else {
    return x;
  }
}
}  // namespace detail

// clang-format off
template <class T> Num<T> operator+(Num<T> a, Num<T> b) {
  return {static_cast<T>(detail::wrapping(a.v) + detail::wrapping(b.v))};
}
template <class T> Num<T> operator-(Num<T> a, Num<T> b) {
  return {static_cast<T>(detail::wrapping(a.v) - detail::wrapping(b.v))};
}
template <class T> Num<T> operator*(Num<T> a, Num<T> b) {
  return {static_cast<T>(detail::wrapping(a.v) * detail::wrapping(b.v))};
}
template <class T> Num<T> operator/(Num<T> a, Num<T> b) { return {a.v / b.v}; }
template <class T> Num<T> operator-(Num<T> a) { return {static_cast<T>(-detail::wrapping(a.v))}; }
template <class T> Num<T> like(Num<T>, double c) { return {static_cast<T>(c)}; }

template <class T> bool less(Num<T> a, Num<T> b) { return a.v < b.v; }
template <class T> bool equal(Num<T> a, Num<T> b) { return a.v == b.v; }
template <class T> Num<T> select(bool c, Num<T> a, Num<T> b) { return c ? a : b; }

template <class T> Num<T> exp(Num<T> a) { return {std::exp(a.v)}; }
template <class T> Num<T> log(Num<T> a) { return {std::log(a.v)}; }
template <class T> Num<T> sqrt(Num<T> a) { return {std::sqrt(a.v)}; }
template <class T> Num<T> expm1(Num<T> a) { return {std::expm1(a.v)}; }
template <class T> Num<T> log1p(Num<T> a) { return {std::log1p(a.v)}; }
template <class T> Num<T> sin(Num<T> a) { return {std::sin(a.v)}; }
template <class T> Num<T> cos(Num<T> a) { return {std::cos(a.v)}; }
template <class T> Num<T> tan(Num<T> a) { return {std::tan(a.v)}; }
template <class T> Num<T> atan(Num<T> a) { return {std::atan(a.v)}; }
template <class T> Num<T> tanh(Num<T> a) { return {std::tanh(a.v)}; }
template <class T> Num<T> erf(Num<T> a) { return {std::erf(a.v)}; }
template <class T> Num<T> erfc(Num<T> a) { return {std::erfc(a.v)}; }
template <class T> Num<T> floor(Num<T> a) { return {std::floor(a.v)}; }
template <class T> Num<T> ceil(Num<T> a) { return {std::ceil(a.v)}; }
template <class T> Num<T> trunc(Num<T> a) { return {std::trunc(a.v)}; }
template <class T> Num<T> round(Num<T> a) { return {std::nearbyint(a.v)}; }  // ties to even in the default mode
template <class T> Num<T> pow(Num<T> a, Num<T> b) { return {std::pow(a.v, b.v)}; }
template <class T> Num<T> fmod(Num<T> a, Num<T> b) { return {std::fmod(a.v, b.v)}; }
template <class T> Num<T> atan2(Num<T> a, Num<T> b) { return {std::atan2(a.v, b.v)}; }
// clang-format on

template <class T>
Num<T> abs(Num<T> a) {
  if constexpr (std::is_floating_point_v<T>) {
    return {std::fabs(a.v)};
  } else if constexpr (std::is_unsigned_v<T>) {
    return a;
  } else {
    return a.v < 0 ? -a : a;
  }
}

template <class T>
Num<T> sign(Num<T> a) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(a.v) || a.v == 0 ? a : Num<T>{std::copysign(T(1), a.v)};
  } else {
    return {static_cast<T>((a.v > 0) - (a.v < 0))};
  }
}

/// The larger; NaN when either is.
template <class T>
Num<T> maximum(Num<T> a, Num<T> b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a.v)) return a;
    if (std::isnan(b.v)) return b;
  }
  return a.v < b.v ? b : a;
}

/// The smaller; NaN when either is.
template <class T>
Num<T> minimum(Num<T> a, Num<T> b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a.v)) return a;
    if (std::isnan(b.v)) return b;
  }
  return b.v < a.v ? b : a;
}

/// Logistic function; no overflow, and full accuracy in both tails.
template <class T>
Num<T> sigmoid(Num<T> a) {
  const T e = std::exp(-std::fabs(a.v));
  return {(a.v < 0 ? e : T(1)) / (1 + e)};
}

/// ln(1 + e^x); no overflow.
template <class T>
Num<T> softplus(Num<T> a) {
  return {maximum(a, Num<T>{0}).v + std::log1p(std::exp(-std::fabs(a.v)))};
}

}  // namespace rlx
