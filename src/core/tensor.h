// Host tensors: typed bytes with shared ownership, so that mapped files are used without a copy.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/type.h"

namespace rlx {

/// A range of bytes that keeps its owner alive: an allocation, or a mapped file.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> data;
  bool writable = false;  // the memory may be written when nobody shares it; false for the pages of a file
  bool mapped = false;    // pages of a file, read on demand

  /// `size` new bytes, all zero, writable. Memory is taken from the system when it is first touched.
  static Bytes allocate(Index size);
};

/// A dense or encoded tensor in host memory. Copies share the bytes; writing goes through `mutable_bytes`, which copies
/// them first when they are shared or belong to a file. Row-major; sub-byte elements are packed, little end first.
class Tensor {
 public:
  /// A rank-1 f32 tensor without elements.
  Tensor() : Tensor(DType::f32, {0}) {}
  /// Zero-filled. Throws Error when an extent is negative or the size overflows.
  Tensor(DType dtype, std::vector<Index> shape);
  /// Over existing bytes, one range a plane. Throws Error when a size differs from what type and shape ask for.
  Tensor(const TensorType& type, std::vector<Bytes> planes);

  /// From values of the type's C++ counterpart, `shape` row-major; throws Error when the counts differ.
  template <class T>
  static Tensor of(DType dtype, std::vector<Index> shape, const std::vector<T>& values);
  /// A rank-0 tensor.
  static Tensor scalar(DType dtype, double value);

  DType dtype() const { return type_.dtype; }
  /// All sizes are constants.
  const TensorType& type() const { return type_; }
  const std::vector<Index>& shape() const { return shape_; }
  Index rank() const { return static_cast<Index>(shape_.size()); }
  Index count() const { return count_; }

  std::span<const std::byte> bytes(std::size_t plane = 0) const { return planes_[plane].data; }
  std::span<std::byte> mutable_bytes(std::size_t plane = 0);
  /// Identity of the storage: two tensors with the same address share bytes.
  const void* storage() const { return planes_[0].data.data(); }
  /// What keeps the bytes of a plane alive.
  const Bytes& plane(std::size_t plane = 0) const { return planes_[plane]; }

  /// Bits of element `i` in the low bits. Dense tensors only.
  std::uint64_t code(Index i) const;
  /// Sets the bits of element `i`.
  void set_code(Index i, std::uint64_t bits);

  /// The same elements under another shape of the same count; shares the bytes. Dense tensors only.
  Tensor reshaped(std::vector<Index> shape) const;

 private:
  TensorType type_;
  std::vector<Index> shape_;
  Index count_ = 0;
  std::vector<Bytes> planes_;
};

/// The whole tensor as numbers: T is double (any real, integer or boolean type; exact up to 2^53), std::int64_t
/// (integers and booleans; u64 as its bit pattern), std::uint64_t (the same, unsigned) or std::complex<double> (any
/// type).
template <class T>
std::vector<T> load(const Tensor& tensor);
/// Writes numbers into a tensor, by the rules of a cast from f64, i64, u64 or complex (see encode_float,
/// encode_integer; integers wrap; to bool: not zero; a real to complex: imaginary part 0; a complex to real: the real
/// part).
template <class T>
void store(Tensor& tensor, std::span<const T> values);
template <class T>
void store(Tensor& tensor, const std::vector<T>& values) {
  store(tensor, std::span<const T>(values));
}

template <class T>
Tensor Tensor::of(DType dtype, std::vector<Index> shape, const std::vector<T>& values) {
  Tensor t(dtype, std::move(shape));
  store(t, values);
  return t;
}

/// True when dtype, shape and all bits are equal (NaN payloads and the sign of 0 count).
bool identical(const Tensor& a, const Tensor& b);

}  // namespace rlx
