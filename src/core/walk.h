// Row-major index arithmetic over shapes: strides, broadcasting, and a loop over all coordinates.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/index.h"

namespace rlx {

/// Element strides of a dense row-major shape. Where an extent is 0, products of the others may wrap: they are not
/// used.
std::vector<Index> row_major_strides(std::span<const Index> shape);

/// Strides that read a tensor of shape `from` at the coordinates of `to`: right-aligned, 0 where an extent of 1 is
/// stretched. `from` must broadcast to `to`.
std::vector<Index> broadcast_strides(std::span<const Index> from, std::span<const Index> to);

/// Product of extents before, at and behind an axis.
struct AxisSplit {
  Index outer = 1, extent = 1, inner = 1;
};
AxisSplit split_at(std::span<const Index> shape, Index axis);

/// Calls f(offsets) for every coordinate of `shape` in row-major order, offsets[k] being the sum of coordinate *
/// strides[k].
template <std::size_t N, class F>
void walk(std::span<const Index> shape, const std::array<std::vector<Index>, N>& strides, F f) {
  for (const Index e : shape) {
    if (e == 0) return;
  }
  std::vector<Index> at(shape.size(), 0);
  std::array<Index, N> offsets{};
  for (;;) {
    f(offsets);
    std::size_t d = shape.size();
    for (;;) {
      if (d == 0) return;
      --d;
      for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++at[d] < shape[d]) break;
      for (std::size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d] * shape[d];
      at[d] = 0;
    }
  }
}

}  // namespace rlx
