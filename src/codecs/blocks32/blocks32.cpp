// Blocks of 32 codes of 4, 5 or 8 bits with an f16 scale and, in some, an f16 minimum.
#include <array>
#include <cmath>
#include <cstring>

#include "codecs/block_format.h"
#include "codecs/blocks32/integers.h"
#include "codecs/write.h"

namespace rlx {

namespace {

// Of two halves of a block, the codes of one lie in the low bits of 16 bytes, those of the other in the high bits.
constexpr int half = 16;

struct Q4_0 {
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

  static void encode(const float* from, const float*, std::uint8_t* block) {
    // The code furthest from 0 is -8, so the element furthest from 0 gets it.
    float extreme = 0;
    for (int i = 0; i < elements; ++i) extreme = std::fabs(from[i]) > std::fabs(extreme) ? from[i] : extreme;
    const float d = put_half(extreme / -8, block);
    const float inverse = d == 0 ? 0 : 1 / d;
    for (int i = 0; i < half; ++i) {
      const int low = nearest_within(from[i] * inverse, -8, 7) + 8;
      const int high = nearest_within(from[half + i] * inverse, -8, 7) + 8;
      block[2 + i] = static_cast<std::uint8_t>(low | high << 4);
    }
  }
};

struct Q4_1 {
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

struct Q5_0 {
  static constexpr std::string_view name = "q5_0";
  static constexpr Index elements = 32, bytes = 22;
  static constexpr IntegerForm integers = blocks32::q5_0;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    const auto codes = five_bits(block + 2);
    for (std::size_t i = 0; i < elements; ++i) to[i] = static_cast<float>(codes[i] - 16) * d;
  }
};

struct Q5_1 {
  static constexpr std::string_view name = "q5_1";
  static constexpr Index elements = 32, bytes = 24;
  static constexpr IntegerForm integers = blocks32::q5_1;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block), m = half_at(block + 2);
    const auto codes = five_bits(block + 4);
    for (std::size_t i = 0; i < elements; ++i) to[i] = static_cast<float>(codes[i]) * d + m;
  }
};

// Codes of 8 bits that begin at a byte of the block.
void decode_bytes(BlockBytes codes, float d, BlockFloats to) {
  for (int i = 0; i < 32; ++i) to[i] = static_cast<float>(static_cast<std::int8_t>(codes[i])) * d;
}

struct Q8_0 {
  static constexpr std::string_view name = "q8_0";
  static constexpr Index elements = 32, bytes = 34;
  static constexpr IntegerForm integers = blocks32::q8_0;

  static void decode(BlockBytes block, BlockFloats to) { decode_bytes(block + 2, half_at(block), to); }

  static void encode(const float* from, const float*, std::uint8_t* block) {
    float largest = 0;
    for (int i = 0; i < elements; ++i) largest = std::max(largest, std::fabs(from[i]));
    const float d = put_half(largest / 127, block);
    const float inverse = d == 0 ? 0 : 1 / d;
    for (int i = 0; i < elements; ++i) {
      block[2 + i] = static_cast<std::uint8_t>(nearest_within(from[i] * inverse, -127, 127));
    }
  }
};

// Holds the scaled sum of its codes too, for products with other blocks.
struct Q8_1 {
  static constexpr std::string_view name = "q8_1";
  static constexpr Index elements = 32, bytes = 36;

  static void decode(BlockBytes block, BlockFloats to) { decode_bytes(block + 4, half_at(block), to); }
};

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<Q4_0>(source), block_codec<Q4_1>(source), block_codec<Q5_0>(source),
                            block_codec<Q5_1>(source), block_codec<Q8_0>(source), block_codec<Q8_1>(source)};

}  // namespace

std::span<const Codec> blocks32_codecs() { return codecs; }

}  // namespace rlx
