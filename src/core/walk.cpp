// Strides of shapes.
#include "core/walk.h"

#include "core/error.h"

namespace rlx {

// Wraps: extents beside a 0 may have any size.
static void multiply(Index& product, Index by) {
  product = static_cast<Index>(static_cast<std::uint64_t>(product) * static_cast<std::uint64_t>(by));
}

std::vector<Index> row_major_strides(std::span<const Index> shape) {
  std::vector<Index> s(shape.size());
  Index n = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    s[i] = n;
    multiply(n, shape[i]);
  }
  return s;
}

std::vector<Index> broadcast_strides(std::span<const Index> from, std::span<const Index> to) {
  ensure(from.size() <= to.size(), "a shape broadcasts to one of lower rank");
  std::vector<Index> s(to.size(), 0);
  Index n = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    const std::size_t j = i + to.size() - from.size();
    ensure(from[i] == to[j] || from[i] == 1, "shapes do not broadcast");
    s[j] = from[i] == to[j] ? n : 0;
    multiply(n, from[i]);
  }
  return s;
}

AxisSplit split_at(std::span<const Index> shape, Index axis) {
  AxisSplit s;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto at = static_cast<Index>(i);
    multiply(at < axis ? s.outer : at == axis ? s.extent : s.inner, shape[i]);
  }
  return s;
}

}  // namespace rlx
