// Blocks of 256 elements in tuples, whose sizes are looked up in a grid; signs and scales are stored beside.
#include <bit>

#include "codecs/block_format.h"
#include "codecs/grids/grid_tables.h"

namespace rlx {

namespace {

// A grid whose entries are words, one byte an element, element 0 in the low byte.
template <class Word, std::size_t entries, std::size_t values>
constexpr std::array<Word, entries> spread(const std::array<std::uint16_t, entries>& digits,
                                           const std::array<int, values>& meaning) {
  constexpr unsigned bits = values > 4 ? 3 : 2;
  std::array<Word, entries> grid{};
  for (std::size_t i = 0; i < entries; ++i) {
    for (unsigned j = 0; j < sizeof(Word); ++j) {
      const int value = meaning[digits[i] >> bits * j & ((1U << bits) - 1)];
      grid[i] |= static_cast<Word>(static_cast<std::uint8_t>(value)) << 8 * j;
    }
  }
  return grid;
}

constexpr std::array iq1_values{-1, 0, 1};
constexpr std::array iq2_values{8, 25, 43};
constexpr std::array iq3_xxs_values{4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array iq3_s_values{1, 3, 5, 7, 9, 11, 13, 15};
constexpr auto iq1 = spread<std::uint64_t>(grid_iq1, iq1_values);
constexpr auto iq2_xxs = spread<std::uint64_t>(grid_iq2_xxs, iq2_values);
constexpr auto iq2_xs = spread<std::uint64_t>(grid_iq2_xs, iq2_values);
constexpr auto iq2_s = spread<std::uint64_t>(grid_iq2_s, iq2_values);
constexpr auto iq3_xxs = spread<std::uint32_t>(grid_iq3_xxs, iq3_xxs_values);
constexpr auto iq3_s = spread<std::uint32_t>(grid_iq3_s, iq3_s_values);

// Eight elements from their sizes, one byte each. Bit i of `signs` makes element i negative.
void put_signed(std::uint64_t sizes, unsigned signs, float scale, BlockFloats to) {
  const std::uint64_t minus = bits_to_bytes(static_cast<std::uint8_t>(signs));
  // A size is not 0, so that no carry leaves its byte.
  const std::uint64_t numbers = (sizes ^ minus * 255) + minus;
  const auto bytes = std::bit_cast<std::array<std::int8_t, 8>>(numbers);
  for (std::size_t i = 0; i < 8; ++i) to[i] = scale * static_cast<float>(bytes[i]);
}

void put_shifted(std::uint64_t digits, float shift, float scale, BlockFloats to) {
  const auto bytes = std::bit_cast<std::array<std::int8_t, 8>>(digits);
  for (std::size_t i = 0; i < 8; ++i) to[i] = scale * (static_cast<float>(bytes[i]) + shift);
}

std::uint64_t both(std::uint32_t first, std::uint32_t second) { return first | std::uint64_t{second} << 32; }

// Seven signs; the eighth makes the number of negative elements even.
unsigned eight_signs(unsigned seven) { return seven | (static_cast<unsigned>(std::popcount(seven)) & 1) << 7; }

// Groups of 32: four indices, then a word of four times seven signs and a scale. d, groups.
struct Iq2Xxs {
  static constexpr std::string_view name = "iq2_xxs";
  static constexpr Index elements = 256, bytes = 66;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int group = 0; group < 8; ++group) {
      const std::uint8_t* at = block + 2 + 8 * group;
      const std::uint32_t word = u32_at(at + 4);
      const float scale = d * (0.5F + static_cast<float>(word >> 28)) * 0.25F;
      for (int t = 0; t < 4; ++t) {
        put_signed(iq2_xxs[at[t]], eight_signs(word >> 7 * t & 127), scale, to + 32 * group + 8 * t);
      }
    }
  }
};

// Words of an index and seven signs for every tuple, scales of 4 bits for two tuples. d, words 64, scales 8.
struct Iq2Xs {
  static constexpr std::string_view name = "iq2_xs";
  static constexpr Index elements = 256, bytes = 74;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int t = 0; t < 32; ++t) {
      const std::uint32_t word = u16_at(block + 2 + 2 * t);
      const int step = block[66 + t / 4] >> 4 * (t % 4 / 2) & 15;
      const float scale = d * (0.5F + static_cast<float>(step)) * 0.25F;
      put_signed(iq2_xs[word & 511], eight_signs(word >> 9), scale, to + 8 * t);
    }
  }
};

// d, low bytes of the indices 32, signs 32, high bits of the indices 8, scales 8.
struct Iq2S {
  static constexpr std::string_view name = "iq2_s";
  static constexpr Index elements = 256, bytes = 82;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int t = 0; t < 32; ++t) {
      const unsigned index = block[2 + t] | (block[66 + t / 4] >> 2 * (t % 4) & 3U) << 8;
      const int step = block[74 + t / 4] >> 4 * (t % 4 / 2) & 15;
      const float scale = d * (0.5F + static_cast<float>(step)) * 0.25F;
      put_signed(iq2_s[index], block[34 + t], scale, to + 8 * t);
    }
  }
};

// Tuples of 4. d, indices 64, a word of signs and a scale for each group of 32.
struct Iq3Xxs {
  static constexpr std::string_view name = "iq3_xxs";
  static constexpr Index elements = 256, bytes = 98;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int pair = 0; pair < 32; ++pair) {
      const std::uint32_t word = u32_at(block + 66 + 4 * (pair / 4));
      const float scale = d * (0.5F + static_cast<float>(word >> 28)) * 0.5F;
      const unsigned signs = eight_signs(word >> 7 * (pair % 4) & 127);
      put_signed(both(iq3_xxs[block[2 + 2 * pair]], iq3_xxs[block[3 + 2 * pair]]), signs, scale, to + 8 * pair);
    }
  }
};

// d, low bytes of the indices 64, their high bits 8, signs 32, scales 4.
struct Iq3S {
  static constexpr std::string_view name = "iq3_s";
  static constexpr Index elements = 256, bytes = 110;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int pair = 0; pair < 32; ++pair) {
      const int group = pair / 4;
      const unsigned ninth = static_cast<unsigned>(block[66 + group]) >> 2 * (pair % 4);
      const std::uint32_t first = iq3_s[block[2 + 2 * pair] | (ninth & 1) << 8];
      const std::uint32_t second = iq3_s[block[3 + 2 * pair] | (ninth >> 1 & 1) << 8];
      const int step = block[106 + group / 2] >> 4 * (group % 2) & 15;
      put_signed(both(first, second), block[74 + pair], d * static_cast<float>(1 + 2 * step), to + 8 * pair);
    }
  }
};

// Digits -1, 0, 1, moved by an eighth. d, low bytes of the indices 32, a word for each group of 32: the high bits of
// its four indices, a scale, the direction.
struct Iq1S {
  static constexpr std::string_view name = "iq1_s";
  static constexpr Index elements = 256, bytes = 50;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int t = 0; t < 32; ++t) {
      const std::uint32_t word = u16_at(block + 34 + 2 * (t / 4));
      const float scale = d * static_cast<float>(2 * (word >> 12 & 7) + 1);
      const std::uint32_t index = block[t + 2] | (word >> 3 * (t % 4) & 7) << 8;
      put_shifted(iq1[index], (word & 0x8000) != 0 ? -0.125F : 0.125F, scale, to + 8 * t);
    }
  }
};

// Low bytes of the indices 32, then for every tuple 4 bits with the rest of the index and the direction, 16; four words
// of scales of 3 bits, whose top 4 bits together are d.
struct Iq1M {
  static constexpr std::string_view name = "iq1_m";
  static constexpr Index elements = 256, bytes = 56;

  static void decode(BlockBytes block, BlockFloats to) {
    std::uint32_t bits = 0;
    for (int i = 0; i < 4; ++i) bits |= u16_at(block + 48 + 2 * i) >> 12 << 4 * i;
    const float d = number_of(StoredHalf16{static_cast<std::uint16_t>(bits)});
    for (int t = 0; t < 32; ++t) {
      const unsigned more = block[32 + t / 2] >> 4 * (t % 2) & 15U;
      const int group = t / 4;
      const std::uint32_t step = u16_at(block + 48 + 2 * (group / 2)) >> (6 * (group % 2) + 3 * (t % 4 / 2)) & 7;
      const float scale = d * static_cast<float>(2 * step + 1);
      put_shifted(iq1[block[t] | (more & 7) << 8], (more & 8) != 0 ? -0.125F : 0.125F, scale, to + 8 * t);
    }
  }
};

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<Iq1S>(source),  block_codec<Iq1M>(source), block_codec<Iq2Xxs>(source),
                            block_codec<Iq2Xs>(source), block_codec<Iq2S>(source), block_codec<Iq3Xxs>(source),
                            block_codec<Iq3S>(source)};

}  // namespace

std::span<const Codec> grids_codecs() { return codecs; }

}  // namespace rlx
