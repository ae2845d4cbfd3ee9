// The index policy.
#include "ops/gather/indices.h"

#include "core/error.h"
#include "core/walk.h"

namespace rlx {

void require_indices(const TensorType& t) {
  const bool index = t.dtype == DType::i32 || t.dtype == DType::i64;
  require(index && !t.encoding, "indices are {}, expected i32 or i64", t.text());
}

void check_known_indices(const std::vector<Dim>& known, Index axis, const Dim& extent) {
  const Index most = extent.bounds().hi;
  for (const Dim& i : known) {
    const Bounds b = i.bounds();
    require(b.lo < most && b.hi >= -most, "index {} is out of range for axis {} of size {}", i.text(), axis,
            extent.text());
  }
}

std::vector<Index> positions(const Tensor& indices, Index axis, Index extent) {
  std::vector<Index> at = load<Index>(indices);
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (-extent <= at[i] && at[i] < extent) {
      if (at[i] < 0) at[i] += extent;
      continue;
    }
    std::vector<Index> coordinate = row_major_strides(indices.shape());
    Index rest = static_cast<Index>(i);
    for (Index& c : coordinate) {
      const Index stride = c;
      c = rest / stride;
      rest %= stride;
    }
    fail("index {} at {} is out of range for axis {} of size {}", at[i], text(coordinate), axis, extent);
  }
  return at;
}

}  // namespace rlx
