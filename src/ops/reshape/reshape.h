// reshape: the same elements, row-major, under other sizes.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct ReshapeAttrs {
  std::vector<Dim> dims;
  static void fields(auto& a, auto&& f) { f("dims", a.dims); }
};
extern const Op<ReshapeAttrs> reshape_op;

/// `x` with sizes `dims`; `x` itself when they are its own. Throws Error when the element counts provably differ.
Value reshape(Value x, std::vector<Dim> dims);
/// Adds axes of size 1 at these positions of the result (ascending).
Value unsqueeze(Value x, const std::vector<Index>& axes);
/// Removes axes, which have the constant size 1.
Value squeeze(Value x, const std::vector<Index>& axes);

}  // namespace rlx
