// Gathers whose indices are coordinates: exporters write a mask that is only reshaped as a gather of every element.
#pragma once

#include <optional>
#include <span>

#include "io/onnx/importer.h"

namespace rlx::onnx {

/// gather(table, indices, 0) as reshape and broadcast, where the table is a tensor with its first axes joined and the
/// indices are exactly the positions of its elements, in order, along some of their axes. Nothing in other cases.
std::optional<Value> gather_of_grid(Importer& importer, Value table, Value indices);

/// The same for GatherND: `columns` are the coordinates along the first axes of `x`.
std::optional<Value> gather_of_grid(Importer& importer, Value x, std::span<const Value> columns);

}  // namespace rlx::onnx
