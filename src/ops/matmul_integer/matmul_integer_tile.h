// The tile of an integer product: sums kept in registers from the first step to the scaled result.
#pragma once

#include "ops/matmul/matmul_packs.h"

namespace rlx::RLX_LEVEL {

using Words = Wrapping<Bits32>;

inline Index least(Index a, Index b) { return a < b ? a : b; }
inline Index rounded_up(Index a, Index b) { return (a + b - 1) / b; }

/// f32(s) for i32 s.
inline F32 to_f32(Words s) {
#if defined(__AVX512F__)
  return {_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(s.v))};
#elif defined(__AVX2__)
  return {_mm256_cvtepi32_ps(reinterpret_cast<__m256i>(s.v))};
#else
  return {_mm_cvtepi32_ps(reinterpret_cast<__m128i>(s.v))};
#endif
}
inline F32 as_floats(Words s) { return {reinterpret_cast<decltype(F32::v)>(s.v)}; }

/// The word at an address that need not be one of a word.
inline Words splat_word(const Bits32* p) {
  Bits32 word;
  __builtin_memcpy(&word, reinterpret_cast<const char*>(p), sizeof word);
  return splat_bits(word);
}

/// One tile or a strip of them. All vectors over columns count from the first column of the tile.
struct IntegerTile {
  const Bits32* a;  // [rows][a_row], one word a step
  Index a_row;
  const Bits32* b;  // [steps][panel width], panels `b_panel` words apart
  Index b_panel;
  const char* ahead;  // what is wanted next in the cache, and how far each step goes through it
  Index ahead_step;
  Index steps, columns;
  Bits32* sums;  // [rows][sums_row]: where sums wait between blocks of steps
  Index sums_row;
  bool first, last;
  void* to;  // results, behind the last block
  Index to_row;
  const Bits32* column_sums;
  const Bits32* row_factors;  // of the columns' sums: what is added to the sums of a row
  bool corrected;             // not all of them are 0
  const float *row, *column, *bias;
};

// Fetches the lines that results go to, while the sums are made.
template <int R, int V>
inline __attribute__((always_inline)) void prefetch_results(const IntegerTile& t) {
  constexpr Index line = 16;  // elements
  const auto* to = static_cast<const Bits32*>(t.to);
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, to += t.to_row) {
#pragma GCC unroll 16
    for (Index j = 0; j < V * Words::lanes; j += line) __builtin_prefetch(to + j, 1, 3);
  }
}

// Results of a tile. Lanes beyond the last column are computed from what lies there, and not stored.
template <int R, int V, bool scaled, bool corrected, bool whole>
inline __attribute__((always_inline)) void finish_tile(const IntegerTile& t, const Words (&sum)[R][V]) {
  constexpr Index lanes = Words::lanes;
  const F32 zero = splat(0.0f);
  const auto factors = [&](const float* p, Index n) { return whole || n >= lanes ? load(p) : load(p, n, zero); };
#pragma GCC unroll 16
  for (int j = 0; j < V; ++j) {
    const Index at = j * lanes, n = t.columns - at;
    const Words column = corrected ? load_bits(t.column_sums + at) : Words{};
    const F32 by = scaled ? factors(t.column + at, n) : zero;
    const F32 bias = scaled && t.bias ? factors(t.bias + at, n) : zero;
    float* to = static_cast<float*>(t.to) + at;
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i, to += t.to_row) {
      const Words all{corrected ? sum[i][j].v + column.v * splat_bits(t.row_factors[i]).v : sum[i][j].v};
      F32 y = as_floats(all);
      if constexpr (scaled) {
        y = to_f32(all) * splat(t.row[i]) * by;
        if (t.bias) y = y + bias;
      }
      if (whole || n >= lanes) {
        store(to, y);
      } else {
        store(to, y, n);
      }
    }
  }
}

/// sums[R][V packs] over the steps of a block, and what becomes of them; E has multiply_add() of packs of words.
template <class E, int R, int V>
[[gnu::noinline]] void run_integer_tile(const IntegerTile& t) {
  constexpr Index lanes = Words::lanes, width = E::vectors * lanes;
  Words sum[R][V];
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) sum[i][j] = Words{};
  }
  if (!t.first) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < V; ++j) sum[i][j] = load_bits(t.sums + i * t.sums_row + j * lanes);
    }
  }
  if (t.last) prefetch_results<R, V>(t);
  const Bits32 *a = t.a, *b = t.b;
  const char* ahead = t.ahead;
  const Index a_row = t.a_row, b_panel = t.b_panel, ahead_step = t.ahead_step;
  // Two addresses and one stride reach all rows: more would not stay in registers.
  const Bits32* a_low = a + 3 * a_row;
  for (Index k = t.steps; k > 0; --k, ++a, ++a_low, b += width) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += ahead_step;
    Words y[V];
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) y[j] = load_bits(b + j / E::vectors * b_panel + j % E::vectors * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const Words x = splat_word(i < 3 ? a + i * a_row : a_low + (i - 3) * a_row);
#pragma GCC unroll 16
      for (int j = 0; j < V; ++j) sum[i][j] = E::multiply_add(x, y[j], sum[i][j]);
    }
  }
  const bool whole = t.columns >= V * lanes;
  if (!t.last) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < V; ++j) store(t.sums + i * t.sums_row + j * lanes, sum[i][j]);
    }
  } else if (!t.corrected && !t.row && whole) {
    finish_tile<R, V, false, false, true>(t, sum);
  } else if (t.row) {
    whole ? finish_tile<R, V, true, true, true>(t, sum) : finish_tile<R, V, true, true, false>(t, sum);
  } else {
    whole ? finish_tile<R, V, false, true, true>(t, sum) : finish_tile<R, V, false, true, false>(t, sum);
  }
}

/// Panels that a tile of so many rows takes abreast: few rows alone would wait for the latency of their chains.
template <class E>
constexpr int panels_abreast(int rows) {
  return rows == 1 ? 4 : rows == 2 || (rows == 3 && E::vectors == 2) ? 2 : 1;
}

template <class E, int R, int V>
void pick_packs(const IntegerTile& t, Index packs) {
  if constexpr (V > 0) {
    if (packs == V) return run_integer_tile<E, R, V>(t);
    pick_packs<E, R, V - 1>(t, packs);
  }
}

inline void move_columns(IntegerTile& t, Index by, Index width) {
  t.b += by / width * t.b_panel;
  t.sums += by;
  t.to = static_cast<Bits32*>(t.to) + by;
  t.column_sums += by;
  if (t.row) t.column += by;
  if (t.bias) t.bias += by;
}

/// A tile's places along the columns, to come back to.
struct IntegerColumns {
  const Bits32* b;
  Bits32* sums;
  void* to;
  const Bits32* column_sums;
  const float *column, *bias;
  Index columns;
  explicit IntegerColumns(const IntegerTile& t)
      : b(t.b),
        sums(t.sums),
        to(t.to),
        column_sums(t.column_sums),
        column(t.column),
        bias(t.bias),
        columns(t.columns) {}
  void back(IntegerTile& t) const {
    t.b = b, t.sums = sums, t.to = to, t.column_sums = column_sums, t.column = column, t.bias = bias;
    t.columns = columns;
  }
};

// All columns of t, for R rows; leaves t as it was. A tile is no value here: a copy would wait until its parts have
// left the store queue, and so for the sums of the tile before.
template <class E, int R>
void run_integer_columns(IntegerTile& t) {
  constexpr Index width = E::vectors * Words::lanes, together = panels_abreast<E>(R);
  if (t.columns <= width) return pick_packs<E, R, E::vectors>(t, rounded_up(t.columns, Words::lanes));
  const IntegerColumns start(t);
  Index left = t.columns;
  t.columns = together * width;
  if constexpr (together > 1) {
    for (; left >= t.columns; left -= t.columns) {
      run_integer_tile<E, R, static_cast<int>(together * E::vectors)>(t);
      move_columns(t, t.columns, width);
    }
  }
  for (; left > 0; left -= width) {
    t.columns = least(width, left);
    pick_packs<E, R, E::vectors>(t, rounded_up(t.columns, Words::lanes));
    move_columns(t, width, width);
  }
  start.back(t);
}

template <class E, int R>
void pick_integer_rows(IntegerTile& t, Index rows) {
  if constexpr (R > 0) {
    if (rows == R) return run_integer_columns<E, R>(t);
    pick_integer_rows<E, R - 1>(t, rows);
  }
}

/// Columns of one panel (or of several, for few rows) by all rows, in strips of nearly equal height; leaves t as it
/// was.
template <class E>
void run_integer_strips(IntegerTile& t, Index rows) {
  const Bits32* const a = t.a;
  Bits32* const sums = t.sums;
  void* const to = t.to;
  const Bits32* const factors = t.row_factors;
  const float* const row = t.row;
  for (Index strips = rounded_up(rows, E::rows); strips > 0; --strips) {
    const Index height = rounded_up(rows, strips);
    pick_integer_rows<E, E::rows>(t, height);
    t.ahead += t.steps * t.ahead_step;
    t.a += height * t.a_row;
    t.sums += height * t.sums_row;
    t.to = static_cast<Bits32*>(t.to) + height * t.to_row;
    t.row_factors += height;
    if (t.row) t.row += height;
    rows -= height;
  }
  t.a = a, t.sums = sums, t.to = to, t.row_factors = factors, t.row = row;
}

}  // namespace rlx::RLX_LEVEL
