// Kernels of the elementwise ops: one function an op and element type, over blocks of elements.
#pragma once

#include "core/levels.h"
#include "ops/scalar/binary_rows.h"
#include "ops/scalar/rows.h"

namespace rlx {

/// out[i] = f(in[0][i], in[1][i], …) for n elements. `out` may be one of the operands, else it overlaps none. An
/// element's bits depend on the operands' elements only, not on n or its place.
using BlockKernel = void (*)(const void* const* in, void* out, long n);

#define RLX_COUNT(Type, function) +1
inline constexpr int unary_row_count = 0 RLX_UNARY_ROWS(RLX_COUNT);
inline constexpr int binary_row_count = 0 RLX_BINARY_ROWS(RLX_COUNT);
inline constexpr int compare_row_count = 0 RLX_COMPARE_ROWS(RLX_COUNT);
#undef RLX_COUNT

/// Unary rows of f32, in the order of the list.
struct UnaryKernels {
  BlockKernel f32[unary_row_count];
};

/// Binary rows and comparisons (result: bool) of f32; null where a row has no reals.
struct BinaryKernels {
  BlockKernel f32[binary_row_count];
  BlockKernel compare_f32[compare_row_count];
  BlockKernel select_f32;
};

/// Rows of one element type computed with the compiler's own arithmetic; null where there is none.
struct PlainKernels {
  BlockKernel unary[unary_row_count];
  BlockKernel binary[binary_row_count];
  BlockKernel compare[compare_row_count];
  BlockKernel flip;  // bitwise_not
};
struct WholeKernels {
  PlainKernels i8, i16, i32, i64, u8, u16, u32, u64, boolean, f64;
  BlockKernel select_1, select_2, select_4, select_8;  // by bytes of an element
};

/// Casts that have a loop of their own: those between plain C++ types, and halves to and from f32.
struct CastKernels {
  // [from][to], both in the order i8, i16, i32, i64, u8, u16, u32, u64, bool, f32, f64
  BlockKernel plain[11][11];
  BlockKernel f16_f32, f32_f16, bf16_f32, f32_bf16;
};

}  // namespace rlx

RLX_LEVELS(UnaryKernels, unary_kernels)
RLX_LEVELS(BinaryKernels, binary_kernels)
RLX_LEVELS(WholeKernels, whole_kernels)
RLX_LEVELS(CastKernels, cast_kernels)
