// The fusion node: outline() moves nodes into a body, inline_bodies() moves them back.
#pragma once

#include "ir/builder.h"

namespace rlx {

/// A node whose meaning is its body: operands become the body's inputs, its outputs the results.
const OpDef& fusion_op();

/// Groups nodes into fusion nodes: `root[i]` is the group of node i, named by the id of one of its members (which is
/// its own root); a group of one node stays as it is. Inputs must be their own roots. Results that are used outside the
/// group, or are outputs, become results of the fusion, in order of the nodes. Throws InternalError when a path leaves
/// a group and comes back to it.
Graph outline(const Graph& g, std::span<const Id> root);

/// Replaces every fusion and call node by its body, in bodies too.
Graph inline_bodies(const Graph& g);

}  // namespace rlx
