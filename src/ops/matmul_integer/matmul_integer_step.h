// From the operands of an integer product to a step.
#pragma once

#include "ops/matmul/matmul_step.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/matmul_integer/matmul_integer.kernel.h"

namespace rlx {

/// Factors of rows, [..,M,1], and columns, and what is added to columns, [N] each; all f32 and dense.
struct IntegerScaling {
  Slot row, column;
  std::optional<Slot> bias;
};

/// Where results go: to memory, densely, or to a stage that takes them while they are in the cache.
struct IntegerEnd {
  std::optional<Token<std::byte, Access::write>> out = {};
  std::shared_ptr<const region::Program> stage = nullptr;
  std::optional<IntegerScaling> scaling = {};
  std::optional<Slot> row_zeros = {};  // dense
};

/// Nothing, with a reason in `n.why`, when the kernels do not take these operands. `kernel` of the plan stays null.
std::optional<ProductPlan> plan_integer_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a,
                                                const Slot& b, const TensorType& result);

/// The step of a plan, in a builder that has declared what `end` writes to.
Step integer_step(StepBuilder& s, const ProductPlan& plan, IntegerEnd end);

}  // namespace rlx
