// What encoders share: rounding, and numbers as they are stored.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/dtype.h"
#include "core/element.h"

namespace rlx {

/// The nearest integer, ties to even, of |x| <= 2^21; some integer for any other x.
inline int nearest(float x) {
  // In this range an f32 has no bits below 1.
  constexpr float shift = 0x1.8p23f;
  return static_cast<int>(std::bit_cast<std::uint32_t>(x + shift) & 0x7FFFFF) - 0x400000;
}

/// The nearest integer of x, held within [low, high].
inline int nearest_within(float x, float low, float high) { return nearest(std::min(std::max(x, low), high)); }

/// Writes x as f16, held within its finite range, and gives what was written.
inline float put_half(float x, std::uint8_t* p) {
  const auto bits = static_cast<std::uint16_t>(
      encode_float(DType::f16, std::min(std::max(static_cast<double>(x), -65504.0), 65504.0)));
  p[0] = static_cast<std::uint8_t>(bits & 255);
  p[1] = static_cast<std::uint8_t>(bits >> 8);
  return number_of(StoredHalf16{bits});
}

}  // namespace rlx
