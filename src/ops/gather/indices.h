// What the indexing ops share: the index policy. A negative index counts from the end of its axis; one outside
// [-size, size) is an Error, found before anything is written.
#pragma once

#include <vector>

#include "core/tensor.h"
#include "ir/op.h"

namespace rlx {

/// Throws Error unless `t` is a dense tensor of i32 or i64.
void require_indices(const TensorType& t);
/// Throws Error when a known index can never lie inside `extent`, the size of `axis`.
void check_known_indices(const std::vector<Dim>& known, Index axis, const Dim& extent);
/// The indices as positions in [0, extent). Throws Error that names the first index outside, its coordinate, the axis
/// and its size.
std::vector<Index> positions(const Tensor& indices, Index axis, Index extent);

}  // namespace rlx
