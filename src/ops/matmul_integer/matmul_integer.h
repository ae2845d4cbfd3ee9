// matmul_integer: products of 8-bit integers, summed in 32 bits.
#pragma once

#include "ir/builder.h"
#include "ops/matmul/matmul.h"

namespace rlx {

/// Operands of type i8 or u8, each its own, and perhaps zero points of the rows of the first; the result is i32.
extern const Op<MatmulAttrs> matmul_integer_op;

/// [..,M,K] times [..,K,N] in i32, batch axes broadcast. A vector counts as one row on the left and as one column on
/// the right, and the axis that was added is not in the result. Throws Error for a rank-0 operand, a transposed vector,
/// and what the op refuses.
Value matmul_integer(Value a, Value b, MatmulAttrs attrs = {});

/// (a - zero) times b, where `zero` has the type of `a` and the sizes of the result with 1 for the last.
Value matmul_integer(Value a, Value b, Value row_zero, MatmulAttrs attrs);

/// (a - a_zero) times (b - b_zero), exactly, modulo 2^32: the product of the codes, corrected by the sums of rows and
/// columns. Zero points have the type of their operand: `a_zero` holds one element, or one a row as [..,M,1]; `b_zero`
/// one element, or one a column as [N] or [..,1,N].
Value matmul_integer(Value a, Value b, std::optional<Value> a_zero, std::optional<Value> b_zero);

}  // namespace rlx
