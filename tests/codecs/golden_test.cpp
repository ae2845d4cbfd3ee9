// Every block format against fingerprints of what ggml decodes (scripts/make_codec_goldens).
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "codecs/codec.h"

namespace rlx {
namespace {

// The bytes of the generator splitmix64, little end first.
std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint64_t state) {
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

std::uint64_t fingerprint(std::span<const float> values) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = std::isnan(values[i]) ? 0x7FC00000 : std::bit_cast<std::uint32_t>(values[i]);
    std::uint64_t z = (bits + 1) * (2 * i + 0x9E3779B97F4A7C15);
    z = (z ^ z >> 29) * 0xBF58476D1CE4E5B9;
    all ^= z;
  }
  return all;
}

// 256 blocks of one byte value each, then 256 random ones.
std::vector<std::uint8_t> blocks_of(std::size_t bytes) {
  std::vector<std::uint8_t> blocks;
  for (unsigned value = 0; value < 256; ++value) blocks.insert(blocks.end(), bytes, static_cast<std::uint8_t>(value));
  const auto more = random_bytes(256 * bytes, 7);
  blocks.insert(blocks.end(), more.begin(), more.end());
  return blocks;
}

TEST(Golden, EveryBlockFormatOfGgmlIsDecodedToTheBit) {
  std::ifstream file(RLX_TEST_DATA "/codecs/golden.txt");
  std::set<std::string> seen;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#') continue;
    std::istringstream words(line);
    std::string name;
    Index elements = 0, bytes = 0;
    words >> name >> elements >> bytes >> std::hex;
    const Codec* codec = find_codec(name);
    ASSERT_NE(codec, nullptr) << name;
    ASSERT_EQ(codec->encoding->block, elements) << name;
    ASSERT_EQ(codec->encoding->planes.size(), 1U) << name;
    ASSERT_EQ(codec->encoding->planes[0].bytes, bytes) << name;
    const auto blocks = blocks_of(static_cast<std::size_t>(bytes));
    std::vector<float> values(static_cast<std::size_t>(512 * elements));
    const auto* address = reinterpret_cast<const std::byte*>(blocks.data());
    codec->decode({.planes = {&address, 1}, .rows = 256, .columns = 2 * elements}, values.data());
    const auto part = static_cast<std::size_t>(32 * elements);
    for (std::size_t i = 0; i < 16; ++i) {
      std::uint64_t known = 0;
      ASSERT_TRUE(words >> known) << name;
      EXPECT_EQ(fingerprint(std::span(values).subspan(i * part, part)), known) << name << ", blocks from " << 32 * i;
    }
    seen.insert(name);
  }
  EXPECT_EQ(seen.size(), 27U);
}

}  // namespace
}  // namespace rlx
