// bitcast: the bits of elements read as another element type.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct BitcastAttrs {
  DType to = DType::u32;
  static void fields(auto& a, auto&& f) { f("to", a.to); }
};
extern const Op<BitcastAttrs> bitcast_op;

/// The bits of `x` as elements of `to`; `x` itself when it has that type. Throws Error when the widths differ.
Value bitcast(Value x, DType to);

}  // namespace rlx
