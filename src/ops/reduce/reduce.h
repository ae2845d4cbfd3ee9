// reduce: sum, mean, max, min, prod over any axes.
#pragma once

#include "ir/builder.h"

namespace rlx {

enum class ReduceKind : std::uint8_t { sum, mean, max, min, prod };
std::span<const std::string_view> enum_names(ReduceKind);

struct ReduceAttrs {
  ReduceKind kind = ReduceKind::sum;
  std::vector<Index> axes;  // any order, negative from the end, no repetition; none: nothing is reduced
  bool keep = false;        // reduced axes stay with size 1
  static void fields(auto& a, auto&& f) {
    f("kind", a.kind);
    f("axes", a.axes);
    f("keep", a.keep);
  }
};
extern const Op<ReduceAttrs> reduce_op;

Value reduce(Value x, ReduceAttrs attrs);
Value sum(Value x, std::vector<Index> axes, bool keep = false);
Value mean(Value x, std::vector<Index> axes, bool keep = false);
Value max(Value x, std::vector<Index> axes, bool keep = false);
Value min(Value x, std::vector<Index> axes, bool keep = false);
Value prod(Value x, std::vector<Index> axes, bool keep = false);

/// Number of elements along `axes` of `x`, a rank-0 value of its element type.
Value extent(Value x, const std::vector<Index>& axes);

}  // namespace rlx
