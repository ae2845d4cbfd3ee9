// cumulative: running sums, products, maxima and minima along an axis.
#pragma once

#include "ir/builder.h"

namespace rlx {

enum class CumulativeKind : std::uint8_t { sum, prod, max, min };
std::span<const std::string_view> enum_names(CumulativeKind);

struct CumulativeAttrs {
  CumulativeKind kind = CumulativeKind::sum;
  Index axis = -1;
  bool exclusive = false;  // an element's own value does not count
  bool reverse = false;    // runs from the end
  static void fields(auto& a, auto&& f) {
    f("kind", a.kind);
    f("axis", a.axis);
    f("exclusive", a.exclusive);
    f("reverse", a.reverse);
  }
};
extern const Op<CumulativeAttrs> cumulative_op;

/// Sums of the elements up to (exclusive: before) each one, along an axis.
Value cumsum(Value x, Index axis, bool exclusive = false, bool reverse = false);
/// Products likewise.
Value cumprod(Value x, Index axis, bool exclusive = false, bool reverse = false);
/// The largest and the smallest element so far; NaN from the first NaN on.
Value cummax(Value x, Index axis, bool exclusive = false, bool reverse = false);
Value cummin(Value x, Index axis, bool exclusive = false, bool reverse = false);

}  // namespace rlx
