// topk: the largest or smallest elements along an axis, and where they are.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct TopkAttrs {
  Dim k = 1;
  Index axis = -1;
  bool largest = true;
  static void fields(auto& a, auto&& f) {
    f("k", a.k);
    f("axis", a.axis);
    f("largest", a.largest);
  }
};
extern const Op<TopkAttrs> topk_op;

struct TopkValues {
  Value values, indices;
};
/// The `k` largest elements along an axis in descending order (or smallest, ascending) and their indices (i64).
TopkValues topk(Value x, Dim k, Index axis = -1, bool largest = true);

}  // namespace rlx
