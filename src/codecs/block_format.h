// Formats whose blocks lie in one piece, one after the other: a class with the sizes of a block and the functions that
// read and write one becomes a codec.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "codecs/codec.h"
#include "core/element.h"

namespace rlx {

/// The f16 at an address, as f32.
inline float half_at(const std::uint8_t* p) {
  return number_of(StoredHalf16{static_cast<std::uint16_t>(p[0] | p[1] << 8)});
}
inline std::uint32_t u16_at(const std::uint8_t* p) { return std::uint32_t{p[0]} | std::uint32_t{p[1]} << 8; }
inline std::uint32_t u32_at(const std::uint8_t* p) { return u16_at(p) | u16_at(p + 2) << 16; }

/// What the codec of a format is made of. `Format` has
///   static constexpr std::string_view name;            of the encoding
///   static constexpr Index elements, bytes;            of a block
///   static void decode(const std::uint8_t* block, float* to);
///   static void encode(const float* from, const float* importance, std::uint8_t* block);   when it can be written;
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
  return codec;
}

}  // namespace rlx
