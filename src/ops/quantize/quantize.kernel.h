// Kernels of quantize_rows.
#pragma once

#include "core/levels.h"

namespace rlx {

struct QuantizeRowsKernels {
  /// By element type (f32, f16, bf16): codes and scales of rows of a dense matrix, cols > 0; see quantize_rows. A row's
  /// bits depend on that row only.
  void (*rows[3])(const void* x, signed char* codes, float* scales, long rows, long cols);
  /// The same with zero points.
  void (*zero_point_rows[3])(const void* x, unsigned char* codes, float* scales, unsigned char* zeros, long rows,
                             long cols);
};

}  // namespace rlx

RLX_LEVELS(QuantizeRowsKernels, quantize_rows_kernels)
