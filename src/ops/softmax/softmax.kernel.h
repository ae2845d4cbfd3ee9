// Kernels of softmax.
#pragma once

#include "core/levels.h"

namespace rlx {

struct SoftmaxKernels {
  /// Softmax of each row of a dense [rows, cols] matrix of f32. `x` and `y` may be the same memory, else must not
  /// overlap. A row's bits depend on that row only. A row of which the maximum is infinite, or that holds a NaN,
  /// becomes NaN.
  void (*rows_f32)(const float* x, float* y, long rows, long cols);
};

}  // namespace rlx

RLX_LEVELS(SoftmaxKernels, softmax_kernels)
