// Kernels of reduce: many elements become one accumulator, in an order that depends on the reduced sizes only.
#pragma once

#include "core/levels.h"

namespace rlx {

/// The reduced axes of one result, but for a contiguous innermost one: sizes and strides in elements, outermost first.
struct ReduceWalk {
  int rank;
  const long* size;
  const long* stride;
};

/// Reduces the elements that `walk` reaches from `x`, each with the `run` - 1 that follow it, to one accumulator; for
/// `count` results, whose first elements are `step` elements apart.
using ReduceRows = void (*)(const void* x, const ReduceWalk& walk, long run, void* out, long count, long step);
/// Reduces the elements that `walk` reaches from x + c to out[c], for c < count.
using ReduceColumns = void (*)(const void* x, const ReduceWalk& walk, void* out, long count);

struct ReduceKernel {
  ReduceRows rows;
  ReduceColumns columns;
};

enum class ReduceType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8 };
enum class ReduceOp { sum, prod, max, min };

/// One a type of elements and operation. Accumulators: f64 for sums and products of floats, and for f64; f32 for
/// largest and smallest elements of f32, f16 and bf16; integers in their own type, and wrap. They begin with 0, 1, the
/// least and the greatest value (infinities for floats). max and min are NaN when an element is.
struct ReduceKernels {
  ReduceKernel of[12][4];
};

}  // namespace rlx

RLX_LEVELS(ReduceKernels, reduce_kernels)
