// quantize, dequantize, quantize_rows: numbers as integer codes with scales and zero points, and back.
#pragma once

#include <optional>

#include "ir/builder.h"

namespace rlx {

/// Which elements share a scale: `block` 0: all of one position along `axis`, or all, where the scale has one element;
/// otherwise `block` neighbours along `axis`.
struct QuantizeAttrs {
  DType to = DType::i8;  // of the result: of quantize the type of codes, of dequantize a float type
  Index axis = 1;
  Index block = 0;
  static void fields(auto& a, auto&& f) {
    f("to", a.to);
    f("axis", a.axis);
    f("block", a.block);
  }
};
extern const Op<QuantizeAttrs> quantize_op, dequantize_op;

struct QuantizeRowsAttrs {
  bool zero_point = false;  // codes are u8 between the row's ends, not i8 around 0
  static void fields(auto& a, auto&& f) { f("zero_point", a.zero_point); }
};
extern const Op<QuantizeRowsAttrs> quantize_rows_op;

/// Codes of `x`: round(x / scale) + zero, nearest, ties to even, saturated; floats of 8 and 4 bits are not rounded to
/// integers. `zero` has the type of the result.
Value quantize(Value x, Value scale, std::optional<Value> zero, QuantizeAttrs attrs);
/// (x - zero) * scale, in the float type `attrs.to`.
Value dequantize(Value x, Value scale, std::optional<Value> zero, QuantizeAttrs attrs);

/// Scale or zero point `s`, as quantize and dequantize read it, so that it broadcasts against `x`.
Value spread(const QuantizeAttrs& attrs, Value x, Value s);

/// Codes and scales of rows, the last axis.
struct QuantizedRows {
  Value codes;                     // i8, or u8 with zero points, of the shape of x
  Value scale;                     // f32, last axis 1
  std::optional<Value> zero = {};  // u8, last axis 1
};
/// Symmetric codes by the largest magnitude of each row, which becomes 127; or, with zero points, codes 0 to 255 for
/// the smallest to the largest element, 0 among them.
QuantizedRows quantize_rows(Value x, bool zero_point = false);

}  // namespace rlx
