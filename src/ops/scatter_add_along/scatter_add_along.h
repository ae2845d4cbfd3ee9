// scatter_add_along: adds one element per index into zeros, the adjoint of take_along.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct ScatterAddAlongAttrs {
  Index axis = 0;
  std::vector<Dim> dims;  // sizes of the result
  static void fields(auto& a, auto&& f) {
    f("axis", a.axis);
    f("dims", a.dims);
  }
};
extern const Op<ScatterAddAlongAttrs> scatter_add_along_op;

/// Zeros of sizes `dims` with each element of `updates` added at its own coordinate, with that along `axis` replaced by
/// its index.
Value scatter_add_along(Value updates, Value indices, Index axis, std::vector<Dim> dims);

}  // namespace rlx
