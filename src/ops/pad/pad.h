// pad: a tensor among equal elements.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct PadAttrs {
  std::vector<Dim> dims;     // sizes of the result
  std::vector<Dim> starts;   // position in the result of the operand's first element along each axis
  std::vector<Index> steps;  // distance in the result between neighbours of the operand; none: 1 everywhere
  double value = 0;          // of all other elements
  static void fields(auto& a, auto&& f) {
    f("dims", a.dims);
    f("starts", a.starts);
    f("steps", a.steps);
    f("value", a.value);
  }
};
extern const Op<PadAttrs> pad_op;

/// `x` inside a larger tensor; `x` itself when nothing is added.
Value pad(Value x, PadAttrs attrs);
/// `x` with `before` and `after` more elements of `value` at the ends of one axis.
Value pad(Value x, Index axis, const Dim& before, const Dim& after, double value = 0);

/// What stands beyond the ends of an axis: a constant, the element at the end, the axis mirrored at its last elements
/// (which are not repeated), or the axis again.
enum class PadMode : std::uint8_t { constant, edge, reflect, wrap };
std::span<const std::string_view> enum_names(PadMode);
/// `x` with `before` and `after` more elements at the ends of one axis, which are elements of `x` unless the mode is
/// constant: then zeros. Mirrored and wrapped as often as it takes. An axis of size 0 is an Error when run, unless
/// nothing is added.
Value pad_with(Value x, Index axis, const Dim& before, const Dim& after, PadMode mode);

}  // namespace rlx
