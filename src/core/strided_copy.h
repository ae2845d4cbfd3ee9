// Copies between strided boxes of elements: permutations, slices, repeats and joins are all this one loop.
#pragma once

#include <array>
#include <cstddef>

#include "core/index.h"

namespace rlx {

/// Most axes of a box.
inline constexpr std::size_t most_axes = 16;

/// A box of elements that is read at one set of strides and written at another. Strides count elements; those that
/// read may be 0 or negative, those that write may be negative.
struct CopyBox {
  std::size_t rank = 0;
  std::array<Index, most_axes> size, from, to;
  /// Adds an axis behind the others.
  void add(Index extent, Index from_stride, Index to_stride) {
    size[rank] = extent;
    from[rank] = from_stride;
    to[rank++] = to_stride;
  }
  Index count() const;
};

/// Copies elements [begin, end) of a box, in its row-major order. `from` and `to` are the addresses of its element 0.
/// Elements have `width` bytes: 1, 2, 4, 8 or 16. What is read and what is written must not overlap. Runs that are
/// contiguous on both sides are copied as bytes; where one axis is contiguous on each side, tiles are transposed.
void strided_copy(const CopyBox& box, Index width, const std::byte* from, std::byte* to, Index begin, Index end);

/// The same for packed elements of `bits` bits, 4 or 2, little end first, between element positions `from_first` and
/// `to_first`. Bytes that hold other elements too keep these.
void strided_copy_packed(const CopyBox& box, int bits, const std::byte* from, Index from_first, std::byte* to,
                         Index to_first, Index begin, Index end);

/// Elements of `bits` bits, 4 or 2, in a byte.
inline Index packed_in_byte(int bits) { return 8 / bits; }
/// Element `i` of packed elements of `bits` bits, 4 or 2.
inline unsigned packed_at(const std::byte* p, Index i, int bits) {
  const Index each = packed_in_byte(bits);
  return (std::to_integer<unsigned>(p[i / each]) >> (i % each * bits)) & ((1u << bits) - 1);
}
/// Sets element `i` of packed elements of `bits` bits, 4 or 2.
inline void set_packed(std::byte* p, Index i, unsigned code, int bits) {
  const Index each = packed_in_byte(bits);
  const auto shift = static_cast<unsigned>(i % each * bits);
  const unsigned mask = (1u << bits) - 1;
  std::byte& to = p[i / each];
  to = static_cast<std::byte>((std::to_integer<unsigned>(to) & ~(mask << shift)) | (code & mask) << shift);
}

}  // namespace rlx
