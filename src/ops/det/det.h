// det: determinants, and cofactors, their derivatives.
#pragma once

#include "ir/builder.h"

namespace rlx {

extern const Op<NoAttrs> det_op;
extern const Op<NoAttrs> cofactors_op;

/// Determinants of the square matrices on the last two axes.
Value det(Value x);
/// Their matrices of cofactors: the derivatives of the determinant with respect to each element.
Value cofactors(Value x);

}  // namespace rlx
