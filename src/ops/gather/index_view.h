// Indices in the memory of a step: i32 or i64, checked against the index policy before anything is written.
#pragma once

#include <string_view>

#include "device/copy_step.h"

namespace rlx {

/// Throws Error that names the op and the first index outside [-extent, extent), its coordinate, the axis and its size.
/// I is std::int32_t or std::int64_t; `indices` holds the elements of a dense tensor of these sizes.
template <class I>
void check_indices(std::string_view op, const I* indices, const Layout::Numbers& sizes, Index axis, Index extent);
extern template void check_indices(std::string_view, const std::int32_t*, const Layout::Numbers&, Index, Index);
extern template void check_indices(std::string_view, const std::int64_t*, const Layout::Numbers&, Index, Index);

/// The position that a checked index names.
inline Index position(Index index, Index extent) { return index < 0 ? index + extent : index; }

/// A line of a result along the axis that updates are scattered over: its first element, and the first of the updates
/// that go to it, or -1 when none do.
struct ScatterLine {
  Index to = 0, from = 0;
};
/// Line `number` of the result `y`; the updates `x` may be smaller along other axes.
ScatterLine scatter_line(const Layout::Numbers& y, const Layout::Numbers& x, std::size_t axis, Index number);

/// Items that one call should have at least, each of `item` elements of `type`: about 64 KiB, and a sixteenth of all,
/// since every call checks all indices.
Dim indexed_grain(DType type, const Dim& items, const Dim& item);

/// Calls f.template operator()<I>() with the C++ type of i32 or i64.
template <class F>
auto with_index_type(DType type, F f) {
  return type == DType::i32 ? f.template operator()<std::int32_t>() : f.template operator()<std::int64_t>();
}

/// Calls f.template operator()<T>() with an unsigned type of this many bytes: 1, 2, 4 or 8.
template <class F>
auto with_width(Index bytes, F f) {
  switch (bytes) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

}  // namespace rlx
