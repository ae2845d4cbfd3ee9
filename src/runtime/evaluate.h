// The reference evaluator: runs a graph node by node, slowly and obviously. The oracle of all kernels.
#pragma once

#include "ir/graph.h"
#include "runtime/state.h"

namespace rlx {

struct EvaluateOptions {
  /// Evaluate definitions, all the way down, instead of the references of composite ops.
  bool definitions = false;
  /// Values of symbols that no input shows.
  DimEnv dims;
};

/// Values of the symbols that the shapes of `inputs` (in the graph's order) show; `dims` gives further ones. Throws
/// Error when a type or rank differs, a symbol has two values, a size disagrees, a bound or a run-time check does not
/// hold.
DimEnv bind_dims(const Graph& g, std::span<const Tensor> inputs, const DimEnv& dims = {});
/// Outputs for `inputs`, in the graph's order. States, if any, are ordinary inputs here and their new values are not
/// kept.
std::vector<Tensor> evaluate(const Graph& g, std::span<const Tensor> inputs, const EvaluateOptions& options = {});

/// Outputs for inputs by name. Inputs that begin a state come from `state`, which holds the new values afterwards,
/// unless the run fails. Throws Error for a missing or unknown input.
std::vector<Tensor> evaluate(const Graph& g, const NamedTensors& inputs, State* state = nullptr,
                             const EvaluateOptions& options = {});

}  // namespace rlx
