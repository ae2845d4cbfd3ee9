// arg_reduce: where along an axis the largest or smallest element is.
#pragma once

#include "ir/builder.h"

namespace rlx {

enum class ArgKind : std::uint8_t { max, min };
std::span<const std::string_view> enum_names(ArgKind);

struct ArgReduceAttrs {
  ArgKind kind = ArgKind::max;
  Index axis = -1;
  bool keep = false;  // the axis stays with size 1
  static void fields(auto& a, auto&& f) {
    f("kind", a.kind);
    f("axis", a.axis);
    f("keep", a.keep);
  }
};
extern const Op<ArgReduceAttrs> arg_reduce_op;

/// Index (i64) of the first largest element along an axis; the first NaN counts as larger than all.
Value argmax(Value x, Index axis, bool keep = false);
/// Index (i64) of the first smallest element along an axis; the first NaN counts as smaller than all.
Value argmin(Value x, Index axis, bool keep = false);

}  // namespace rlx
