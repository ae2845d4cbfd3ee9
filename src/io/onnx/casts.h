// Casts by the rules of ONNX, where they differ from those of the op cast.
#pragma once

#include "io/onnx/importer.h"

namespace rlx::onnx {

/// The element type of a number of the format; throws Error that names it when rlx lacks it.
DType element_type(Index type);
/// `x` as `to`, one of the 8-bit floats but f8e8m0: what is beyond the largest value becomes infinity where `to` has
/// one, else NaN.
Value cast_unsaturated(Value x, DType to);

}  // namespace rlx::onnx
