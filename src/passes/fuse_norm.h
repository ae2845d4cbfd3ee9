// Outlines layer_norm and rms_norm with the sums in front of them.
#pragma once

#include "passes/pass.h"

namespace rlx {

/// Makes a fusion of every layer_norm or rms_norm and the additions that make its operand: a + b, or (a + b) + c where
/// nothing else reads a + b, each of a, b, c having the sizes of the norm or of its rows. A sum that others read too
/// becomes the fusion's first result.
Graph fuse_norm(const Graph& g, PassContext& context);

}  // namespace rlx
