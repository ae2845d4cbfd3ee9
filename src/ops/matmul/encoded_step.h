// Steps of products with an encoded right operand.
#pragma once

#include "ops/matmul/matmul_step.h"

namespace rlx {

/// A product of f32 rows, dense or encoded, with an encoded matrix.
struct EncodedPlan {
  Slot a, b;
  bool transposed = true;  // b is [columns, inner]
  Dim rows, inner, columns;
};

/// Nothing, with a reason in `n.why`, when no kernel takes these operands.
std::optional<EncodedPlan> plan_encoded_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a,
                                                const Slot& b, const TensorType& result);

/// The step of a plan, in a builder that has declared what `end` uses.
Step encoded_step(StepBuilder& s, const EncodedPlan& plan, ProductEnd end);

}  // namespace rlx
