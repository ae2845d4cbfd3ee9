// Tensor types: element type, sizes, and, for block-quantised tensors, the storage encoding.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dim.h"
#include "core/dtype.h"

namespace rlx {

/// One contiguous part of an encoded tensor, for instance the codes or the scales.
struct Plane {
  enum class Per : std::uint8_t {
    block,   // `bytes` for every block of every row
    axis,    // `bytes` for every index along the block axis (a group index)
    tensor,  // `bytes` once (a global scale)
  };
  std::string_view name;
  Index bytes = 0;
  Per per = Per::block;
};

/// How the elements of a quantised tensor are stored: blocks of `block` consecutive elements along the block axis. A
/// codec folder exports one constant of this type; encodings are compared by address.
struct Encoding {
  std::string_view name;
  Index block = 1;
  std::span<const Plane> planes;
};

/// Element type and sizes of a value. Row-major and dense; strides are no part of it. With an encoding, `dtype` is the
/// type the elements decode to and `block_axis` the axis the blocks run along.
struct TensorType {
  DType dtype = DType::f32;
  std::vector<Dim> dims;
  const Encoding* encoding = nullptr;
  Index block_axis = -1;

  TensorType() = default;
  TensorType(DType element, std::vector<Dim> sizes) : dtype(element), dims(std::move(sizes)) {}
  TensorType(DType element, std::vector<Dim> sizes, const Encoding& storage, Index axis);

  bool operator==(const TensorType&) const = default;

  Index rank() const { return static_cast<Index>(dims.size()); }
  /// Non-negative form of an axis in [-rank, rank); throws Error otherwise.
  Index axis(Index a) const;
  /// Size along an axis, which may be negative.
  const Dim& dim(Index a) const { return dims[static_cast<std::size_t>(axis(a))]; }
  /// Number of elements.
  Dim count() const;
  /// The same type with another size along an axis.
  TensorType with(Index a, Dim size) const;
  /// The same sizes with another element type, dense.
  TensorType with(DType element) const { return {element, dims}; }
  bool is_constant() const;

  std::size_t plane_count() const { return encoding ? encoding->planes.size() : 1; }
  /// Bytes of one plane (0 for a dense tensor).
  Dim plane_bytes(std::size_t plane) const;

  /// `f32[B,2*S]`, `f32:q4_k@1[N,256]`.
  std::string text() const;
};

using Types = std::span<const TensorType>;

/// Product of sizes.
Dim product(std::span<const Dim> dims);

/// Broadcasts two shapes as NumPy does: right-aligned, only the constant 1 stretches. Pairs whose equality cannot be
/// proved go to `unproved`; a provable difference throws Error naming both shapes.
std::vector<Dim> broadcast_dims(std::span<const Dim> a, std::span<const Dim> b,
                                std::vector<std::pair<Dim, Dim>>& unproved);

/// `[2,B,4]`.
std::string text(std::span<const Dim> dims);
std::string text(std::span<const Index> extents);

}  // namespace rlx
