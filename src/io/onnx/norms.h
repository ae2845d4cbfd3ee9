// Norms with factors of any shape that broadcasts.
#pragma once

#include <optional>

#include "ir/builder.h"

namespace rlx::onnx {

/// Layer norm of the axes from `axis` (not negative) on, times `gamma`, plus `beta`.
Value layer_norm_of(Value x, Value gamma, std::optional<Value> beta, Index axis, double epsilon);
/// The same without mean and beta.
Value rms_norm_of(Value x, Value gamma, Index axis, double epsilon);

}  // namespace rlx::onnx
