// Known answers of the block formats, from the public C decoder.
#include <gtest/gtest.h>

#include <cstring>

#include "codecs/codec.h"

namespace rlx {
namespace {

struct Known {
  const char* name;
  double sum;                       // of (i + 1) times element i
  std::vector<std::size_t> ones;    // where the f16 1 is written
  std::vector<std::size_t> halves;  // where the f16 0.5 is written
};

std::vector<float> decoded(const Codec& codec, const std::vector<std::uint8_t>& block) {
  const auto* address = reinterpret_cast<const std::byte*>(block.data());
  std::vector<float> out(static_cast<std::size_t>(codec.encoding->block));
  codec.decode({.planes = {&address, 1}, .rows = 1, .columns = codec.encoding->block}, out.data());
  return out;
}

TEST(KnownAnswers, OfEveryBlock) {
  const Known rows[]{
      {"q4_0", -518, {0}, {}},
      {"q4_1", 4247, {0}, {2}},
      {"q8_0", -8080, {0}, {}},
      {"q4_k", 7572840, {0}, {2}},
  };
  for (const Known& row : rows) {
    const Codec* codec = find_codec(row.name);
    ASSERT_NE(codec, nullptr) << row.name;
    std::vector<std::uint8_t> block(static_cast<std::size_t>(codec->encoding->planes[0].bytes));
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::uint8_t>(37 * i + 11);
    for (const std::size_t at : row.ones) block[at] = 0, block[at + 1] = 0x3C;
    for (const std::size_t at : row.halves) block[at] = 0, block[at + 1] = 0x38;
    double sum = 0;
    const auto y = decoded(*codec, block);
    for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(i + 1) * static_cast<double>(y[i]);
    EXPECT_EQ(sum, row.sum) << row.name;
  }
}

}  // namespace
}  // namespace rlx
