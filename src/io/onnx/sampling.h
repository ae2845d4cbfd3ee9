// Reading images at computed positions, as gathers and weighted sums.
#pragma once

#include <optional>
#include <vector>

#include "ir/builder.h"

namespace rlx::onnx {

/// Images [N, C, sizes..] whose elements are read at positions in floats, the same for all channels of an image.
class Sampler {
 public:
  enum class Edge : std::uint8_t { zeros, border, reflection };

  /// `images` of floats or integers, with one to three axes behind the first two. `corners`: reflection is about the
  /// centres of the outermost elements, otherwise about their outer edges.
  Sampler(Value images, Edge edge, bool corners);

  /// [N, C, P] elements at the nearest position, the even one of two; `at` holds a coordinate [N, P] an axis.
  Value nearest(const std::vector<Value>& at) const;
  /// [N, C, P] interpolated between two elements an axis, in the type of the coordinates.
  Value linear(const std::vector<Value>& at) const;
  /// [N, C, P] by four elements an axis, with the coefficient -0.75.
  Value cubic(const std::vector<Value>& at) const;

 private:
  // An element of an axis: its place, whether it lies inside, and its weight.
  struct Tap {
    Value place;
    std::optional<Value> inside, weight;
  };
  using Taps = std::vector<std::vector<Tap>>;  // of each axis

  Value number(std::size_t axis, DType dtype) const;
  Value reflected(std::size_t axis, Value at) const;
  Value moved(std::size_t axis, Value at) const;
  Tap tap(std::size_t axis, Value whole, std::optional<Value> weight) const;
  Value element(const std::vector<const Tap*>& taps) const;
  Value sum(const Taps& taps, std::vector<const Tap*>& chosen, DType dtype) const;

  Value images_;
  Edge edge_;
  bool corners_;
};

}  // namespace rlx::onnx
