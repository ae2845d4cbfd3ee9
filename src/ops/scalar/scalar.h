// Elementwise ops: unary functions (rows.h), binary arithmetic, comparison, bits, select. Operands broadcast as NumPy's
// do; only the constant size 1 stretches. Element types of operands must be equal.
#pragma once

#include "ir/builder.h"
#include "ops/scalar/rows.h"

namespace rlx {

#define RLX_DECLARE_UNARY(Type, function) Value function(Value x);
RLX_UNARY_ROWS(RLX_DECLARE_UNARY)
#undef RLX_DECLARE_UNARY
inline Value operator-(Value x) { return neg(x); }
/// Complex conjugate; a real value is itself.
Value conj(Value x);
/// `not` of a bool, all bits flipped of an integer.
Value bitwise_not(Value x);

Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
/// Quotient; of integers truncated toward zero, division by 0 is an Error when run.
Value div(Value a, Value b);
/// The larger and the smaller; NaN when either is NaN.
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
/// C pow; of integers exact and wrapping.
Value pow(Value a, Value b);
/// Remainder with the sign of the dividend, as C fmod.
Value fmod(Value a, Value b);
/// Angle of the point (x=b, y=a).
Value atan2(Value a, Value b);
Value bitwise_and(Value a, Value b);
Value bitwise_or(Value a, Value b);
Value bitwise_xor(Value a, Value b);
/// Shifts of integers; the count is taken modulo the width. Right shifts of signed integers keep the sign.
Value shift_left(Value a, Value b);
Value shift_right(Value a, Value b);

/// Comparisons give bool; with NaN all but not_equal are false.
Value equal(Value a, Value b);
Value not_equal(Value a, Value b);
Value less(Value a, Value b);
Value less_equal(Value a, Value b);
Value greater(Value a, Value b);
Value greater_equal(Value a, Value b);

/// `condition ? a : b`, elementwise; the value not chosen does not matter, be it NaN.
Value select(Value condition, Value a, Value b);

inline Value operator+(Value a, Value b) { return add(a, b); }
inline Value operator-(Value a, Value b) { return sub(a, b); }
inline Value operator*(Value a, Value b) { return mul(a, b); }
inline Value operator/(Value a, Value b) { return div(a, b); }

Value like(Value value, double number);

/// Whether `op` is one of this folder.
bool is_scalar_op(const OpDef& op);

}  // namespace rlx
