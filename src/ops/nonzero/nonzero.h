// nonzero: where elements are not 0, as many as a run finds.
#pragma once

#include "ir/builder.h"

namespace rlx {

extern const Op<NoAttrs> nonzero_op;

/// Row-major positions (i64) of the elements of `x` that are not 0, ascending; their number is a size that a run finds.
Value nonzero(Value x);
/// Their coordinates, i64[rank, number].
Value nonzero_coordinates(Value x);
/// The slices of `x` along `axis` for which the rank-1 `condition` is not 0. A condition that is shorter than the axis
/// leaves out the rest; one that holds beyond it is an Error when run.
Value compress(Value x, Value condition, Index axis);

}  // namespace rlx
