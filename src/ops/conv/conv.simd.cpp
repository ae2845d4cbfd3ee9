// Depthwise convolution of f32: every result is one chain over the taps; compiled once per level.
#include "core/simd.h"
#include "ops/conv/conv.kernel.h"

namespace rlx::RLX_LEVEL {

namespace {

Index rounded_up(Index a, Index b) { return a <= 0 ? 0 : (a + b - 1) / b; }
Index least(Index a, Index b) { return a < b ? a : b; }

// The row that the taps (z, y) of a row of windows read; null in the padding.
struct Taps {
  const DepthwiseArgs& a;
  Index z, y;
  const float* row(Index i, Index j) const {
    const Index at = z * a.stride[0] - a.before[0] + i * a.dilation[0];
    const Index line = y * a.stride[1] - a.before[1] + j * a.dilation[1];
    const bool inside = at >= 0 && at < a.in[0] && line >= 0 && line < a.in[1];
    return inside ? a.x + (at * a.in[1] + line) * a.in[2] : nullptr;
  }
};

float scalar_fma(float x, float y, float z) {
#if defined(__FMA__)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}

// One window, any of whose taps may lie in the padding.
float one_window(const DepthwiseArgs& a, const Taps& t, Index window) {
  const float* w = a.w;
  const Index first = window * a.stride[2] - a.before[2];
  float sum = 0;
  for (Index i = 0; i < a.kernel[0]; ++i) {
    for (Index j = 0; j < a.kernel[1]; ++j) {
      const float* const row = t.row(i, j);
      for (Index k = 0; k < a.kernel[2]; ++k, ++w) {
        const Index at = first + k * a.dilation[2];
        const bool inside = row && at >= 0 && at < a.in[2];
        sum = scalar_fma(inside ? row[at] : 0.0F, *w, sum);
      }
    }
  }
  return sum;
}

// Every second element from p on.
F32 load_second(const float* p) {
  float all[F32::lanes];
  for (Index i = 0; i < F32::lanes; ++i) all[i] = p[2 * i];
  return load(all);
}
F32 load_apart(const float* p, Index stride) {
  float all[F32::lanes];
  for (Index i = 0; i < F32::lanes; ++i) all[i] = p[i * stride];
  return load(all);
}

// V packs of windows from `window` on, whose taps lie inside along the last axis.
template <int V>
void packs(const DepthwiseArgs& a, const Taps& t, Index window, float* y) {
  F32 sum[V] = {};
  const float* w = a.w;
  const Index stride = a.stride[2], first = window * stride - a.before[2];
  for (Index i = 0; i < a.kernel[0]; ++i) {
    for (Index j = 0; j < a.kernel[1]; ++j) {
      const float* const row = t.row(i, j);
      for (Index k = 0; k < a.kernel[2]; ++k, ++w) {
        const F32 tap = splat(*w);
        const Index at = first + k * a.dilation[2];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          const Index from = at + v * F32::lanes * stride;
          const F32 x = !row          ? splat(0.0F)
                        : stride == 1 ? load(row + from)
                        : stride == 2 ? load_second(row + from)
                                      : load_apart(row + from, stride);
          sum[v] = fma(x, tap, sum[v]);
        }
      }
    }
  }
  for (int v = 0; v < V; ++v) store(y + window + v * F32::lanes, sum[v]);
}

void depthwise(const DepthwiseArgs& a) {
  const Index reach = (a.kernel[2] - 1) * a.dilation[2];
  // Windows [low, high) lie inside along the last axis; loads of strided packs read up to their last element only.
  const Index low = least(rounded_up(a.before[2], a.stride[2]), a.out[2]);
  const Index room = a.in[2] + a.before[2] - reach - 1;
  const Index high = room < 0 ? 0 : least(room / a.stride[2] + 1, a.out[2]);
  float* y = a.y;
  for (Index z = 0; z < a.out[0]; ++z) {
    for (Index line = 0; line < a.out[1]; ++line, y += a.out[2]) {
      const Taps t{a, z, line};
      Index i = 0;
      for (; i < low; ++i) y[i] = one_window(a, t, i);
      for (; i + 4 * F32::lanes <= high; i += 4 * F32::lanes) packs<4>(a, t, i, y);
      for (; i + F32::lanes <= high; i += F32::lanes) packs<1>(a, t, i, y);
      for (; i < a.out[2]; ++i) y[i] = one_window(a, t, i);
    }
  }
}

}  // namespace

const ConvKernels conv_kernels{.depthwise = depthwise};

}  // namespace rlx::RLX_LEVEL
