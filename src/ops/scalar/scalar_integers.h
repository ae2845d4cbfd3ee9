// Division, remainder and powers of 64-bit integers, which may fail.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/error.h"
#include "core/num.h"

namespace rlx::detail {

/// Quotient toward zero; the least integer by -1 wraps. Throws Error for b = 0.
template <class T>
Num<T> whole_div(Num<T> a, Num<T> b) {
  require(b.v != 0, "integer {} is divided by 0", a.v);
  if (std::is_signed_v<T> && b.v == static_cast<T>(-1)) return -a;
  return a / b;
}

/// Remainder with the sign of a. Throws Error for b = 0.
template <class T>
Num<T> whole_fmod(Num<T> a, Num<T> b) {
  require(b.v != 0, "integer {} is divided by 0", a.v);
  return {b.v == static_cast<T>(-1) && std::is_signed_v<T> ? T(0) : static_cast<T>(a.v % b.v)};
}

/// a multiplied b times, wrapping; a negative b gives 0 unless |a| is 1. Throws Error for a = 0 with a negative b.
template <class T>
Num<T> whole_pow(Num<T> a, Num<T> b) {
  if (std::is_signed_v<T> && static_cast<std::int64_t>(b.v) < 0) {
    require(a.v != 0, "integer 0 is raised to the negative power {}", b.v);
    if (a.v == 1) return a;
    if (static_cast<std::int64_t>(a.v) == -1) return {b.v % 2 == 0 ? static_cast<T>(1) : a.v};
    return {0};
  }
  Num<T> y{1};
  for (auto n = static_cast<std::uint64_t>(b.v); n != 0; n >>= 1) {
    if (n & 1) y = y * a;
    a = a * a;
  }
  return y;
}

}  // namespace rlx::detail
