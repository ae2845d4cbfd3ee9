// Opens core/simd.h to tests: each function applies one operation to n numbers, tails included.
#pragma once

#include "core/levels.h"

namespace rlx {

struct SimdProbe {
  long lanes;
  void (*exp)(const float* x, float* y, long n);
  void (*max)(const float* a, const float* b, float* y, long n);
};

}  // namespace rlx

RLX_LEVELS(SimdProbe, simd_probe)
