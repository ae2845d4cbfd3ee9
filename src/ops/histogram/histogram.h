// histogram: how many elements lie in each of equal intervals.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct HistogramAttrs {
  Index bins = 10;
  double min = 0, max = 1;
  static void fields(auto& a, auto&& f) {
    f("bins", a.bins);
    f("min", a.min);
    f("max", a.max);
  }
};
extern const Op<HistogramAttrs> histogram_op;

/// Numbers (f32[bins]) of elements in `bins` equal intervals between `min` and `max`; see the op.
Value histogram(Value x, Index bins, double min, double max);

}  // namespace rlx
