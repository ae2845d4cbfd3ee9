// Kernels of softmax, compiled once per level.
#include "core/simd.h"
#include "ops/softmax/softmax.kernel.h"

namespace rlx::RLX_LEVEL {

static float row_max(const float* x, Index cols) {
  const F32 lowest = splat(-__builtin_inff());
  F32 top = lowest;
  Index c = 0;
  for (; c + F32::lanes <= cols; c += F32::lanes) top = max(top, load(x + c));
  if (c < cols) top = max(top, load(x + c, cols - c, lowest));
  // A NaN that this comparison drops comes back in the sum of the exponentials.
  return fold(top, [](float a, float b) { return a < b ? b : a; });
}

/// y = e^(x - top); returns the sum.
static float row_exp(const float* x, float* y, Index cols, float top) {
  F32 sum = splat(0.0f);
  Index c = 0;
  for (; c + F32::lanes <= cols; c += F32::lanes) {
    const F32 e = exp(load(x + c) - splat(top));
    store(y + c, e);
    sum = sum + e;
  }
  if (c < cols) {
    const F32 e = exp(load(x + c, cols - c, splat(-__builtin_inff())) - splat(top));
    store(y + c, e, cols - c);
    sum = sum + e;
  }
  return fold(sum, [](float a, float b) { return a + b; });
}

static void rows_f32(const float* x, float* y, Index rows, Index cols) {
  for (Index r = 0; r < rows; ++r, x += cols, y += cols) {
    const F32 sum = splat(row_exp(x, y, cols, row_max(x, cols)));
    Index c = 0;
    for (; c + F32::lanes <= cols; c += F32::lanes) store(y + c, load(y + c) / sum);
    if (c < cols) store(y + c, load(y + c, cols - c, sum) / sum, cols - c);
  }
}

const SoftmaxKernels softmax_kernels{.rows_f32 = rows_f32};

}  // namespace rlx::RLX_LEVEL
