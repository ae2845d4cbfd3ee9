// Unary rows over f32, compiled once per level.
#include "core/simd_math.h"
#include "ops/scalar/scalar.kernel.h"

namespace rlx::RLX_LEVEL {

template <class Row>
static inline F32 value(F32 x) {
#if defined(__FMA__)
  if constexpr (__is_same(Row, Gelu)) return gelu(x);
  if constexpr (__is_same(Row, GeluTanh)) return gelu_tanh(x);
#endif
  if constexpr (Row::wide) {
    return in_f64(x, [](F64 v) { return Row::value(v); });
  } else {
    return Row::value(x);
  }
}

template <class Row>
static void unary(const void* const* in, void* out, long n) {
  const float* x = static_cast<const float*>(in[0]);
  float* y = static_cast<float*>(out);
  long i = 0;
  for (; i + F32::lanes <= n; i += F32::lanes) store(y + i, value<Row>(load(x + i)));
  if (i < n) store(y + i, value<Row>(load(x + i, n - i, splat(1.0f))), n - i);
}

#define RLX_UNARY_KERNEL(Type, function) unary<Type>,
const UnaryKernels unary_kernels{{RLX_UNARY_ROWS(RLX_UNARY_KERNEL)}};
#undef RLX_UNARY_KERNEL

}  // namespace rlx::RLX_LEVEL
