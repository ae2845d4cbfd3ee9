// Looks for the least and greatest index first: nearly always all are inside.
#include "ops/gather/index_view.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

template <class I>
void check_indices(std::string_view op, const I* indices, const Layout::Numbers& sizes, Index axis, Index extent) {
  const Index count = sizes.count();
  I least = 0, most = -1;
  for (Index i = 0; i < count; ++i) {
    least = std::min(least, indices[i]);
    most = std::max(most, indices[i]);
  }
  if (count == 0 || (-extent <= Index{least} && Index{most} < extent && extent > 0)) return;
  const I* bad = std::find_if(indices, indices + count, [&](I i) { return Index{i} < -extent || Index{i} >= extent; });
  std::vector<Index> coordinate(sizes.rank);
  Index rest = bad - indices;
  for (std::size_t i = sizes.rank; i-- > 0;) {
    coordinate[i] = rest % sizes.size[i];
    rest /= sizes.size[i];
  }
  fail("{}: index {} at {} is out of range for axis {} of size {}", op, Index{*bad}, text(coordinate), axis, extent);
}

template void check_indices(std::string_view, const std::int32_t*, const Layout::Numbers&, Index, Index);
template void check_indices(std::string_view, const std::int64_t*, const Layout::Numbers&, Index, Index);

ScatterLine scatter_line(const Layout::Numbers& y, const Layout::Numbers& x, std::size_t axis, Index number) {
  ScatterLine line;
  for (std::size_t i = y.rank; i-- > 0;) {
    if (i == axis) continue;
    const Index at = number % y.size[i];
    number /= y.size[i];
    line.to += at * y.stride[i];
    if (at >= x.size[i]) line.from = -1;
    if (line.from >= 0) line.from += at * x.stride[i];
  }
  return line;
}

Dim indexed_grain(DType type, const Dim& items, const Dim& item) {
  const Index elements = 65536 / std::max<Index>(element_bytes(type), 1);
  return max(max(ceildiv(elements, max(item, 1)), ceildiv(items, 16)), 1);
}

}  // namespace rlx
