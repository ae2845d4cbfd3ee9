// unique: the different rows of a matrix, as many as a run finds.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct UniqueAttrs {
  bool sorted = true;  // ascending; else in the order in which they come first
  static void fields(auto& a, auto&& f) { f("sorted", a.sorted); }
};
extern const Op<UniqueAttrs> unique_op;

struct UniqueValues {
  Value values;   // the different slices
  Value first;    // i64[number]: where each comes first
  Value inverse;  // i64[size]: which of them each slice is
  Value counts;   // i64[number]: how often each comes
};
/// The different slices of `x` along `axis`; their number is a size that a run finds.
UniqueValues unique(Value x, Index axis, bool sorted = true);

}  // namespace rlx
