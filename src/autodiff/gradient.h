// Reverse mode: gradients as graphs. The rules live with their ops; this is the driver for straight-line graphs.
#pragma once

#include "ir/builder.h"

namespace rlx {

/// For each value of `wrt` the sum over `outputs` of (cotangent times derivative), built behind the outputs in their
/// builder; absent where nothing flows (integers, encoded tensors, flat functions, no path). Cotangents have the
/// outputs' types; an absent one counts as 0. An op without gradient rule is differentiated through its definition;
/// without either, when a gradient would have to pass it, throws Error naming the node. Gradients can be differentiated
/// again.
Grads gradient(std::span<const Value> outputs, std::span<const std::optional<Value>> cotangents,
               std::span<const Value> wrt);

/// A graph with the inputs of `g`, one more input "d.K" ("dd.K" where that is taken) for output K of a float
/// type (its cotangent), and as outputs the gradients "d.NAME" of all float inputs; where nothing flows, zeros. Encoded
/// inputs and outputs are frozen: they count as integers do.
Graph gradient(const Graph& g);

}  // namespace rlx
