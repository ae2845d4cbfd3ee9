// Kernels of rope.
#pragma once

#include "core/levels.h"

namespace rlx {

/// Rows of heads, [rows, heads * size]; rows of x are `apart` elements apart, those of y dense; `cos` and `sin` are
/// tables of `entries` a row. Row r has position r % positions, and, where tables differ in the batch, batch r /
/// batch_rows.
struct RopeRows {
  const void *x = nullptr, *cos = nullptr, *sin = nullptr;
  void* y = nullptr;                   // may be x, where that is dense
  long heads = 1, size = 0, half = 0;  // 2 * half elements of a head are rotated, the others pass
  long apart = 0;
  long positions = 1, entries = 0;
  long batch_rows = 1, batch_entries = 0;  // batch_entries: from one batch's table to the next; 0: one table
};

struct RopeKernels {
  using Rotate = void (*)(const RopeRows& r, long begin, long end);
  /// Rows [begin, end), by element type (f64, f32, f16, bf16), of tables (0: the same type, 1: f32) and by pairing (0:
  /// element i with i + half, 1: 2 i with 2 i + 1). Halves are computed in f32 and rounded once.
  Rotate rotate[4][2][2];
};

}  // namespace rlx

RLX_LEVELS(RopeKernels, rope_kernels)
