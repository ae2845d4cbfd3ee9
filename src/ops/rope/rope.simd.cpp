// Kernels of rope, compiled once per level.
#include "core/simd_float.h"
#include "ops/rope/rope.kernel.h"

namespace rlx::RLX_LEVEL {

static double number(double x) { return x; }
static float number(float x) { return x; }
static float number(StoredF16 x) { return widen(x); }
static float number(StoredBF16 x) { return widen(x); }
static void put(double x, double& to) { to = x; }
static void put(float x, float& to) { to = x; }
static void put(float x, StoredF16& to) { narrow(x, to); }
static void put(float x, StoredBF16& to) { narrow(x, to); }

/// Whether packs of T are loaded as f32.
template <class T>
static constexpr bool in_packs = true;
template <>
constexpr bool in_packs<double> = false;

template <class T, class U, bool neighbours>
static void rotate_head(const T* x, T* y, const U* cos, const U* sin, Index half) {
  Index i = 0;
  if constexpr (in_packs<T> && !neighbours) {
    for (; i + F32::lanes <= half; i += F32::lanes) {
      const F32 a = load(x + i), b = load(x + half + i), c = load(cos + i), s = load(sin + i);
      store(y + i, a * c - b * s);
      store(y + half + i, b * c + a * s);
    }
  }
  for (; i < half; ++i) {
    const Index first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + half;
    const auto a = number(x[first]), b = number(x[second]);
    const decltype(a) c = number(cos[i]), s = number(sin[i]);
    put(a * c - b * s, y[first]);
    put(b * c + a * s, y[second]);
  }
}

template <class T, class U, bool neighbours>
static void rotate(const RopeRows& r, Index begin, Index end) {
  for (Index row = begin; row < end; ++row) {
    const Index table = row / r.batch_rows * r.batch_entries + row % r.positions * r.entries;
    const U *cos = static_cast<const U*>(r.cos) + table, *sin = static_cast<const U*>(r.sin) + table;
    for (Index h = 0; h < r.heads; ++h) {
      const T* x = static_cast<const T*>(r.x) + row * r.apart + h * r.size;
      T* y = static_cast<T*>(r.y) + (row * r.heads + h) * r.size;
      rotate_head<T, U, neighbours>(x, y, cos, sin, r.half);
      for (Index i = 2 * r.half; i < r.size; ++i) y[i] = x[i];
    }
  }
}

#define RLX_ROPE_ROW(T)                                  \
  {                                                      \
      {rotate<T, T, false>, rotate<T, T, true>},         \
      {rotate<T, float, false>, rotate<T, float, true>}, \
  }
const RopeKernels rope_kernels{
    .rotate = {RLX_ROPE_ROW(double), RLX_ROPE_ROW(float), RLX_ROPE_ROW(StoredF16), RLX_ROPE_ROW(StoredBF16)}};
#undef RLX_ROPE_ROW

}  // namespace rlx::RLX_LEVEL
