// A handle to a result inside a graph that is being built.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace rlx {

class Builder;

/// Result of a node of `builder`. Cheap to copy; valid as long as the builder.
struct Value {
  Builder* builder = nullptr;
  Operand at;
  /// The reference stays valid while nodes are added.
  const TensorType& type() const;
  Index rank() const { return type().rank(); }
  DType dtype() const { return type().dtype; }
  const Dim& dim(Index axis) const { return type().dim(axis); }
};
using Values = std::vector<Value>;

}  // namespace rlx
