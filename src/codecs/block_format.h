// Formats whose blocks lie in one piece, one after the other: a class with the sizes of a block and the functions that
// read and write one becomes a codec.
#pragma once

#include <array>
#include <cstdint>

#include "codecs/codec.h"
#include "codecs/integer_form.h"
#include "core/element.h"

namespace rlx {

// Nothing else points into the memory: loops over single bytes are vectorised only then.
using BlockBytes = const std::uint8_t* __restrict;
using BlockFloats = float* __restrict;

/// The little-endian numbers at an address; a half as f32.
inline std::uint32_t u16_at(const std::uint8_t* p) { return std::uint32_t{p[0]} | std::uint32_t{p[1]} << 8; }
inline std::uint32_t u32_at(const std::uint8_t* p) { return u16_at(p) | u16_at(p + 2) << 16; }
inline float half_at(const std::uint8_t* p) { return number_of(StoredHalf16{static_cast<std::uint16_t>(u16_at(p))}); }

/// Bit i of the byte becomes byte i, 0 or 1.
inline std::uint64_t bits_to_bytes(std::uint8_t bits) {
  const std::uint64_t kept = bits * 0x0101010101010101U & 0x8040201008040201U;
  return (kept + 0x7F7F7F7F7F7F7F7FU) >> 7 & 0x0101010101010101U;
}

/// Codes of 4 bits into a table: `count` elements from the low halves of as many bytes, then those of the high halves.
template <std::size_t count>
void decode_nibbles(BlockBytes codes, const std::array<std::int8_t, 16>& levels, float scale, BlockFloats to) {
  std::array<std::int8_t, 2 * count> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = levels[codes[i] & 15];
    numbers[count + i] = levels[codes[i] >> 4];
  }
  for (std::size_t i = 0; i < 2 * count; ++i) to[i] = scale * static_cast<float>(numbers[i]);
}

/// What the codec of a format is made of. `Format` has
///   static constexpr std::string_view name;            of the encoding
///   static constexpr Index elements, bytes;            of a block
///   static void decode(BlockBytes block, BlockFloats to);
///   static void encode(const float* from, const float* importance, std::uint8_t* block);   when it can be written;
///   static constexpr IntegerForm integers;             when its elements are small integers times scales;
/// `importance` is null or a weight of the squared error for each of the elements.
template <class Format>
struct BlockFormat {
  static constexpr std::array<Plane, 1> layout{{{"blocks", Format::bytes}}};
  static constexpr Encoding encoding{Format::name, Format::elements, layout};

  static void decode(const EncodedRows& from, float* to) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(from.planes[0]);
    const Index blocks = from.rows * (from.columns / Format::elements);
    for (Index i = 0; i < blocks; ++i, p += Format::bytes, to += Format::elements) Format::decode(p, to);
  }

  static void encode(const float* from, Index rows, Index columns, const float* importance,
                     std::span<std::byte* const> planes) {
    auto* p = reinterpret_cast<std::uint8_t*>(planes[0]);
    for (Index r = 0; r < rows; ++r) {
      for (Index c = 0; c < columns; c += Format::elements, p += Format::bytes, from += Format::elements) {
        Format::encode(from, importance ? importance + c : nullptr, p);
      }
    }
  }
};

/// The codec of a block format.
template <class Format>
constexpr Codec block_codec(std::string_view source) {
  using Made = BlockFormat<Format>;
  Codec codec{.encoding = &Made::encoding, .source = source, .decode = Made::decode};
  if constexpr (requires { &Format::encode; }) codec.encode = Made::encode;
  if constexpr (requires { &Format::integers; }) codec.integers = &Format::integers;
  return codec;
}

}  // namespace rlx
