// Kernels of softmax and log_softmax.
#pragma once

#include "core/levels.h"

namespace rlx {

/// Softmax over the rows, or over the columns, of dense matrices; x and y may be the same memory, else must not
/// overlap. A row's bits depend on that row only, a column's on that column only. One whose maximum is infinite, or
/// that holds a NaN, becomes NaN. Halves are computed in f32 and rounded once.
struct SoftmaxOver {
  /// Each row of [rows, cols].
  void (*rows)(const void* x, void* y, long rows, long cols);
  /// Columns [begin, end) of [rows, cols].
  void (*columns)(const void* x, void* y, long rows, long cols, long begin, long end);
};

struct SoftmaxKernels {
  /// SoftmaxOver::rows for f32.
  void (*rows_f32)(const float* x, float* y, long rows, long cols);
  /// The same bits, written past the caches where rows allow it; x and y do not overlap.
  void (*rows_streamed)(const void* x, void* y, long rows, long cols);
  /// By element type: f64, f32, f16, bf16.
  SoftmaxOver softmax[4], log_softmax[4];
};

}  // namespace rlx

RLX_LEVELS(SoftmaxKernels, softmax_kernels)
