// softmax and log_softmax along one axis.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct SoftmaxAttrs {
  Index axis = -1;
  static void fields(auto& a, auto&& f) { f("axis", a.axis); }
};
extern const Op<SoftmaxAttrs> softmax_op;
extern const Op<SoftmaxAttrs> log_softmax_op;

/// Exponentials along `axis`, divided by their sum.
Value softmax(Value x, Index axis = -1);
/// Logarithm of softmax, without its underflow.
Value log_softmax(Value x, Index axis = -1);

}  // namespace rlx
