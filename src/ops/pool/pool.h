// pool: maximum, sum or mean of windows over one to three axes, and the places of the maxima.
#pragma once

#include "ops/conv/conv_windows.h"

namespace rlx {

enum class PoolKind : std::uint8_t { max, sum, mean };
std::span<const std::string_view> enum_names(PoolKind);

struct PoolAttrs {
  PoolKind kind = PoolKind::max;
  std::vector<Index> kernel, strides, dilations;  // one a windowed axis
  std::vector<Dim> before;                        // padding in front of each windowed axis
  std::vector<Dim> sizes;                         // of the result's windowed axes
  std::vector<Dim> counted;                       // of mean: padding behind each axis; none: no padding counts
  static void fields(auto& a, auto&& f) {
    f("kind", a.kind);
    f("kernel", a.kernel);
    f("strides", a.strides);
    f("dilations", a.dilations);
    f("before", a.before);
    f("sizes", a.sizes);
    f("counted", a.counted);
  }
};
extern const Op<PoolAttrs> pool_op;
extern const Op<PoolAttrs> pool_index_op;

Value pool(Value x, PoolAttrs attrs);
/// i64 places of the maxima that pool gives, counted over the windowed axes of `x`; -1 for a window of padding alone.
Value pool_index(Value x, PoolAttrs attrs);

Windows pool_windows(const PoolAttrs& a);

/// Positions of one window of `mean` along an axis that count, padding included where it does.
struct PoolCount {
  Index low = 0, high = 0;  // positions in [low, high) count
  Index of(const WindowNumbers& w, std::size_t axis, Index window) const {
    Index n = 0;
    for (Index k = 0; k < w.kernel[axis]; ++k) {
      const Index at = w.position(axis, window, k);
      n += at >= low && at < high ? 1 : 0;
    }
    return n;
  }
};

}  // namespace rlx
