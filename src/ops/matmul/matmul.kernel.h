// Kernels of matmul: products of one matrix by panels of another, for each element type that they differ by.
#pragma once

#include "core/levels.h"

namespace rlx {

/// Receives finished results: `count` values of one row, from `column` on; both count from the start of the call.
/// `values` has the element type of the product, or f32 where a bias that does not round was added to halves.
struct MatmulFinish {
  void (*run)(const void* context, long row, long column, long count, const void* values) = nullptr;
  const void* context = nullptr;
};

/// A row that is added to every row of the product: of its element type, or f32 for halves, which are rounded before.
struct MatmulBias {
  const void* row = nullptr;  // of the first column of the call
  bool rounds = true;         // halves: whether the sum is rounded to a half again, or stays f32
};

/// c[rows, columns] = a[rows, inner] times b[inner, columns], or that and a bias. Strides are in elements. Nothing may
/// overlap `c`.
struct MatmulArgs {
  const void* a = nullptr;
  long a_row = 0, a_inner = 0;
  /// Panels as pack() makes them, when `packed`; otherwise a matrix with these strides.
  const void* b = nullptr;
  long b_inner = 0, b_column = 0;
  bool packed = false;
  /// Rows of unit stride; not used when `finish` takes the results.
  void* c = nullptr;
  long c_row = 0;
  long rows = 0, inner = 0, columns = 0;
  MatmulBias bias;  // only where the kernel takes one
  MatmulFinish finish;
};

/// Each result is one chain over ascending inner index that starts at 0: its bits depend on its row of `a` and its
/// column of `b` only, whatever rows and columns one call has. Products with 0 are not left out.
struct MatmulKernel {
  /// Columns of a panel.
  long width;
  /// Inner indices that stand together in a panel: [ceil(inner / step)][width][step].
  long step;
  /// Bytes of `step` elements in a panel.
  long bytes;
  /// Packs a matrix into ceil(columns / width) panels; missing columns and indices are 0.
  void (*pack)(const void* b, long b_inner, long b_column, long inner, long columns, void* panels);
  void (*multiply)(const MatmulArgs& m);
  bool takes_bias;
  /// Bytes of the panel of a matrix.
  long panel_bytes(long inner) const { return (inner + step - 1) / step * width * bytes; }
};

/// f32, f64: chains of fused multiply-add (v2: of rounded products). f16: widened to f32. bf16: widened to f32; at v4b
/// by the instruction for pairs, which sums two products at a time and flushes denormals. Half results are rounded
/// once. bits8 to bits64: integers of either sign, modulo 2^bits. c64: in f64.
struct MatmulKernels {
  MatmulKernel f32, f64, f16, bf16, bits8, bits16, bits32, bits64, c64;
};

}  // namespace rlx

RLX_LEVELS(MatmulKernels, matmul_kernels)
