// Reverse mode through nodes with bodies.
#pragma once

#include "ir/builder.h"

namespace rlx {

/// Gradients of the operands of an if or scan node: an if or scan of the gradients of the bodies. `cotangents` of float
/// results; absent ones count as 0. A scan runs once more to keep the carried values of every trip, then backwards.
Grads control_gradient(const Node& node, std::span<const Value> in, std::span<const std::optional<Value>> cotangents);

}  // namespace rlx
