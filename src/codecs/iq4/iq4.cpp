// Codes of 4 bits into a table of 16 uneven levels.
#include "codecs/block_format.h"
#include "codecs/iq4/integers.h"

namespace rlx {

namespace {

struct Iq4Nl {
  static constexpr std::string_view name = "iq4_nl";
  static constexpr Index elements = 32, bytes = 18;
  static constexpr IntegerForm integers = iq4::iq4_nl;
  static void decode(BlockBytes block, BlockFloats to) {
    decode_nibbles<16>(block + 2, iq4::levels, half_at(block), to);
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
};

constexpr std::string_view source = "GGUF file format, ggml";
constexpr std::array codecs{block_codec<Iq4Nl>(source), block_codec<Iq4Xs>(source)};

}  // namespace

std::span<const Codec> iq4_codecs() { return codecs; }

}  // namespace rlx
