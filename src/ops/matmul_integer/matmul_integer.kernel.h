// Kernels of matmul_integer: a matrix of 8-bit integers by panels of another, with the scaling behind them.
#pragma once

#include "core/levels.h"
#include "ops/matmul/matmul.kernel.h"

namespace rlx {

/// What happens to sums before they leave: nothing, or the number s of row i, column j becomes f32(s) * row[i] *
/// column[j] + bias[j], each step rounded to f32. `row` counts from the first row of the call, the others from its
/// first column; `bias` may be null.
struct IntegerScales {
  const float* row = nullptr;
  const float* column = nullptr;
  const float* bias = nullptr;
};

/// c[rows, columns] = a[rows, inner] times b[inner, columns]. Strides are in elements. Nothing may overlap `c`.
struct IntegerArgs {
  const void* a = nullptr;
  long a_row = 0, a_inner = 0;
  bool a_signed = false, b_signed = false;
  /// Subtracted from the elements of each row of `a`, and of their type; null: nothing is.
  const void* row_zeros = nullptr;
  /// Panels as pack() makes them, when `packed`; otherwise a matrix with these strides.
  const void* b = nullptr;
  long b_inner = 0, b_column = 0;
  bool packed = false;
  /// Rows of unit stride, i32, or f32 when there are scales; not used when `finish` takes the results.
  void* c = nullptr;
  long c_row = 0;
  long rows = 0, inner = 0, columns = 0;
  IntegerScales scales;
  /// Takes the results: i32, or f32 when there are scales.
  MatmulFinish finish;
};

struct IntegerKernels {
  /// Columns of a panel.
  long width;
  /// Bytes of a panel of a matrix of so many rows: its elements, then the sum of every column.
  long (*panel_bytes)(long inner);
  /// Packs a matrix into ceil(columns / width) panels; missing columns and indices are 0.
  void (*pack)(const void* b, bool b_signed, long b_inner, long b_column, long inner, long columns, void* panels);
  void (*multiply)(const IntegerArgs& m);
};

}  // namespace rlx

RLX_LEVELS(IntegerKernels, integer_kernels)
