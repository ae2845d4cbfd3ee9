// Numbers as codes with scale and zero point, as several operators hold them.
#pragma once

#include <optional>

#include "io/onnx/importer.h"

namespace rlx::onnx {

/// Codes u8 of all elements of `x`, f32, from the smallest and the largest of them and 0.
struct DynamicCodes {
  Value codes, scale, zero;
};
DynamicCodes quantize_dynamically(Value x);

/// A vector of one number a row of `a` as a column; one element and nothing stay.
std::optional<Value> row_parameter(Value a, std::optional<Value> p);

}  // namespace rlx::onnx
