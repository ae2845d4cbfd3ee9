// Known answers of the block formats: from the public C decoder, and by hand.
#include <gtest/gtest.h>

#include "codecs/codec.h"

namespace rlx {
namespace {

std::vector<float> decoded(const char* name, const std::vector<std::uint8_t>& bytes) {
  const Codec& codec = *find_codec(name);
  const auto* address = reinterpret_cast<const std::byte*>(bytes.data());
  const auto blocks = static_cast<Index>(bytes.size()) / codec.encoding->planes[0].bytes;
  std::vector<float> out(static_cast<std::size_t>(blocks * codec.encoding->block));
  codec.decode({.planes = {&address, 1}, .rows = 1, .columns = blocks * codec.encoding->block}, out.data());
  return out;
}

std::vector<std::uint8_t> zeros(const char* name, std::size_t blocks = 1) {
  return std::vector<std::uint8_t>(blocks * static_cast<std::size_t>(find_codec(name)->encoding->planes[0].bytes));
}

void put(std::vector<std::uint8_t>& block, std::size_t at, std::vector<std::uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), block.begin() + static_cast<std::ptrdiff_t>(at));
}

// Byte i of a block is 37 i + 11, but for the scales.
struct Known {
  const char* name;
  double sum;  // of (i + 1) times element i
  std::size_t scale_at;
  std::vector<std::uint8_t> scale;
};

TEST(KnownAnswers, OfEveryBlock) {
  const std::vector<std::uint8_t> one{0, 0x3C}, one_and_half{0, 0x3C, 0, 0x38};
  const Known rows[]{{"q4_0", -518, 0, one},
                     {"q4_1", 4247, 0, one_and_half},
                     {"q5_0", 112, 0, one},
                     {"q5_1", 8165, 0, one_and_half},
                     {"q8_0", -8080, 0, one},
                     {"q2_k", 243130, 80, one_and_half},
                     {"q3_k", 177145, 108, one},
                     {"q4_k", 7572840, 0, one_and_half},
                     {"q5_k", 16027448, 0, one_and_half},
                     {"q6_k", 784420, 208, one},
                     {"q8_k", 45440, 0, {0, 0, 0x80, 0x3F}},
                     {"iq4_nl", -6919, 0, one},
                     {"iq4_xs", -2091134, 0, one},
                     {"iq2_xxs", 36793, 0, one},
                     {"iq2_xs", 123198.125, 0, one},
                     {"iq2_s", -62080.625, 0, one},
                     {"iq3_xxs", 3023, 0, one},
                     {"iq3_s", 202790, 0, one},
                     {"iq1_s", -11829, 0, one},
                     {"tq1_0", -131, 52, one},
                     {"tq2_0", 17245, 64, one},
                     {"mxfp4", 319, 0, {127}},
                     {"nvfp4", -176.75, 0, {0x38, 0x40, 0x30, 0x7F}},
                     {"q1_0", -532, 0, one},
                     {"q2_0", 813, 0, one}};
  for (const Known& row : rows) {
    std::vector<std::uint8_t> block = zeros(row.name);
    for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::uint8_t>(37 * i + 11);
    put(block, row.scale_at, row.scale);
    double sum = 0;
    const auto y = decoded(row.name, block);
    for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(i + 1) * static_cast<double>(y[i]);
    EXPECT_EQ(sum, row.sum) << row.name;
  }
}

// The scale of this format lies in the top bits of four words.
TEST(KnownAnswers, OfIq1M) {
  std::vector<std::uint8_t> block = zeros("iq1_m");
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::uint8_t>(37 * i + 11);
  const std::uint8_t nibbles[]{0, 0, 0xC, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    std::uint8_t& top = block[49 + 2 * i];
    top = static_cast<std::uint8_t>((top & 15) | nibbles[i] << 4);
  }
  double sum = 0;
  const auto y = decoded("iq1_m", block);
  for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(i + 1) * static_cast<double>(y[i]);
  EXPECT_EQ(sum, -2236);
}

TEST(KnownAnswers, Q8_1HasItsCodesBehindScaleAndSum) {
  std::vector<std::uint8_t> block = zeros("q8_1");
  put(block, 0, {0, 0x38, 0, 0x7C, 3, 0x80});
  const auto y = decoded("q8_1", block);
  EXPECT_EQ(y[0], 1.5F);
  EXPECT_EQ(y[1], -64.0F);
  EXPECT_EQ(y[2], 0.0F);
}

TEST(KnownAnswers, P83_NibblesOfMxfp4AreHalvesOfTheBlock) {
  std::vector<std::uint8_t> block = zeros("mxfp4");
  put(block, 0, {127, 0x21});
  const auto y = decoded("mxfp4", block);
  EXPECT_EQ(y[0], 0.5F);
  EXPECT_EQ(y[1], 0.0F);
  EXPECT_EQ(y[16], 1.0F);
}

TEST(KnownAnswers, P84_ScalesOfQ6KAreSigned) {
  std::vector<std::uint8_t> block = zeros("q6_k");
  put(block, 0, {1});       // low bits of element 0: code 33 is 1
  put(block, 128, {2});     // and its high bits
  put(block, 192, {0xFF});  // -1
  put(block, 208, {0, 0x3C});
  EXPECT_EQ(decoded("q6_k", block)[0], -1.0F);
}

TEST(KnownAnswers, P84_ScalesOfQ2KAndQ3KFollowTheCodes) {
  std::vector<std::uint8_t> block = zeros("q2_k");
  put(block, 0, {0x21});         // scale 1, minimum 2
  put(block, 16, {0b11100100});  // elements 0, 32, 64, 96
  put(block, 80, {0, 0x40, 0, 0x3C});
  put(block, 2, {1});
  auto y = decoded("q2_k", block);
  EXPECT_EQ(y[0], -2.0F);
  EXPECT_EQ(y[32], 2.0F);
  block = zeros("q3_k");
  put(block, 0, {2});      // third bit of element 32
  put(block, 32, {0x0C});  // its low bits
  put(block, 96 + 2, {1});
  put(block, 96 + 8 + 2, {2});  // scale of group 2: 33 - 32
  put(block, 108, {0, 0x40});
  y = decoded("q3_k", block);
  EXPECT_EQ(y[32], 2.0F * 1 * 3);
  EXPECT_EQ(y[33], 2.0F * 1 * -4);
}

TEST(KnownAnswers, P84_Q4KTakesLowNibblesOf32BytesFirst) {
  std::vector<std::uint8_t> block = zeros("q4_k");
  put(block, 0, {0, 0x3C});
  put(block, 4, {1, 2});  // scales of groups 0 and 1
  put(block, 16, {0x75});
  const auto y = decoded("q4_k", block);
  EXPECT_EQ(y[0], 5.0F);
  EXPECT_EQ(y[32], 14.0F);
}

TEST(KnownAnswers, P84_FifthBitOfQ5KIsTheNumberOfTheGroup) {
  std::vector<std::uint8_t> block = zeros("q5_k");
  put(block, 0, {0, 0x3C});
  put(block, 4 + 8, {1});  // scale of group 4
  put(block, 16 + 3, {1 << 4});
  const auto y = decoded("q5_k", block);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i == 128 + 3 ? 16.0F : 0.0F) << i;
}

TEST(KnownAnswers, P85_BlocksOfQ8KAre292Bytes) {
  std::vector<std::uint8_t> blocks = zeros("q8_k", 2);
  ASSERT_EQ(blocks.size(), 584U);
  put(blocks, 0, {0, 0, 0x80, 0x3F, 7});
  put(blocks, 292, {0, 0, 0, 0x40, 0xFD});
  const auto y = decoded("q8_k", blocks);
  EXPECT_EQ(y[0], 7.0F);
  EXPECT_EQ(y[256], -6.0F);
}

}  // namespace
}  // namespace rlx
