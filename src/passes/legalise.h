// legalise: what a device has no kernel for is taken apart until it has one.
#pragma once

#include "device/makers.h"
#include "passes/pass.h"

namespace rlx {

/// Replaces every node that context.device.accepts refuses: a fusion by its body, an op with a definition by that, and
/// what these are made of in turn. Throws one Error that lists all nodes that are left, each with its types and what
/// the kernels said. Without `accepts` the graph stays as it is.
Graph legalise(const Graph& g, PassContext& context);

/// A device that runs a node where its result is a view of an operand, or a step maker takes it on dense operands. The
/// table must live as long as the function.
std::function<bool(const Graph&, Id, std::string* why)> accepts_by(const MakerTable& makers);

}  // namespace rlx
