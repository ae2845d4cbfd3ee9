// The list of binary rows: X(Type, function). Includes nothing, so that level objects may use it.
#pragma once

// clang-format off
#define RLX_BINARY_ROWS(X) \
  X(Add, add) X(Sub, sub) X(Mul, mul) X(Div, div) X(Maximum, maximum) X(Minimum, minimum) X(Pow, pow) \
  X(Fmod, fmod) X(Atan2, atan2) X(And, bitwise_and) X(Or, bitwise_or) X(Xor, bitwise_xor) \
  X(ShiftLeft, shift_left) X(ShiftRight, shift_right)
#define RLX_COMPARE_ROWS(X) \
  X(Equal, equal) X(NotEqual, not_equal) X(Less, less) X(LessEqual, less_equal) X(Greater, greater) \
  X(GreaterEqual, greater_equal)
// clang-format on
