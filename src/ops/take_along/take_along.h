// take_along: one element per index, along an axis.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct TakeAlongAttrs {
  Index axis = 0;
  static void fields(auto& a, auto&& f) { f("axis", a.axis); }
};
extern const Op<TakeAlongAttrs> take_along_op;

/// The elements of `x` at the coordinates of `indices`, with the coordinate along `axis` replaced by the index.
Value take_along(Value x, Value indices, Index axis);

}  // namespace rlx
