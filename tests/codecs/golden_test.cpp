// Every block format against fingerprints of what ggml decodes (scripts/make_codec_goldens).
#include "golden.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "codecs/codec.h"

namespace rlx {
namespace {

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
