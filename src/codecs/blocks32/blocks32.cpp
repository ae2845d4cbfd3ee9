// Blocks of 32 codes of 4, 5 or 8 bits with an f16 scale and, in some, an f16 minimum.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "codecs/block_format.h"
#include "codecs/blocks32/integers.h"
#include "codecs/fit.h"
#include "codecs/write.h"

namespace rlx {

namespace {

// Of two halves of a block, the codes of one lie in the low bits of 16 bytes, those of the other in the high bits.
constexpr int half = 16;

struct Q40 {
  static constexpr std::string_view name = "q4_0";
  static constexpr Index elements = 32, bytes = 18;
  static constexpr IntegerForm integers = blocks32::q4_0;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    for (int i = 0; i < half; ++i) {
      to[i] = static_cast<float>((block[2 + i] & 15) - 8) * d;
      to[half + i] = static_cast<float>((block[2 + i] >> 4) - 8) * d;
    }
  }

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    const float d = put_half(fit_scale(from, importance, elements, -8, 7), block);
    std::array<std::int8_t, elements> codes;
    round_codes(from, elements, d, -8, 7, codes.data());
    for (std::size_t i = 0; i < half; ++i) {
      block[2 + i] = static_cast<std::uint8_t>((codes[i] + 8) | (codes[half + i] + 8) << 4);
    }
  }
};

// Codes from 0 of elements d q + m. Writes d and m as f16.
std::array<std::int8_t, 32> put_line(const float* from, const float* importance, int high, std::uint8_t* block) {
  const Line line = fit_line(from, importance, 32, high);
  const float d = put_half(line.scale, block), m = put_half(line.minimum, block + 2);
  std::array<float, 32> above;
  for (std::size_t i = 0; i < above.size(); ++i) above[i] = from[i] - m;
  std::array<std::int8_t, 32> codes;
  round_codes(above.data(), 32, d, 0, high, codes.data());
  return codes;
}

struct Q41 {
  static constexpr std::string_view name = "q4_1";
  static constexpr Index elements = 32, bytes = 20;
  static constexpr IntegerForm integers = blocks32::q4_1;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block), m = half_at(block + 2);
    for (int i = 0; i < half; ++i) {
      to[i] = static_cast<float>(block[4 + i] & 15) * d + m;
      to[half + i] = static_cast<float>(block[4 + i] >> 4) * d + m;
    }
  }

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    const auto codes = put_line(from, importance, 15, block);
    for (std::size_t i = 0; i < half; ++i) block[4 + i] = static_cast<std::uint8_t>(codes[i] | codes[half + i] << 4);
  }
};

// Codes of 5 bits: the fifth bit of element i is bit i of a word before the low bits.
std::array<std::uint8_t, 32> five_bits(BlockBytes word) {
  std::array<std::uint8_t, 32> codes;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t fifth = bits_to_bytes(word[i]) << 4;
    std::memcpy(codes.data() + 8 * i, &fifth, 8);
  }
  for (std::size_t i = 0; i < half; ++i) {
    codes[i] = static_cast<std::uint8_t>(codes[i] | (word[4 + i] & 15));
    codes[half + i] = static_cast<std::uint8_t>(codes[half + i] | word[4 + i] >> 4);
  }
  return codes;
}

void put_five_bits(const std::array<std::int8_t, 32>& codes, std::uint8_t* word) {
  std::fill_n(word, 4, std::uint8_t{0});
  for (std::size_t i = 0; i < 32; ++i) word[i / 8] = static_cast<std::uint8_t>(word[i / 8] | codes[i] >> 4 << i % 8);
  for (std::size_t i = 0; i < half; ++i) {
    word[4 + i] = static_cast<std::uint8_t>((codes[i] & 15) | (codes[half + i] & 15) << 4);
  }
}

struct Q50 {
  static constexpr std::string_view name = "q5_0";
  static constexpr Index elements = 32, bytes = 22;
  static constexpr IntegerForm integers = blocks32::q5_0;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    const auto codes = five_bits(block + 2);
    for (std::size_t i = 0; i < elements; ++i) to[i] = static_cast<float>(codes[i] - 16) * d;
  }

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    const float d = put_half(fit_scale(from, importance, elements, -16, 15), block);
    std::array<std::int8_t, elements> codes;
    round_codes(from, elements, d, -16, 15, codes.data());
    for (std::int8_t& code : codes) code = static_cast<std::int8_t>(code + 16);
    put_five_bits(codes, block + 2);
  }
};

struct Q51 {
  static constexpr std::string_view name = "q5_1";
  static constexpr Index elements = 32, bytes = 24;
  static constexpr IntegerForm integers = blocks32::q5_1;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block), m = half_at(block + 2);
    const auto codes = five_bits(block + 4);
    for (std::size_t i = 0; i < elements; ++i) to[i] = static_cast<float>(codes[i]) * d + m;
  }

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    put_five_bits(put_line(from, importance, 31, block), block + 4);
  }
};

// Codes of 8 bits that begin at a byte of the block.
void decode_bytes(BlockBytes codes, float d, BlockFloats to) {
  for (int i = 0; i < 32; ++i) to[i] = static_cast<float>(static_cast<std::int8_t>(codes[i])) * d;
}

// The scale and the codes; gives d times the sum of the codes.
float put_bytes(const float* from, std::uint8_t* scale, std::uint8_t* codes) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) largest = std::max(largest, std::fabs(from[i]));
  const float d = put_half(largest / 127, scale), inverse = d == 0 ? 0 : 1 / d;
  int sum = 0;
  for (int i = 0; i < 32; ++i) {
    const int code = nearest_within(from[i] * inverse, -127, 127);
    codes[i] = static_cast<std::uint8_t>(code);
    sum += code;
  }
  return d * static_cast<float>(sum);
}

struct Q80 {
  static constexpr std::string_view name = "q8_0";
  static constexpr Index elements = 32, bytes = 34;
  static constexpr IntegerForm integers = blocks32::q8_0;

  static void decode(BlockBytes block, BlockFloats to) { decode_bytes(block + 2, half_at(block), to); }

  static void encode(const float* from, const float*, std::uint8_t* block) { put_bytes(from, block, block + 2); }
};

// Holds the scaled sum of its codes too, for products with other blocks.
struct Q81 {
  static constexpr std::string_view name = "q8_1";
  static constexpr Index elements = 32, bytes = 36;

  static void decode(BlockBytes block, BlockFloats to) { decode_bytes(block + 4, half_at(block), to); }

  static void encode(const float* from, const float*, std::uint8_t* block) {
    put_half(put_bytes(from, block, block + 4), block + 2);
  }
};

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<Q40>(source), block_codec<Q41>(source), block_codec<Q50>(source),
                            block_codec<Q51>(source), block_codec<Q80>(source), block_codec<Q81>(source)};

}  // namespace

std::span<const Codec> blocks32_codecs() { return codecs; }

}  // namespace rlx
