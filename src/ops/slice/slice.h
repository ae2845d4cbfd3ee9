// slice: a box of elements at regular steps.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct SliceAttrs {
  std::vector<Dim> starts;   // position of the first element along each axis
  std::vector<Dim> sizes;    // number of elements along each axis: the sizes of the result
  std::vector<Index> steps;  // distance between elements along each axis, negative: backwards; none: 1 everywhere
  static void fields(auto& a, auto&& f) {
    f("starts", a.starts);
    f("sizes", a.sizes);
    f("steps", a.steps);
  }
};
extern const Op<SliceAttrs> slice_op;

/// Elements of a box; `x` itself when that is all of it. Throws Error when the box provably leaves `x`.
Value slice(Value x, SliceAttrs attrs);
/// Elements start, start + step, … of one axis, up to but without `end`. `start` and `end` are positions, 0 is the
/// first; with a negative step `end` lies before the last element taken, -1 to take the first of the axis. Throws Error
/// when the elements provably leave the axis.
Value slice(Value x, Index axis, const Dim& start, const Dim& end, Index step = 1);
/// The same by the rules of ONNX and Python: a negative `start` or `end` counts from the end of the axis, and both are
/// then clamped to it. Throws Error for a size that may be negative or not.
Value clamped_slice(Value x, Index axis, const Dim& start, const Dim& end, Index step = 1);
/// The axis backwards.
Value reversed(Value x, Index axis);

/// The step along an axis; no list means 1.
inline Index step_along(const std::vector<Index>& steps, std::size_t axis) { return steps.empty() ? 1 : steps[axis]; }
/// Lists of starts and steps that fit the rank, and positions start + i*step, i < counts, inside the extents: otherwise
/// Error, or a run-time check. For slice and pad.
void check_box(InferContext& c, const std::vector<Dim>& starts, const std::vector<Index>& steps,
               std::span<const Dim> counts, std::span<const Dim> extents);

}  // namespace rlx
