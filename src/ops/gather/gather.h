// gather: rows of a table, or slices along any axis, by index.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct GatherAttrs {
  Index axis = 0;
  static void fields(auto& a, auto&& f) { f("axis", a.axis); }
};
extern const Op<GatherAttrs> gather_op;

/// The slices of `table` along `axis` that `indices` (i32 or i64, any shape) name; see the op.
Value gather(Value table, Value indices, Index axis = 0);

}  // namespace rlx
