// Codes of f4e2m1 with scales of 8 bits, as GGUF files hold them.
#include <bit>
#include <cmath>
#include <limits>

#include "codecs/block_format.h"
#include "codecs/fp4/integers.h"

namespace rlx {

namespace {

// Half of an e8m0 number, 2^(byte - 128); 255 is NaN.
float half_power(std::uint32_t byte) {
  // The two smallest are denormal.
  if (byte < 2) return std::bit_cast<float>(0x00200000U << byte);
  return byte == 255 ? std::numeric_limits<float>::quiet_NaN() : std::bit_cast<float>((byte - 1) << 23);
}

// An e8m0 scale, codes.
struct Mxfp4 {
  static constexpr std::string_view name = "mxfp4";
  static constexpr Index elements = 32, bytes = 17;
  static constexpr IntegerForm integers = fp4::mxfp4;

  static void decode(BlockBytes block, BlockFloats to) {
    decode_nibbles<16>(block + 1, fp4::doubled, half_power(block[0]), to);
  }
};

// Half of an e4m3 scale whose sign is not looked at. The byte 7F is 0; FF is not.
float half_scale(std::uint8_t byte) {
  if (byte == 0x7F) return 0;
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  return exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -10)
                       : std::ldexp(static_cast<float>(8 + mantissa), exponent - 11);
}

// Four groups of 16 elements: four scales, codes.
struct Nvfp4 {
  static constexpr std::string_view name = "nvfp4";
  static constexpr Index elements = 64, bytes = 36;

  static void decode(BlockBytes block, BlockFloats to) {
    for (int group = 0; group < 4; ++group) {
      decode_nibbles<8>(block + 4 + 8 * group, fp4::doubled, half_scale(block[group]), to + 16 * group);
    }
  }
};

constexpr std::string_view source = "OCP MX 1.0, NVFP4; GGUF file format, ggml";
constexpr std::array codecs{block_codec<Mxfp4>(source), block_codec<Nvfp4>(source)};

}  // namespace

std::span<const Codec> fp4_codecs() { return codecs; }

}  // namespace rlx
