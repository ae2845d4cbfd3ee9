// A wide integer as the f64 from which a narrower float is rounded as if from the integer itself.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace rlx {

/// Cut to 53 bits, the last one set when a bit was lost (round to odd). T is std::int64_t or std::uint64_t.
template <class T>
double round_to_odd(T value) {
  const bool negative = value < 0;
  const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const int width = static_cast<int>(std::bit_width(magnitude)), lost = width > 53 ? width - 53 : 0;
  const std::uint64_t kept = magnitude >> lost;
  const std::uint64_t odd = kept << lost == magnitude ? kept : kept | 1;
  const double v = std::ldexp(static_cast<double>(odd), lost);
  return negative ? -v : v;
}

}  // namespace rlx
