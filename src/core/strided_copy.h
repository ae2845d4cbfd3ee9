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

/// The same for packed 4-bit elements, little end first, between element positions `from_first` and `to_first`. Bytes
/// that hold other elements too keep these.
void strided_copy_packed(const CopyBox& box, const std::byte* from, Index from_first, std::byte* to, Index to_first,
                         Index begin, Index end);

/// Element `i` of packed 4-bit elements.
inline unsigned packed_at(const std::byte* p, Index i) {
  return (std::to_integer<unsigned>(p[i / 2]) >> (i % 2 * 4)) & 15u;
}
/// Sets element `i` of packed 4-bit elements.
inline void set_packed(std::byte* p, Index i, unsigned code) {
  const auto shift = static_cast<unsigned>(i % 2 * 4);
  p[i / 2] = static_cast<std::byte>((std::to_integer<unsigned>(p[i / 2]) & ~(15u << shift)) | (code & 15u) << shift);
}

}  // namespace rlx
