// log_sum_exp: the logarithm of a sum of exponentials.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct LogSumExpAttrs {
  std::vector<Index> axes;  // any order, negative from the end, no repetition
  bool keep = false;        // reduced axes stay with size 1
  static void fields(auto& a, auto&& f) {
    f("axes", a.axes);
    f("keep", a.keep);
  }
};
extern const Op<LogSumExpAttrs> log_sum_exp_op;

/// log(sum of e^x) over `axes`, for elements of any size.
Value log_sum_exp(Value x, std::vector<Index> axes, bool keep = false);

}  // namespace rlx
