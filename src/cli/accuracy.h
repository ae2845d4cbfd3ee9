// What a shorter type of products costs in accuracy.
#pragma once

#include <string>

#include "runtime/session.h"

namespace rlx::cli {

/// Runs `g` with products in f32 and in `type` on these inputs: a table of largest and mean error and cosine of every
/// output, and, for i8, of the products that change an output most when they alone are in i8. `worst` becomes the least
/// cosine of an output.
std::string accuracy_table(const Session& session, const Graph& g, DType type, const NamedTensors& in,
                           const DimEnv& dims, double& worst);

}  // namespace rlx::cli
