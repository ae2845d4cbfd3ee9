// Blocks of 256 codes in groups with small scales, which an f16 scale of the block multiplies.
#pragma once

#include "codecs/block_format.h"
#include "codecs/k_quants/integers.h"

namespace rlx::k_quants {

/// Scale and minimum of a group, each of 6 bits. 12 bytes hold them for 8 groups: 4 scales and 4 minima in their low 6
/// bits; the other 4 of each in 4 bits of the last bytes and the 2 bits left in the first.
struct GroupScale {
  int scale, minimum;
};
GroupScale group_scale(const std::uint8_t* s, int group);

// 16 groups of 16 codes of 2 bits, scale and minimum of 4 bits each: scales 16, codes 64, d, dmin.
struct Q2K {
  static constexpr std::string_view name = "q2_k";
  static constexpr Index elements = 256, bytes = 84;
  static constexpr IntegerForm integers = q2_k;
  static void decode(BlockBytes block, BlockFloats to);
  static void encode(const float* from, const float* importance, std::uint8_t* block);
};

// 16 groups of 16 codes of 3 bits, signed scales of 6: third bits 32, low bits 64, scales 12, d.
struct Q3K {
  static constexpr std::string_view name = "q3_k";
  static constexpr Index elements = 256, bytes = 110;
  static constexpr IntegerForm integers = q3_k;
  static void decode(BlockBytes block, BlockFloats to);
  static void encode(const float* from, const float* importance, std::uint8_t* block);
};

// 8 groups of 32 codes of 4 bits, scale and minimum of 6: d, dmin, scales 12, codes 128.
struct Q4K {
  static constexpr std::string_view name = "q4_k";
  static constexpr Index elements = 256, bytes = 144;
  static constexpr IntegerForm integers = q4_k;
  static void decode(BlockBytes block, BlockFloats to);
  static void encode(const float* from, const float* importance, std::uint8_t* block);
};

// 8 groups of 32 codes of 5 bits, scale and minimum of 6: d, dmin, scales 12, fifth bits 32, low bits 128.
struct Q5K {
  static constexpr std::string_view name = "q5_k";
  static constexpr Index elements = 256, bytes = 176;
  static constexpr IntegerForm integers = q5_k;
  static void decode(BlockBytes block, BlockFloats to);
  static void encode(const float* from, const float* importance, std::uint8_t* block);
};

// 16 groups of 16 codes of 6 bits, signed scales of 8: low bits 128, high bits 64, scales 16, d.
struct Q6K {
  static constexpr std::string_view name = "q6_k";
  static constexpr Index elements = 256, bytes = 210;
  static constexpr IntegerForm integers = q6_k;
  static void decode(BlockBytes block, BlockFloats to);
  static void encode(const float* from, const float* importance, std::uint8_t* block);
};

// Codes of 8 bits with an f32 scale, and the sums of groups of 16 for products with other blocks: d, codes 256,
// sums 32.
struct Q8K {
  static constexpr std::string_view name = "q8_k";
  static constexpr Index elements = 256, bytes = 292;
  static void decode(BlockBytes block, BlockFloats to);
  static void encode(const float* from, const float* importance, std::uint8_t* block);
};

}  // namespace rlx::k_quants
