// Blocks of 256 codes in groups as integers times scales. Minima are subtracted in these formats, so their sign turns.
#pragma once

#include "codecs/integer_form.h"

namespace rlx::k_quants {

inline std::uint16_t half_bits(const std::uint8_t* p, std::uint16_t sign = 0) {
  return static_cast<std::uint16_t>((p[0] | p[1] << 8) ^ sign);
}
inline constexpr std::uint16_t minus = 0x8000;

/// Scales and minima of 6 bits of 8 groups, in 12 bytes: 4 of each in the low bits of bytes 0 to 7; of the others the
/// low 4 bits in the last bytes and the high 2 bits in the first.
inline void take_sixes(const std::uint8_t* s, IntegerBlock& to) {
  for (int g = 0; g < 4; ++g) {
    to.scales[g] = static_cast<std::int8_t>(s[g] & 63);
    to.minima[g] = static_cast<std::int8_t>(s[g + 4] & 63);
    to.scales[g + 4] = static_cast<std::int8_t>((s[g + 8] & 15) | s[g] >> 6 << 4);
    to.minima[g + 4] = static_cast<std::int8_t>(s[g + 8] >> 4 | s[g + 4] >> 6 << 4);
  }
}
/// Codes of 4 bits: of every 64, the first half in the low bits of 32 bytes.
inline void take_pairs(const std::uint8_t* q, std::uint8_t* to) {
  for (int pair = 0; pair < 4; ++pair, q += 32, to += 64) {
    for (int i = 0; i < 32; ++i) {
      to[i] = q[i] & 15;
      to[32 + i] = static_cast<std::uint8_t>(q[i] >> 4);
    }
  }
}
/// Codes of 2 bits: of every 128, each quarter in two bits of 32 bytes.
inline void take_twos(const std::uint8_t* q, std::uint8_t* to) {
  for (int i = 0; i < 256; ++i) to[i] = q[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

inline constexpr IntegerForm q2_k{.bits = 2,
                                  .block = 256,
                                  .group = 16,
                                  .grouped = true,
                                  .has_minimum = true,
                                  .take = [](const std::uint8_t* block, IntegerBlock& to) {
                                    to.scale = half_bits(block + 80);
                                    to.minimum = half_bits(block + 82, minus);
                                    for (int g = 0; g < 16; ++g) {
                                      to.scales[g] = static_cast<std::int8_t>(block[g] & 15);
                                      to.minima[g] = static_cast<std::int8_t>(block[g] >> 4);
                                    }
                                    take_twos(block + 16, to.codes);
                                  }};
inline constexpr IntegerForm q3_k{
    .bits = 3,
    .block = 256,
    .group = 16,
    .bias = 4,
    .grouped = true,
    .take = [](const std::uint8_t* block, IntegerBlock& to) {
      to.scale = half_bits(block + 108);
      const std::uint8_t* const s = block + 96;
      for (int g = 0; g < 16; ++g) {
        const int scale = (s[g & 7] >> 4 * (g >> 3) & 15) | (s[8 + (g & 3)] >> 2 * (g >> 2) & 3) << 4;
        to.scales[g] = static_cast<std::int8_t>(scale - 32);
      }
      take_twos(block + 32, to.codes);
      for (int i = 0; i < 256; ++i)
        to.codes[i] = static_cast<std::uint8_t>(to.codes[i] | (block[i % 32] >> (i / 32) & 1) << 2);
    }};
inline constexpr IntegerForm q4_k{.bits = 4,
                                  .block = 256,
                                  .group = 32,
                                  .grouped = true,
                                  .has_minimum = true,
                                  .take = [](const std::uint8_t* block, IntegerBlock& to) {
                                    to.scale = half_bits(block);
                                    to.minimum = half_bits(block + 2, minus);
                                    take_sixes(block + 4, to);
                                    take_pairs(block + 16, to.codes);
                                  }};
inline constexpr IntegerForm q5_k{
    .bits = 5,
    .block = 256,
    .group = 32,
    .grouped = true,
    .has_minimum = true,
    .take = [](const std::uint8_t* block, IntegerBlock& to) {
      to.scale = half_bits(block);
      to.minimum = half_bits(block + 2, minus);
      take_sixes(block + 4, to);
      take_pairs(block + 48, to.codes);
      for (int i = 0; i < 256; ++i)
        to.codes[i] = static_cast<std::uint8_t>(to.codes[i] | (block[16 + i % 32] >> (i / 32) & 1) << 4);
    }};
inline constexpr IntegerForm q6_k{.bits = 6,
                                  .block = 256,
                                  .group = 16,
                                  .bias = 32,
                                  .grouped = true,
                                  .take = [](const std::uint8_t* block, IntegerBlock& to) {
                                    to.scale = half_bits(block + 208);
                                    for (int g = 0; g < 16; ++g)
                                      to.scales[g] = static_cast<std::int8_t>(block[192 + g]);
                                    for (int i = 0; i < 256; ++i) {
                                      const int half = i / 128, quarter = i % 128 / 32, l = i % 32;
                                      const int low = block[half * 64 + quarter % 2 * 32 + l] >> (quarter / 2 * 4) & 15;
                                      const int high = block[128 + half * 32 + l] >> (quarter * 2) & 3;
                                      to.codes[i] = static_cast<std::uint8_t>(low | high << 4);
                                    }
                                  }};

}  // namespace rlx::k_quants
