// Codes of f4e2m1 with scales of 8 bits, as GGUF files hold them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codecs/block_format.h"
#include "codecs/fp4/integers.h"
#include "core/dtype.h"

namespace rlx {

namespace {

// Half of an e8m0 number, 2^(byte - 128); 255 is NaN.
float half_power(std::uint32_t byte) {
  // The two smallest are denormal.
  if (byte < 2) return std::bit_cast<float>(0x00200000U << byte);
  return byte == 255 ? std::numeric_limits<float>::quiet_NaN() : std::bit_cast<float>((byte - 1) << 23);
}

// Codes nearest to from / scale, in the halves of `count` bytes; gives the sum of the weighted squared errors. `scale`
// is for doubled values.
template <std::size_t count>
float put_codes(const float* from, const float* importance, float scale, std::uint8_t* to) {
  const float inverse = scale == 0 ? 0 : 1 / scale;
  std::array<std::uint8_t, 2 * count> codes;
  float error = 0;
  for (std::size_t i = 0; i < 2 * count; ++i) {
    // A threshold is the middle of two doubled values.
    const float size = std::fabs(from[i] * inverse);
    const int code =
        (size > 0.5F) + (size >= 1.5F) + (size > 2.5F) + (size >= 3.5F) + (size > 5) + (size >= 7) + (size > 10);
    const bool minus = from[i] * inverse < 0;
    codes[i] = static_cast<std::uint8_t>(minus ? code + 8 : code);
    const float apart = from[i] - scale * static_cast<float>(fp4::doubled[codes[i]]);
    error += apart * apart * (importance ? importance[i] : 1);
  }
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(codes[i] | codes[count + i] << 4);
  return error;
}

// Of the scales with bytes from `first` to `last`, the one with the least error.
template <std::size_t count>
void put_best(const float* from, const float* importance, int first, int last, float (*scale_of)(std::uint32_t),
              std::uint8_t* scale, std::uint8_t* to) {
  float least = std::numeric_limits<float>::infinity();
  std::array<std::uint8_t, count> codes;
  for (int byte = last; byte >= first; --byte) {
    const float error = put_codes<count>(from, importance, scale_of(static_cast<std::uint32_t>(byte)), codes.data());
    if (byte < last && !(error < least)) continue;
    least = error;
    *scale = static_cast<std::uint8_t>(byte);
    std::copy(codes.begin(), codes.end(), to);
  }
}

float furthest_from_zero(const float* from, Index count) {
  float largest = 0;
  for (Index i = 0; i < count; ++i) largest = std::max(largest, std::fabs(from[i]));
  return largest;
}

// An e8m0 scale, codes.
struct Mxfp4 {
  static constexpr std::string_view name = "mxfp4";
  static constexpr Index elements = 32, bytes = 17;
  static constexpr IntegerForm integers = fp4::mxfp4;

  static void decode(BlockBytes block, BlockFloats to) {
    decode_nibbles<16>(block + 1, fp4::doubled, half_power(block[0]), to);
  }

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    // The scale that just covers the largest element, and those around it.
    const double cover = static_cast<double>(furthest_from_zero(from, elements)) / 6;
    const int byte = std::clamp(static_cast<int>(encode_float(DType::e8m0, cover)), 0, 254);
    put_best<16>(from, importance, std::max(byte - 2, 0), byte, half_power, block, block + 1);
  }
};

// Half of an e4m3 scale whose sign is not looked at. The byte 7F is 0; FF is not.
float half_scale(std::uint32_t byte) {
  if (byte == 0x7F) return 0;
  const int exponent = static_cast<int>(byte >> 3 & 15), mantissa = static_cast<int>(byte & 7);
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

  static void encode(const float* from, const float* importance, std::uint8_t* block) {
    for (int group = 0; group < 4; ++group) {
      const float* x = from + 16 * group;
      const double cover = static_cast<double>(furthest_from_zero(x, 16)) / 6;
      const auto byte = static_cast<int>(encode_float(DType::f8e4m3, cover));
      put_best<8>(x, importance ? importance + 16 * group : nullptr, std::max(byte - 6, 0), std::min(byte + 1, 126),
                  half_scale, block + group, block + 4 + 8 * group);
    }
  }
};

constexpr std::string_view source = "OCP MX 1.0, NVFP4; GGUF file format, ggml";
constexpr std::array codecs{block_codec<Mxfp4>(source), block_codec<Nvfp4>(source)};

}  // namespace

std::span<const Codec> fp4_codecs() { return codecs; }

}  // namespace rlx
