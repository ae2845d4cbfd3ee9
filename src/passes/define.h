// Expanding a node into its definition.
#pragma once

#include "ir/builder.h"

namespace rlx {

/// The definition of `op` on these operands, in their builder. An f16 or bf16 composite means: widen to f32, apply the
/// f32 definition, round once; a fusion is the exception, its body rounds each step as the unfused graph would. Throws
/// Error when the op has no definition, or has no operands to take a builder from.
Values define(const OpDef& op, const Attrs& attrs, std::span<const Value> operands,
              std::span<const GraphPtr> bodies = {});
/// Values in place of the results of `n`: where a size is equal to the declared one by a run-time check only, a reshape
/// gives it the declared form.
Values in_declared_sizes(Values made, const Node& n);

}  // namespace rlx
