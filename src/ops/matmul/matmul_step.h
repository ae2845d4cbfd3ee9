// From the operands of a product to a step: which kernel, which strides, how the work is cut.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/step.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/matmul.kernel.h"

namespace rlx {

/// A product over a batch, with symbolic sizes. Strides are in elements; one a batch axis, 0 where it is stretched.
struct ProductPlan {
  const MatmulKernel* kernel = nullptr;
  Index element_bytes = 0;
  Slot a, b;
  std::vector<Dim> batch, a_batch, b_batch;
  Dim rows, inner, columns;
  Dim a_row, a_inner, b_inner, b_column;
  std::optional<Packing> packing;  // of b, when it is a constant; b_batch then counts matrices
};

/// Where the results of rows go: `c`, the first of them, dense; or `finish`.
struct ProductTarget {
  std::byte* c = nullptr;
  MatmulFinish finish;
};

/// Nothing, with a reason in `n.why`, when no kernel takes these operands.
std::optional<ProductPlan> plan_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a, const Slot& b,
                                        const TensorType& result);

/// Gives the target of a call: `row` counts over the whole batch; see product_step.
using TargetOf = std::function<ProductTarget(const Memory& m, Index row, Index columns, Index element_bytes)>;

/// The step of a plan, in a builder that has declared what `target` uses.
Step product_step(StepBuilder& s, const ProductPlan& plan, TargetOf target);

}  // namespace rlx
