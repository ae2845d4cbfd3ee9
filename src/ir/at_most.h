// Inequalities between sizes in shape rules.
#pragma once

#include <string_view>

#include "ir/op.h"

namespace rlx {

/// a <= b: Error "WHY: A is more than B" when it holds for no values of the symbols, a run-time check when bounds do
/// not show that it always holds.
void at_most(InferContext& c, const Dim& a, const Dim& b, std::string_view why);

}  // namespace rlx
