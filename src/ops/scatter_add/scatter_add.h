// scatter_add: adds slices into zeros by index, the adjoint of gather.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct ScatterAddAttrs {
  Index axis = 0;  // of the result
  Dim dim = 1;     // size of the result along it
  static void fields(auto& a, auto&& f) {
    f("axis", a.axis);
    f("dim", a.dim);
  }
};
extern const Op<ScatterAddAttrs> scatter_add_op;

/// Zeros of size `dim` along `axis`, with the slices of `updates` added where `indices` (i32 or i64) name; see the op.
Value scatter_add(Value updates, Value indices, Index axis, Dim dim);

}  // namespace rlx
