// Decoders of the blocks of 256 codes in groups.
#include <bit>

#include "codecs/k_quants/formats.h"

namespace rlx::k_quants {

GroupScale group_scale(const std::uint8_t* s, int group) {
  if (group < 4) return {s[group] & 63, s[group + 4] & 63};
  return {(s[group + 4] & 15) | s[group - 4] >> 6 << 4, s[group + 4] >> 4 | s[group] >> 6 << 4};
}

void Q2K::decode(BlockBytes block, BlockFloats to) {
  const float d = half_at(block + 80), m = half_at(block + 82);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(block[group] & 15), minimum = m * static_cast<float>(block[group] >> 4);
    // A half of the block has 32 bytes, two groups abreast; its four pairs of groups take two bits each.
    const std::uint8_t* q = block + 16 + 32 * (group / 8) + 16 * (group % 2);
    const int shift = group % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) to[16 * group + i] = scale * static_cast<float>(q[i] >> shift & 3) - minimum;
  }
}

void Q3K::decode(BlockBytes block, BlockFloats to) {
  const float d = half_at(block + 108);
  const std::uint8_t* s = block + 96;
  for (int group = 0; group < 16; ++group) {
    const int low = s[group & 7] >> 4 * (group >> 3) & 15, high = s[8 + (group & 3)] >> 2 * (group >> 2) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const std::uint8_t *q = block + 32 + 32 * (group / 8) + 16 * (group % 2), *third = block + 16 * (group % 2);
    const int shift = group % 8 / 2 * 2, bit = group / 2;
    for (int i = 0; i < 16; ++i) {
      const int code = (q[i] >> shift & 3) | (third[i] >> bit & 1) << 2;
      to[16 * group + i] = scale * static_cast<float>(code - 4);
    }
  }
}

void Q4K::decode(BlockBytes block, BlockFloats to) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int group = 0; group < 8; ++group) {
    const GroupScale s = group_scale(block + 4, group);
    const float scale = d * static_cast<float>(s.scale), minimum = m * static_cast<float>(s.minimum);
    const std::uint8_t* q = block + 16 + 32 * (group / 2);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) to[32 * group + i] = scale * static_cast<float>(q[i] >> shift & 15) - minimum;
  }
}

void Q5K::decode(BlockBytes block, BlockFloats to) {
  const float d = half_at(block), m = half_at(block + 2);
  for (int group = 0; group < 8; ++group) {
    const GroupScale s = group_scale(block + 4, group);
    const float scale = d * static_cast<float>(s.scale), minimum = m * static_cast<float>(s.minimum);
    const std::uint8_t *fifth = block + 16, *q = block + 48 + 32 * (group / 2);
    const int shift = group % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int code = (q[i] >> shift & 15) | (fifth[i] >> group & 1) << 4;
      to[32 * group + i] = scale * static_cast<float>(code) - minimum;
    }
  }
}

void Q6K::decode(BlockBytes block, BlockFloats to) {
  const float d = half_at(block + 208);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(block[192 + group]));
    // A half of the block has 8 groups: four quarters, of which two share 64 bytes of low bits and all 32 of high bits.
    const int in_half = group % 8, quarter = in_half / 2, side = 16 * (group % 2);
    const std::uint8_t* low = block + 64 * (group / 8) + 32 * (quarter % 2) + side;
    const std::uint8_t* high = block + 128 + 32 * (group / 8) + side;
    const int low_shift = quarter / 2 * 4, high_shift = quarter * 2;
    for (int i = 0; i < 16; ++i) {
      const int code = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
      to[16 * group + i] = scale * static_cast<float>(code - 32);
    }
  }
}

void Q8K::decode(BlockBytes block, BlockFloats to) {
  const float d = std::bit_cast<float>(u32_at(block));
  for (int i = 0; i < elements; ++i) to[i] = d * static_cast<float>(static_cast<std::int8_t>(block[4 + i]));
}

}  // namespace rlx::k_quants
