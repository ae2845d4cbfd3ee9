// From the operands of a product to a step: which kernel, which strides, how the work is cut.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/step.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/matmul.kernel.h"
#include "ops/scalar/region.h"

namespace rlx {

/// The kernel for products of this element type, or null.
const MatmulKernel* matmul_kernel(DType type);

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

/// Nothing, with a reason in `n.why`, when no kernel takes these operands.
std::optional<ProductPlan> plan_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a, const Slot& b,
                                        const TensorType& result);

/// What is added to every row of a product; see MatmulBias.
struct ProductBias {
  Token<std::byte, Access::read> row;
  DType type;
  bool rounds;
};

/// Where results go: to memory, densely, or to a stage that takes them while they are in the cache.
struct ProductEnd {
  std::optional<ProductBias> bias = {};  // only where the kernel takes one
  std::optional<Token<std::byte, Access::write>> out = {};
  std::shared_ptr<const region::Program> stage = nullptr;
};

/// The step of a plan, in a builder that has declared what `end` uses.
Step product_step(StepBuilder& s, const ProductPlan& plan, ProductEnd end);

}  // namespace rlx
