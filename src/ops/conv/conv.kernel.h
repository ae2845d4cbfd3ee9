// Kernels of convolutions of f32.
#pragma once

#include "core/levels.h"

namespace rlx {

enum class ConvActivation {
  none,
  relu,   // 0 where it is negative
  leaky,  // times `slope` where it is negative
};

/// What becomes of a finished sum: it may get a number of its channel added, then it goes through an activation.
struct ConvFinish {
  const float* bias = nullptr;  // one a channel, or none
  ConvActivation activation = ConvActivation::none;
  float slope = 0;
};

/// One plane of a convolution of one channel, all three axes of it: y[window] = sum over taps in order of x * w, from 0
/// on; outside of `x` there are zeros. Nothing overlaps `y`. `finish.bias` is that of the plane alone.
struct DepthwiseArgs {
  const float* x = nullptr;
  const float* w = nullptr;
  float* y = nullptr;
  long in[3] = {}, kernel[3] = {}, out[3] = {}, stride[3] = {}, dilation[3] = {}, before[3] = {};
  ConvFinish finish;
};

/// Sums of `rows` windows, at most WindowKernels::rows, for the columns of one panel: y[j * y_column + i] = sum over k
/// in order of x[windows[i] + terms[k]] * weight[k][j], one chain of fused multiply-add (v2: of rounded products) from
/// 0 on. Nothing overlaps `y`.
struct WindowArgs {
  const float* x = nullptr;
  const long* windows = nullptr;
  const long* terms = nullptr;
  const float* panel = nullptr;
  float* y = nullptr;
  long y_column = 0;
  long rows = 0, inner = 0, columns = 0;
  ConvFinish finish;
};

/// Lines of an operand with what lies around it: to[line * width + i] = from[line * pitch + i] for i of [begin, end), 0
/// for the others of [0, width), which are not read. Writes up to a pack of zeros or elements behind the last line.
struct StripArgs {
  const float* from = nullptr;
  float* to = nullptr;
  long pitch = 0, lines = 0, width = 0, begin = 0, end = 0;
};

struct ConvKernels {
  void (*depthwise)(const DepthwiseArgs& a);
  /// The maximum of every window instead; `w` and `finish` are not used. -inf outside of `x`; NaN where there is one.
  void (*maxima)(const DepthwiseArgs& a);
};

struct WindowKernels {
  /// Columns of a whole panel, a multiple of `lanes`; the last panel may have fewer lanes.
  long width, lanes;
  /// Windows of a call.
  long rows;
  /// Packs weights [columns][inner] as panels [inner][lanes of the panel] one after the other; what is missing is 0.
  void (*pack)(const float* w, long columns, long inner, float* panels);
  void (*copy)(const StripArgs& a);
  void (*multiply)(const WindowArgs& a);
};

}  // namespace rlx

RLX_LEVELS(ConvKernels, conv_kernels)
RLX_LEVELS(WindowKernels, window_kernels)
