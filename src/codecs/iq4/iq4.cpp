// Codes of 4 bits into a table of 16 uneven levels.
#include <cmath>

#include "codecs/block_format.h"
#include "codecs/fit.h"
#include "codecs/iq4/integers.h"
#include "codecs/write.h"

namespace rlx {

namespace {

constexpr LevelTable table(iq4::levels);

// The 16 bytes of 32 codes for a scale.
void put_nibbles(const float* from, float scale, std::uint8_t* to) {
  std::array<std::uint8_t, 32> codes;
  table.round(from, 32, scale, codes.data());
  for (std::size_t i = 0; i < 16; ++i) to[i] = static_cast<std::uint8_t>(codes[i] | codes[16 + i] << 4);
}

struct Iq4Nl {
  static constexpr std::string_view name = "iq4_nl";
  static constexpr Index elements = 32, bytes = 18;
  static constexpr IntegerForm integers = iq4::iq4_nl;
  static void decode(BlockBytes block, BlockFloats to) {
    decode_nibbles<16>(block + 2, iq4::levels, half_at(block), to);
  }

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    put_nibbles(from, put_half(table.fit(from, importance, elements), block), block + 2);
  }
};

// 8 groups with scales of 6 bits: d, the high 2 bits of the scales, their low 4 bits, codes.
struct Iq4Xs {
  static constexpr std::string_view name = "iq4_xs";
  static constexpr Index elements = 256, bytes = 136;
  static constexpr IntegerForm integers = iq4::iq4_xs;

  static void decode(BlockBytes block, BlockFloats to) {
    const float d = half_at(block);
    const std::uint32_t high = u16_at(block + 2);
    for (int group = 0; group < 8; ++group) {
      const int low = block[4 + group / 2] >> 4 * (group % 2) & 15;
      const int scale = (low | static_cast<int>(high >> 2 * group & 3) << 4) - 32;
      decode_nibbles<16>(block + 8 + 16 * group, iq4::levels, d * static_cast<float>(scale), to + 32 * group);
    }
  }

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    std::array<float, 8> scales;
    float extreme = 0;
    for (std::size_t g = 0; g < 8; ++g) {
      scales[g] = table.fit(from + 32 * g, importance ? importance + 32 * g : nullptr, 32);
      extreme = std::fabs(scales[g]) > std::fabs(extreme) ? scales[g] : extreme;
    }
    const float d = put_half(extreme / -32, block);
    std::uint32_t high = 0, low = 0;
    for (std::size_t g = 0; g < 8; ++g) {
      const int step = d == 0 ? 0 : nearest_within(scales[g] / d, -32, 31);
      const auto bits = static_cast<std::uint32_t>(step + 32);
      high |= bits >> 4 << 2 * g;
      low |= (bits & 15) << 4 * g;
      put_nibbles(from + 32 * g, d * static_cast<float>(step), block + 8 + 16 * g);
    }
    for (std::size_t i = 0; i < 2; ++i) block[2 + i] = static_cast<std::uint8_t>(high >> 8 * i);
    for (std::size_t i = 0; i < 4; ++i) block[4 + i] = static_cast<std::uint8_t>(low >> 8 * i);
  }
};

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<Iq4Nl>(source), block_codec<Iq4Xs>(source)};

}  // namespace

std::span<const Codec> iq4_codecs() { return codecs; }

}  // namespace rlx
