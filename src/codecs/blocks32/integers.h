// Blocks of 32 codes as integers times scales.
#pragma once

#include <cstring>

#include "codecs/integer_form.h"

namespace rlx::blocks32 {

/// The bits of a half at an address.
inline std::uint16_t half_bits(const std::uint8_t* p) { return static_cast<std::uint16_t>(p[0] | p[1] << 8); }

/// Codes of 4 bits: the low ones of 16 bytes, then the high ones.
inline void take_nibbles(const std::uint8_t* from, std::uint8_t* to) {
  for (int i = 0; i < 16; ++i) {
    to[i] = from[i] & 15;
    to[16 + i] = static_cast<std::uint8_t>(from[i] >> 4);
  }
}
/// Codes of 5 bits: four bytes of fifth bits, then the others.
inline void take_fives(const std::uint8_t* from, std::uint8_t* to) {
  take_nibbles(from + 4, to);
  for (int i = 0; i < 32; ++i) to[i] = static_cast<std::uint8_t>(to[i] | (from[i / 8] >> (i % 8) & 1) << 4);
}

inline constexpr IntegerForm q4_0{
    .bits = 4, .block = 32, .group = 32, .bias = 8, .take = [](const std::uint8_t* block, IntegerBlock& to) {
      to.scale = half_bits(block);
      take_nibbles(block + 2, to.codes);
    }};
inline constexpr IntegerForm q4_1{
    .bits = 4, .block = 32, .group = 32, .has_minimum = true, .take = [](const std::uint8_t* block, IntegerBlock& to) {
      to.scale = half_bits(block);
      to.minimum = half_bits(block + 2);
      take_nibbles(block + 4, to.codes);
    }};
inline constexpr IntegerForm q5_0{
    .bits = 5, .block = 32, .group = 32, .bias = 16, .take = [](const std::uint8_t* block, IntegerBlock& to) {
      to.scale = half_bits(block);
      take_fives(block + 2, to.codes);
    }};
inline constexpr IntegerForm q5_1{
    .bits = 5, .block = 32, .group = 32, .has_minimum = true, .take = [](const std::uint8_t* block, IntegerBlock& to) {
      to.scale = half_bits(block);
      to.minimum = half_bits(block + 2);
      take_fives(block + 4, to.codes);
    }};
inline constexpr IntegerForm q8_0{
    .bits = 8, .block = 32, .group = 32, .bias = 128, .take = [](const std::uint8_t* block, IntegerBlock& to) {
      to.scale = half_bits(block);
      for (int i = 0; i < 32; ++i) to.codes[i] = block[2 + i] ^ 128;
    }};

}  // namespace rlx::blocks32
