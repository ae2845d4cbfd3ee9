// Formats with several planes: what their decoders share.
#pragma once

#include <cstring>

#include "codecs/block_format.h"

namespace rlx {

/// The f32 at place i of a plane.
inline float f32_at(const std::byte* plane, Index i) {
  float x;
  std::memcpy(&x, plane + 4 * i, sizeof x);
  return x;
}
inline void put_f32(std::byte* plane, Index i, float x) { std::memcpy(plane + 4 * i, &x, sizeof x); }

/// Codes of `bits` bits, from the low bits of the first byte on: `count`, a multiple of 8.
template <int bits, std::size_t count>
std::array<std::uint8_t, count> unpack(const std::byte* from) {
  std::array<std::uint8_t, count> codes;
  for (std::size_t i = 0; i < count; i += 8, from += bits) {
    std::uint64_t word = 0;  // eight codes are as many bytes as a code has bits
    std::memcpy(&word, from, bits);
    for (std::size_t j = 0; j < 8; ++j) codes[i + j] = static_cast<std::uint8_t>(word >> bits * j & ((1U << bits) - 1));
  }
  return codes;
}
template <int bits, std::size_t count>
void pack(const std::array<std::uint8_t, count>& codes, std::byte* to) {
  for (std::size_t i = 0; i < count; i += 8, to += bits) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < 8; ++j) word |= std::uint64_t{codes[i + j]} << bits * j;
    std::memcpy(to, &word, bits);
  }
}

}  // namespace rlx
