// Kernels of products of activations in 8-bit blocks by matrices of codes with scales.
#pragma once

#include "core/levels.h"
#include "ops/matmul/matmul.kernel.h"

namespace rlx {

/// Columns of a panel; those of a group, which share vectors.
inline constexpr long coded_panel = 64, coded_group = 16;

/// Forms of matrices that the kernels read; see coded_form.h for how they lie in memory.
enum class CodedKind : unsigned char {
  nibbles,          // 4 bits, f16 scale of 32; bias 8
  nibbles_minimum,  // 4 bits, f16 scale and minimum of 32
  nibbles_table,    // 4 bits that name one of 16 values, f16 scale of 32
  nibbles_table_b,  // the same with bf16 scales
  fives,            // 5 bits, f16 scale of 32; bias 16
  fives_minimum,    // 5 bits, f16 scale and minimum of 32
  bytes,            // 8 bits, f16 scale of 32; bias 128
  k_twos,           // blocks of 256: 2 bits, scale and minimum of 16
  k_threes,         // 3 bits, scale of 16; bias 4
  k_nibbles,        // 4 bits, scale and minimum of 32
  k_fives,          // 5 bits, scale and minimum of 32
  k_sixes,          // 6 bits, scale of 16; bias 32
  k_nibbles_table,  // 4 bits that name one of 16 values, scale of 32
};
inline constexpr int coded_kinds = 13;

/// c[rows, columns] = x[rows, inner] times w, and a bias; or activate(x times w) * (x times second).
struct CodedArgs {
  const void* x = nullptr;  // rows of blocks of a8, or of f32
  long x_row = 0;           // bytes, or elements of f32
  /// Panels, `panel_bytes` apart; `units` units of inner indices in each.
  const void* w = nullptr;
  const void* second = nullptr;  // the same, or null
  long panel_bytes = 0, units = 0;
  const signed char* values = nullptr;  // 16, of kinds with a table
  float* c = nullptr;
  long c_row = 0;
  long rows = 0, columns = 0;
  const float* bias = nullptr;  // of the first column of the call
  /// Elementwise, on so many f32, perhaps in place; null: as they are.
  void (*activate)(const void* const* in, void* out, long count) = nullptr;
  MatmulFinish finish;
};

/// Each result is one chain over ascending blocks of 32 (or groups of 16): the products of a block are summed exactly,
/// and the scaled sum is added in f32. Its bits depend on its row and its column only.
struct CodedKernel {
  void (*multiply)(const CodedArgs& a) = nullptr;
  /// The same for rows of f32 and no second matrix: one chain over ascending inner index, as the product of f32 has it
  /// for what decode() gives.
  void (*multiply_dense)(const CodedArgs& a) = nullptr;
  /// Columns [0, columns) of one panel as f32 in panels of `width` columns: [columns / width][inner][width], each
  /// `panel` elements apart; columns up to a multiple of 16 are written.
  void (*decode)(const void* w, long units, long columns, const signed char* values, long width, long panel,
                 float* to) = nullptr;
};

struct CodedKernels {
  CodedKernel kinds[coded_kinds];
};

}  // namespace rlx

RLX_LEVELS(CodedKernels, coded_kernels)
