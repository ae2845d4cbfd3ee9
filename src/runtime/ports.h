// Bound inputs and outputs of a run: memory of the caller with its type, and handles found by name once.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace rlx {

/// Dense row-major memory that is read. It must stay valid during the run. `shape` is not copied.
struct ConstView {
  DType dtype = DType::f32;
  std::span<const Index> shape;
  const void* data = nullptr;

  ConstView() = default;
  ConstView(DType type, std::span<const Index> sizes, const void* memory) : dtype(type), shape(sizes), data(memory) {}
  ConstView(const Tensor& t) : dtype(t.dtype()), shape(t.shape()), data(t.bytes().data()) {}
};

/// Dense row-major memory that is written. `shape` is not copied.
struct MutableView {
  DType dtype = DType::f32;
  std::span<const Index> shape;
  void* data = nullptr;
};

/// An input or output of one executable with memory for one run.
struct BoundInput {
  std::uint32_t port = 0;
  ConstView view;
};
struct BoundOutput {
  std::uint32_t port = 0;
  MutableView view;
};

/// An input of an executable, found by name once.
class InputHandle {
 public:
  explicit InputHandle(std::uint32_t port) : port_(port) {}
  BoundInput bind(ConstView view) const { return {port_, view}; }

 private:
  std::uint32_t port_;
};

/// An output of an executable.
class OutputHandle {
 public:
  explicit OutputHandle(std::uint32_t port) : port_(port) {}
  BoundOutput bind(MutableView view) const { return {port_, view}; }

 private:
  std::uint32_t port_;
};

}  // namespace rlx
