// What steps over windows share: their geometry as declared sizes, and the windows of a row that read inside of an
// axis.
#pragma once

#include <algorithm>
#include <optional>

#include "device/step.h"
#include "ops/conv/conv_windows.h"

namespace rlx {

/// Windows as declared sizes of a step; three axes in every run.
class WindowTokens {
 public:
  /// `w` over the last axes of an operand, which have the sizes `in`.
  WindowTokens(StepBuilder& s, const Windows& w, std::span<const Dim> in)
      : strides_(w.strides), dilations_(w.dilations) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      in_.push_back(s.dim(in[i]));
      kernel_.push_back(s.dim(w.kernel[i]));
      out_.push_back(s.dim(w.sizes[i]));
      before_.push_back(s.dim(w.before[i]));
    }
  }
  WindowNumbers operator()(const DimValues& d) const {
    WindowNumbers n;
    const std::size_t skip = 3 - in_.size();
    for (std::size_t i = 0; i < in_.size(); ++i) {
      n.in[skip + i] = d[in_[i]];
      n.kernel[skip + i] = d[kernel_[i]];
      n.out[skip + i] = d[out_[i]];
      n.before[skip + i] = d[before_[i]];
      n.stride[skip + i] = strides_[i];
      n.dilation[skip + i] = dilations_[i];
    }
    return n;
  }

 private:
  std::vector<Index> strides_, dilations_;
  std::vector<DimToken> in_, kernel_, out_, before_;
};

/// Whether windows are over one or two axes, or over three of which the first is one position of one element.
inline bool is_planar(const Windows& w, std::span<const Dim> in) {
  return in.size() < 3 || (in[0] == Dim(1) && w.kernel[0] == Dim(1) && w.sizes[0] == Dim(1) && w.before[0] == Dim(0));
}

/// The windows of [begin, end) along an axis whose tap `k` reads inside of it; empty ranges lie within [begin, end].
inline Range windows_inside(const WindowNumbers& w, std::size_t axis, Index k, Index begin, Index end) {
  const Index stride = w.stride[axis], first = w.before[axis] - k * w.dilation[axis];  // position o*stride - first
  const auto up = [&](Index a) { return a <= 0 ? Index{0} : (a + stride - 1) / stride; };
  const Index low = std::clamp(up(first), begin, end);
  return {low, std::clamp(up(w.in[axis] + first), low, end)};
}

}  // namespace rlx
