// What scripts/make_codec_goldens does too: random bytes, and fingerprints of f32.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rlx {

// The bytes of the generator splitmix64, little end first.
inline std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint64_t state) {
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < count) {
    std::uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    z ^= z >> 31;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::uint8_t>(z >> 8 * i));
  }
  bytes.resize(count);
  return bytes;
}

// All NaN count as one.
inline std::uint64_t fingerprint(std::span<const float> values) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = std::isnan(values[i]) ? 0x7FC00000 : std::bit_cast<std::uint32_t>(values[i]);
    std::uint64_t z = (bits + 1) * (2 * i + 0x9E3779B97F4A7C15);
    z = (z ^ z >> 29) * 0xBF58476D1CE4E5B9;
    all ^= z;
  }
  return all;
}

}  // namespace rlx
