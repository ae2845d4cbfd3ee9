// The evaluators that passes are given.
#pragma once

#include "passes/pass.h"

namespace rlx {

/// Lets passes compute with the reference evaluator.
void use_reference(PassContext& context);

}  // namespace rlx
