// Codes of f4e2m1 as integers times scales: twice the values, and half of the scale, which is a power of two.
#pragma once

#include <array>

#include "codecs/blocks32/integers.h"

namespace rlx::fp4 {

/// There is no negative 0.
inline constexpr std::array<std::int8_t, 16> doubled{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// 2^(byte - 128) as bf16; 255 is NaN.
inline std::uint16_t half_power(std::uint8_t byte) {
  if (byte < 2) return static_cast<std::uint16_t>(0x20U << byte);  // denormal
  return byte == 255 ? 0x7FC0 : static_cast<std::uint16_t>((byte - 1U) << 7);
}

inline constexpr IntegerForm mxfp4{.bits = 4,
                                   .block = 32,
                                   .group = 32,
                                   .values = doubled.data(),
                                   .is_bfloat = true,
                                   .take = [](const std::uint8_t* block, IntegerBlock& to) {
                                     to.scale = half_power(block[0]);
                                     blocks32::take_nibbles(block + 1, to.codes);
                                   }};

}  // namespace rlx::fp4
