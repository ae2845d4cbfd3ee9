// Tensor types: axes, sizes, bytes, text.
#include "core/type.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

TensorType::TensorType(DType element, std::vector<Dim> sizes, const Encoding& storage, Index at)
    : dtype(element), dims(std::move(sizes)), encoding(&storage), block_axis(axis(at)) {}

Index TensorType::axis(Index a) const {
  require(-rank() <= a && a < rank(), "axis {} is out of range for rank {}", a, rank());
  return a < 0 ? a + rank() : a;
}

Dim product(std::span<const Dim> dims) {
  // A zero gives 0 even when the other sizes would overflow together.
  if (std::ranges::find(dims, Dim(0)) != dims.end()) return 0;
  Dim n = 1;
  for (const Dim& d : dims) n = n * d;
  return n;
}

Dim TensorType::count() const { return product(dims); }

TensorType TensorType::with(Index a, Dim size) const {
  TensorType t = *this;
  t.dims[static_cast<std::size_t>(axis(a))] = std::move(size);
  return t;
}

bool TensorType::is_constant() const {
  return std::ranges::all_of(dims, [](const Dim& d) { return d.is_constant(); });
}

Dim TensorType::plane_bytes(std::size_t plane) const {
  if (!encoding) {
    ensure(plane == 0, "a dense tensor has one plane");
    return bits(dtype) >= 8 ? count() * Dim(bits(dtype) / 8) : ceildiv(count() * Dim(bits(dtype)), 8);
  }
  ensure(plane < encoding->planes.size(), "plane out of range");
  const Plane& p = encoding->planes[plane];
  if (p.per == Plane::Per::tensor) return p.bytes;
  if (p.per == Plane::Per::axis) return dim(block_axis) * Dim(p.bytes);
  std::vector<Dim> sizes = dims;
  Dim& blocks = sizes[static_cast<std::size_t>(block_axis)];
  blocks = ceildiv(blocks, encoding->block);
  return product(sizes) * Dim(p.bytes);
}

std::string text(std::span<const Dim> dims) {
  std::string s = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) s += (i ? "," : "") + dims[i].text();
  return s + "]";
}

std::string text(std::span<const Index> extents) {
  std::string s = "[";
  for (std::size_t i = 0; i < extents.size(); ++i) s += (i ? "," : "") + std::to_string(extents[i]);
  return s + "]";
}

std::string TensorType::text() const {
  std::string s(name(dtype));
  if (encoding) s += ":" + std::string(encoding->name) + "@" + std::to_string(block_axis);
  return s + rlx::text(dims);
}

std::vector<Dim> broadcast_dims(std::span<const Dim> a, std::span<const Dim> b,
                                std::vector<std::pair<Dim, Dim>>& unproved) {
  const std::size_t rank = std::max(a.size(), b.size());
  std::vector<Dim> out(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Dim x = i + a.size() < rank ? Dim(1) : a[i + a.size() - rank];
    const Dim y = i + b.size() < rank ? Dim(1) : b[i + b.size() - rank];
    const Tri same = equal(x, y);
    if (same == Tri::yes || y == Dim(1)) {
      out[i] = x;
    } else if (x == Dim(1)) {
      out[i] = y;
    } else {
      require(same == Tri::unknown, "shapes {} and {} do not broadcast: {} is not {}", text(a), text(b), x.text(),
              y.text());
      unproved.emplace_back(x, y);
      out[i] = x.is_constant() ? x : y;
    }
  }
  return out;
}

}  // namespace rlx
