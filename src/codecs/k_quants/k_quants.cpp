// Blocks of 256 codes in groups with small scales, which an f16 scale of the block multiplies.
#include <array>

#include "codecs/block_format.h"

namespace rlx {

namespace {

// Scale and minimum of a group, each of 6 bits. The 12 bytes hold them for 8 groups: 4 scales and 4 minima in their
// low 6 bits; the other 4 of each in 4 bits of the last bytes and the 2 bits left in the first.
struct GroupScale {
  int scale, minimum;
};
GroupScale group_scale(const std::uint8_t* s, int group) {
  if (group < 4) return {s[group] & 63, s[group + 4] & 63};
  return {(s[group + 4] & 15) | s[group - 4] >> 6 << 4, s[group + 4] >> 4 | s[group] >> 6 << 4};
}

struct Q4K {
  static constexpr std::string_view name = "q4_k";
  static constexpr Index elements = 256, bytes = 144;

  static void decode(const std::uint8_t* block, float* to) {
    const float d = half_at(block), m = half_at(block + 2);
    const std::uint8_t *scales = block + 4, *q = block + 16;
    for (int pair = 0; pair < 4; ++pair, q += 32, to += 64) {
      const GroupScale a = group_scale(scales, 2 * pair), b = group_scale(scales, 2 * pair + 1);
      const float da = d * static_cast<float>(a.scale), ma = m * static_cast<float>(a.minimum);
      const float db = d * static_cast<float>(b.scale), mb = m * static_cast<float>(b.minimum);
      for (int i = 0; i < 32; ++i) to[i] = da * static_cast<float>(q[i] & 15) - ma;
      for (int i = 0; i < 32; ++i) to[32 + i] = db * static_cast<float>(q[i] >> 4) - mb;
    }
  }
};

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<Q4K>(source)};

}  // namespace

std::span<const Codec> k_quants_codecs();
std::span<const Codec> k_quants_codecs() { return codecs; }

}  // namespace rlx
