// Kernels of layer_norm and rms_norm, with sums of operands in front of them.
#pragma once

#include "core/levels.h"

namespace rlx {

/// One addend of the rows that are normalised: row r begins at r * stride elements; stride 0: one row for all.
struct NormTerm {
  const void* data = nullptr;
  long stride = 0;
};

/// Rows of `cols` elements: x = ((terms[0] + terms[1]) + terms[2]), each addition rounded to the element type, then
/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta.
struct NormRows {
  NormTerm terms[3];
  int term_count = 1;
  const void* gamma = nullptr;  // [cols], or null
  const void* beta = nullptr;   // [cols], or null; only with gamma
  void* sum = nullptr;          // [rows, cols]: takes x, or null
  void* y = nullptr;            // [rows, cols]; `sum` and `y` may be a dense term, but not each other
  long cols = 0;
  double epsilon = 0;
  bool stream = false;  // y is written past the caches, where its rows allow it; it is no term then
};

struct NormKernels {
  /// Rows [begin, end), by element type: f64, f32, f16, bf16. A row's bits depend on that row only. Mean and variance
  /// are summed in f64 of sums of up to 16 packs in f32 (of elements, where squares leave the range of f32), the
  /// variance around the mean; halves are widened to f32 and rounded once.
  void (*layer_norm[4])(const NormRows& n, long begin, long end);
  /// The same without the mean: y = x / sqrt(mean of x^2 + epsilon) * gamma.
  void (*rms_norm[4])(const NormRows& n, long begin, long end);
};

}  // namespace rlx

RLX_LEVELS(NormKernels, norm_kernels)
