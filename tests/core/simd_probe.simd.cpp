// Opens core/simd.h to tests, compiled once per level.
#include "core/simd_math.h"
#include "core/simd_probe.kernel.h"

namespace rlx::RLX_LEVEL {

static void probe_exp(const float* x, float* y, Index n) {
  Index i = 0;
  for (; i + F32::lanes <= n; i += F32::lanes) store(y + i, exp(load(x + i)));
  if (i < n) store(y + i, exp(load(x + i, n - i, splat(0.0f))), n - i);
}

static void probe_max(const float* a, const float* b, float* y, Index n) {
  const F32 zero = splat(0.0f);
  Index i = 0;
  for (; i + F32::lanes <= n; i += F32::lanes) store(y + i, max(load(a + i), load(b + i)));
  if (i < n) store(y + i, max(load(a + i, n - i, zero), load(b + i, n - i, zero)), n - i);
}

const SimdProbe simd_probe{.lanes = F32::lanes, .exp = probe_exp, .max = probe_max};

}  // namespace rlx::RLX_LEVEL
