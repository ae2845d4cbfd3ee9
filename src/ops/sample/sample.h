// sample: one class of each row of logits, drawn by given numbers.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct SampleAttrs {
  double temperature = 1;  // at most 1e-6: the first largest logit
  Index top_k = 0;         // 0: all
  double top_p = 1;        // 1: all
  static void fields(auto& a, auto&& f) {
    f("temperature", a.temperature);
    f("top_k", a.top_k);
    f("top_p", a.top_p);
  }
};
extern const Op<SampleAttrs> sample_op;

/// Classes (i64) drawn from logits along the last axis by numbers in [0, 1), one a row; see the op.
Value sample(Value logits, Value numbers, SampleAttrs attrs = {});

}  // namespace rlx
