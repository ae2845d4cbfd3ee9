// The verifier: what must hold in every graph, and what a pass must keep.
#pragma once

#include "ir/graph.h"

namespace rlx {

/// Throws Error "node %I = op(types): RULE: …" for the first broken rule. Rules: operands come earlier and exist;
/// inputs, outputs, states and labels refer to existing values; inputs are listed once and have unique names;
/// attributes belong to the op; results, tracked values and checks are those that inference gives; every symbol is
/// declared once, with one pair of bounds, bodies included; states keep their type and begin at different inputs; sizes
/// are not negative; the graph was indexed after its last change.
void verify(const Graph& g);

/// Throws Error unless `after` has the inputs, outputs (types and names), states and checks of `before`; checks that
/// became provable may be gone.
void verify_interface(const Graph& before, const Graph& after);

}  // namespace rlx
