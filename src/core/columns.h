// Tensors taken along one axis: lines, in blocks that lie side by side in memory.
#pragma once

#include <algorithm>

#include "core/index.h"

namespace rlx {

/// Lines that a kernel takes at once: `width` of them, element i of line k at first + i * stride + k.
struct LineBlock {
  Index first = 0, stride = 0, width = 0;
  Index number = 0;  // of the first line
};

/// Calls f(block) for lines [begin, end) along an axis of `extent` elements with `inner` behind it, in blocks of at
/// most `most`. Line l is at l / inner of the outer sizes and l % inner of the inner ones.
template <class F>
void line_blocks(Index extent, Index inner, Index begin, Index end, Index most, F f) {
  while (begin < end) {
    const Index k = begin % inner, width = std::min({inner - k, end - begin, most});
    f(LineBlock{begin / inner * extent * inner + k, inner, width, begin});
    begin += width;
  }
}

}  // namespace rlx
