// cumsum: running sums along an axis.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct CumsumAttrs {
  Index axis = -1;
  bool exclusive = false;  // an element's own value is not in its sum
  bool reverse = false;    // sums run from the end
  static void fields(auto& a, auto&& f) {
    f("axis", a.axis);
    f("exclusive", a.exclusive);
    f("reverse", a.reverse);
  }
};
extern const Op<CumsumAttrs> cumsum_op;

/// Sums of the elements up to (exclusive: before) each one, along an axis.
Value cumsum(Value x, Index axis, bool exclusive = false, bool reverse = false);

}  // namespace rlx
