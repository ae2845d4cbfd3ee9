// Steps of products of activations in 8-bit blocks by matrices of codes.
#pragma once

#include "ops/matmul/coded_form.h"
#include "ops/matmul/matmul_step.h"

namespace rlx {

/// A product of rows of a8 with a constant [columns, inner] of codes, or of two such matrices whose results are joined.
struct CodedPlan {
  Slot a, b;
  std::optional<Slot> second = {};  // of b's type; the result is activate(a b) * (a second)
  void (*activate)(const void* const* in, void* out, long count) = nullptr;
  CodedMatrix matrix;
  ProductPlan product;
};

/// Whether a type is of activations in 8-bit blocks.
bool is_a8(const TensorType& t);
/// Whether the right operand is a constant of codes that the kernels read packed.
bool is_coded(const Slot& b);

/// Nothing, with a reason in `n.why`, when the kernels do not take these operands.
std::optional<CodedPlan> plan_coded_product(const StepArgs& n, const MatmulAttrs& attrs, const Slot& a, const Slot& b,
                                            const TensorType& result);

/// The step of a plan, in a builder that has declared what `end` uses.
Step coded_step(StepBuilder& s, const CodedPlan& plan, ProductEnd end);

}  // namespace rlx
