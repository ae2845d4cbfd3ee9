// Copies runs of elements between dense tensors by their bits.
#pragma once

#include "core/tensor.h"

namespace rlx {

/// Copies `count` consecutive elements of `from`, beginning at `from_at`, to `to_at` of `to`. The element types are
/// equal, the tensors dense and not the same; no element is converted.
void copy_elements(const Tensor& from, Index from_at, Tensor& to, Index to_at, Index count);

}  // namespace rlx
