// Products of windows by panels of weights: sums of a few windows by all channels of a panel stay in registers, and go
// out channel by channel. Compiled once per level.
#include "core/simd_turn.h"
#include "ops/conv/conv.kernel.h"

namespace rlx::RLX_LEVEL {

namespace {

constexpr Index lanes = F32::lanes;

// Packs of a panel, and windows of a tile: their sums fit the vector registers, their addresses the others.
#if defined(__AVX512F__)
constexpr int most_vectors = 4;
constexpr int tile_rows(int vectors) { return vectors == 4 ? 6 : 8; }
#elif defined(__AVX2__)
constexpr int most_vectors = 2;
constexpr int tile_rows(int vectors) { return vectors == 2 ? 6 : 8; }
#else
constexpr int most_vectors = 2;
constexpr int tile_rows(int vectors) { return vectors == 2 ? 4 : 8; }
#endif
constexpr Index width = most_vectors * lanes;
// Windows of a block: whole tiles of every height, whole packs.
constexpr Index block_rows = 384;
// Terms of a block of the sums: their part of a panel stays in the cache while all windows of a block go over it.
constexpr Index block_terms = 65536 / width;

Index least(Index a, Index b) { return a < b ? a : b; }
Index most_of(Index a, Index b) { return a > b ? a : b; }
Index rounded_up(Index a, Index b) { return (a + b - 1) / b; }

struct Tile {
  const float* x;
  const Index* windows;
  const Index* terms;
  const float* panel;
  float* sums;
  Index steps;
  bool first;
};

// max(x, 0), where NaN stays and -0 becomes 0: the bits of Relu.
F32 rectified(F32 x) { return max_or_second(F32{}, x) + F32{}; }

template <int R, int V>
[[gnu::noinline]] void run_tile(const Tile& t) {
  F32 sum[R][V];
  const float* x[R];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
    x[i] = t.x + t.windows[i];
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) sum[i][j] = t.first ? F32{} : load(t.sums + (i * V + j) * lanes);
  }
  const float* w = t.panel;
  const Index* const end = t.terms + t.steps;
  for (const Index* term = t.terms; term != end; ++term, w += V * lanes) {
    const Index at = *term;
    // The next weights, and what the next tiles read.
    __builtin_prefetch(w + 16 * V * lanes);
    __builtin_prefetch(x[R - 1] + at + 16);
    F32 y[V];
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) y[j] = load(w + j * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const F32 v = splat(x[i][at]);
#pragma GCC unroll 16
      for (int j = 0; j < V; ++j) sum[i][j] = fma(v, y[j], sum[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) {
      store(t.sums + (i * V + j) * lanes, sum[i][j]);
    }
  }
}

template <int R, int V>
void pick_rows(const Tile& t, Index rows) {
  if constexpr (R > 0) {
    if (rows == R) return run_tile<R, V>(t);
    pick_rows<R - 1, V>(t, rows);
  }
}

// All windows of a block, in tiles of nearly equal height.
template <int V>
void run_block(Tile t, Index rows) {
  constexpr int most = tile_rows(V);
  for (Index tiles = rounded_up(rows, most); tiles > 0; --tiles) {
    const Index height = rounded_up(rows, tiles);
    pick_rows<most, V>(t, height);
    t.windows += height;
    t.sums += height * V * lanes;
    rows -= height;
  }
}

template <int V>
void pick_vectors(const Tile& t, Index rows, Index vectors) {
  if constexpr (V > 0) {
    if (vectors == V) return run_block<V>(t, rows);
    pick_vectors<V - 1>(t, rows, vectors);
  }
}

// Up to a square of sums, from[i * stride + j], turned and finished, to[j * column + i] for i < rows and j < columns.
// All rows of the square can be read.
template <bool bias, ConvActivation activation, bool whole>
void hand_square(const float* from, Index stride, Index rows, Index columns, const float* add, float slope, float* to,
                 Index column) {
  F32 v[lanes];
#pragma GCC unroll 16
  for (Index k = 0; k < lanes; ++k) v[k] = load(from + k * stride);
  turn(v);
#pragma GCC unroll 16
  for (Index k = 0; k < lanes; ++k) {
    if (!whole && k >= columns) return;
    if (bias) v[k] = v[k] + splat(add[k]);
    if (activation == ConvActivation::relu) v[k] = rectified(v[k]);
    if (activation == ConvActivation::leaky) v[k] = select(less(v[k], F32{}), v[k] * splat(slope), v[k]);
    if (whole || rows >= lanes) {
      store(to + k * column, v[k]);
    } else {
      store(to + k * column, v[k], rows);
    }
  }
}

// All sums of a block, sums[i * stride + j], i < rows, to y[j * y_column + i].
template <bool bias, ConvActivation activation>
void hand_over(const float* sums, Index stride, const WindowArgs& a) {
  for (Index j = 0; j < a.columns; j += lanes) {
    for (Index i = 0; i < a.rows; i += lanes) {
      const float* const from = sums + i * stride + j;
      float* const to = a.y + j * a.y_column + i;
      const float* const plus = bias ? a.finish.bias + j : nullptr;
      const auto hand = a.rows - i >= lanes && a.columns - j >= lanes ? hand_square<bias, activation, true>
                                                                      : hand_square<bias, activation, false>;
      hand(from, stride, a.rows - i, a.columns - j, plus, a.finish.slope, to, a.y_column);
    }
  }
}

void finish(const float* sums, Index stride, const WindowArgs& a) {
  using enum ConvActivation;
  constexpr decltype(&hand_over<false, none>) hands[2][3] = {
      {hand_over<false, none>, hand_over<false, relu>, hand_over<false, leaky>},
      {hand_over<true, none>, hand_over<true, relu>, hand_over<true, leaky>}};
  hands[a.finish.bias ? 1 : 0][static_cast<int>(a.finish.activation)](sums, stride, a);
}

void multiply(const WindowArgs& a) {
  alignas(64) float sums[block_rows * width];
  const Index vectors = rounded_up(a.columns, lanes);
  Tile t{a.x, a.windows, a.terms, a.panel, sums, a.inner, true};
  if (a.inner == 0) pick_vectors<most_vectors>(t, a.rows, vectors);
  const Index most = a.inner == 0 ? 0 : rounded_up(a.inner, rounded_up(a.inner, block_terms));
  for (Index k = 0; k < a.inner; k += t.steps) {
    t.steps = least(most, a.inner - k);
    t.first = k == 0;
    t.terms = a.terms + k;
    t.panel = a.panel + k * vectors * lanes;
    pick_vectors<most_vectors>(t, a.rows, vectors);
  }
  finish(sums, vectors * lanes, a);
}

void copy(const StripArgs& a) {
  float* to = a.to;
  const float* from = a.from;
  for (Index line = 0; line < a.lines; ++line, from += a.pitch, to += a.width) {
    for (Index i = 0; i < a.width; i += lanes) {
      if (i >= a.begin && i + lanes <= a.end) {
        store(to + i, load(from + i));
        continue;
      }
      const Index low = least(most_of(a.begin - i, 0), lanes), high = least(most_of(a.end - i, low), lanes);
#if defined(__AVX512F__)
      const unsigned wanted = ((1u << high) - 1) & ~((1u << low) - 1);
      store(to + i, F32{_mm512_maskz_loadu_ps(static_cast<__mmask16>(wanted), from + i)});
#else
      float part[lanes] = {};
      for (Index k = low; k < high; ++k) part[k] = from[i + k];
      store(to + i, load(part));
#endif
    }
  }
}

void pack(const float* w, Index columns, Index inner, float* panels) {
  for (Index j0 = 0; j0 < columns; j0 += width) {
    const Index all = least(width, columns - j0), full = rounded_up(all, lanes) * lanes;
    for (Index k = 0; k < inner; ++k, panels += full) {
      for (Index j = 0; j < full; ++j) panels[j] = j < all ? w[(j0 + j) * inner + k] : 0.0F;
    }
  }
}

}  // namespace

const WindowKernels window_kernels{
    .width = width, .lanes = lanes, .rows = block_rows, .pack = pack, .copy = copy, .multiply = multiply};

}  // namespace rlx::RLX_LEVEL
