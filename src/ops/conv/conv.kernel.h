// Kernels of conv that are no matrix product.
#pragma once

#include "core/levels.h"

namespace rlx {

/// One plane of a convolution of one channel, all three axes of it: y[window] = sum over taps in order of x * w, from 0
/// on; outside of `x` there are zeros. Nothing overlaps `y`.
struct DepthwiseArgs {
  const float* x = nullptr;
  const float* w = nullptr;
  float* y = nullptr;
  long in[3] = {}, kernel[3] = {}, out[3] = {}, stride[3] = {}, dilation[3] = {}, before[3] = {};
};

struct ConvKernels {
  void (*depthwise)(const DepthwiseArgs& a);
};

}  // namespace rlx

RLX_LEVELS(ConvKernels, conv_kernels)
