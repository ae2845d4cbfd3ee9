// Windows over the last axes of a tensor: the geometry that convolution and pooling share, the gather of all windows,
// and its adjoint.
#pragma once

#include <array>

#include "ir/builder.h"

namespace rlx {

/// Window o of an axis covers the positions o * stride - before + k * dilation for k < kernel; positions outside of
/// the axis are padding. One entry an axis; `sizes` counts the windows.
struct Windows {
  std::vector<Dim> kernel;
  std::vector<Index> strides, dilations;
  std::vector<Dim> before, sizes;
};

/// Windows along an axis of size `in` with padding at both ends that lie inside of it, or with `ceil` also one that
/// leaves it at the end but begins before its padding there. 0 where the kernel is longer.
Dim window_count(const Dim& in, const Dim& before, const Dim& after, const Dim& kernel, Index stride, Index dilation,
                 bool ceil = false);

/// Throws Error unless `w` has entries for `axes` axes, positive strides, dilations and kernels, no negative padding.
void check_windows(const Windows& w, std::size_t axes);

/// The elements of all windows over the last axes of `x`: [.., kernel.., sizes..]; padding is `fill`.
Value windows(Value x, const Windows& w, double fill = 0);
/// The adjoint: adds [.., kernel.., sizes..] into zeros of the sizes `dims` along the last axes; padding is dropped.
Value fold(Value columns, const Windows& w, const std::vector<Dim>& dims);

/// Windows in numbers, as three axes: missing ones come first and have one position.
struct WindowNumbers {
  std::array<Index, 3> in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1}, before{};
  Index in_count() const { return in[0] * in[1] * in[2]; }
  Index taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  Index out_count() const { return out[0] * out[1] * out[2]; }
  /// Position along an axis that tap `k` of window `o` reads; outside of [0, in) it is padding.
  Index position(std::size_t axis, Index o, Index k) const {
    return o * stride[axis] - before[axis] + k * dilation[axis];
  }
  bool inside(std::size_t axis, Index at) const { return at >= 0 && at < in[axis]; }
};
/// `w` over a tensor whose last axes have the sizes `in`.
WindowNumbers window_numbers(const Windows& w, std::span<const Index> in, const DimEnv& dims);

/// Calls f(window, tap, position) for every tap of every window, in row-major order; position is -1 in the padding,
/// otherwise counts the elements of the windowed axes.
template <class F>
void each_tap(const WindowNumbers& w, F f) {
  Index window = 0;
  for (Index a = 0; a < w.out[0]; ++a) {
    for (Index b = 0; b < w.out[1]; ++b) {
      for (Index c = 0; c < w.out[2]; ++c, ++window) {
        for (Index tap = 0; tap < w.taps(); ++tap) {
          const Index z = w.position(0, a, tap / (w.kernel[1] * w.kernel[2]));
          const Index y = w.position(1, b, tap / w.kernel[2] % w.kernel[1]), x = w.position(2, c, tap % w.kernel[2]);
          const bool in = w.inside(0, z) && w.inside(1, y) && w.inside(2, x);
          f(window, tap, in ? (z * w.in[1] + y) * w.in[2] + x : Index{-1});
        }
      }
    }
  }
}

}  // namespace rlx
