// transpose: permutation of axes.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct TransposeAttrs {
  std::vector<Index> order;  // result axis i is operand axis order[i]
  static void fields(auto& a, auto&& f) { f("order", a.order); }
};
extern const Op<TransposeAttrs> transpose_op;

/// `x` with its axes in this order; `x` itself when nothing moves.
Value transpose(Value x, std::vector<Index> order);
/// The last two axes exchanged.
Value transpose_last(Value x);

}  // namespace rlx
