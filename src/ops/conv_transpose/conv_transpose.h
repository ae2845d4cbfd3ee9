// conv_transpose: the adjoint of conv in its first operand.
#pragma once

#include "ops/conv/conv.h"

namespace rlx {

extern const Op<ConvAttrs> conv_transpose_op;

/// Adds each x[n,c,i..] * w[c,o,k..] at i*stride - before + k*dilation into zeros of the sizes `attrs.sizes`.
Value conv_transpose(Value x, Value w, ConvAttrs attrs);

}  // namespace rlx
