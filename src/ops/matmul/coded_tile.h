// The tile of a product of codes, for any form of matrix: sums of products of bytes, scaled and added in f32.
//
// A panel holds 64 columns, in four groups of 16. Its units of inner indices follow each other: blocks of 32 for most
// forms, blocks of 256 in eight parts of 32 for grouped ones, which begin with the scales of the blocks, and then their
// minima, [columns] f16 each. A part is lines of codes, and then, for each group of columns in turn, scales and minima.
// A line holds four adjacent inner indices, a quad, of every column: [column][4] bytes. Codes of 8 bits fill a line a
// quad; of 4 bits there are four lines, with quads 0 to 3 in the low half of bytes and quads 4 to 7 in the high half;
// of 2 bits two lines of four quads each. In front of these stand the bits beyond the fourth or second: one bit a code
// as one line with quad q in bit q; two bits as two lines of four quads each.
#pragma once

#include "ops/matmul/coded.kernel.h"
#include "ops/matmul/coded_ints.h"

namespace rlx::RLX_LEVEL {

/// Blocks of activations: 32 codes, scale, scale times sum of codes, minus the sum, minus that of the first 16.
inline constexpr Index left_block = 48, left_scale = 32, left_scaled_sum = 36, left_sum = 40, left_half_sum = 44;

/// Bytes of a line, and of a group of columns in it.
inline constexpr Index line_bytes = coded_panel * 4, line_of_group = coded_group * 4;
inline constexpr Index groups_of_panel = coded_panel / coded_group;

/// How a matrix lies in memory. `Shift` is the logarithm of the bias, or -1.
template <int Bits, int Group, bool Table, int Shift, bool Grouped, bool Minimum, bool Bfloat>
struct CodedForm {
  static constexpr int bits = Bits, group = Group, halves = 32 / Group, shift = Shift;
  static constexpr bool table = Table, grouped = Grouped, minimum = Minimum, bfloat = Bfloat;
  static constexpr bool wide = Bits == 8 || Table;  // codes of more than 6 bits
  static constexpr int parts = Grouped ? 8 : 1;     // of a unit
  /// Bytes: of the codes of a part; of one scale or minimum of a group of columns, of all of these in a part; of what
  /// a unit begins with.
  static constexpr Index codes = line_bytes * Bits, scales = Grouped ? 16 : 32;
  static constexpr Index beside = halves * scales * (1 + Minimum);
  static constexpr Index part = codes + groups_of_panel * beside;
  static constexpr Index head = Grouped ? coded_panel * 2 * (1 + Minimum) : 0;
};

struct CodedTile {
  const char* x;  // rows of blocks
  Index x_row;
  const char* w;  // the panel
  Index group;    // of it, where the tile begins
  Index units;
  const signed char* values;
  float* to;
  Index to_row;
};

inline constexpr int packs_of_group = static_cast<int>(coded_group / F32::lanes);

inline float float_at(const char* p) {
  float x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
inline int int_at(const char* p) {
  int x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
template <bool bfloat>
inline F32 halves_at(const char* p) {
  if constexpr (bfloat) return load(reinterpret_cast<const StoredBF16*>(p));
  return load(reinterpret_cast<const StoredF16*>(p));
}

/// Bits of `a` that stand from bit `from` of each byte on, moved to bit `to`; others are not cleared.
template <int from, int to>
inline Raw moved(Raw a) {
  if constexpr (from > to) return down<from - to>(a);
  if constexpr (from < to) return up<to - from>(a);
  return a;
}

/// The unsigned bytes of quad q for one pack of columns, from its codes.
template <class F, int q>
inline __attribute__((always_inline)) Raw codes_of(const char* p, Raw table) {
  constexpr int pair = q % 4 * 2;
  const auto line = [p](int n) { return load_raw(p + n * line_bytes); };
  if constexpr (F::bits == 8) return line(q);
  if constexpr (F::bits < 4) {
    const Raw two = both(moved<pair, 0>(line(F::bits - 2 + q / 4)), splat_bytes(3));
    if constexpr (F::bits == 2) return two;
    return both_or(moved<q, 2>(line(0)), splat_bytes(4), two);
  } else {
    const Raw four = both(moved<q / 4 * 4, 0>(line(F::bits - 4 + q % 4)), splat_bytes(15));
    if constexpr (F::table) return look_up(table, four);
    if constexpr (F::bits == 5) return both_or(moved<q, 4>(line(0)), splat_bytes(16), four);
    if constexpr (F::bits == 6) return both_or(moved<pair, 4>(line(q / 4)), splat_bytes(48), four);
    return four;
  }
}

template <class F, int R, int V>
struct CodedSums {
  F32 sum[R][V];
  F32 scale[V], least[V];  // of grouped blocks
  Raw table;
};

template <class F, int q, int R, int V, int j = 0>
inline __attribute__((always_inline)) void add_quad(const char* codes, Raw table, const Four (&x)[R],
                                                    Raw (&sum)[R][V]) {
  if constexpr (j < V) {
    const Raw u = codes_of<F, q>(codes + j * F32::lanes * 4, table);
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) sum[i][j] = add_products<F::wide>(sum[i][j], u, x[i]);
    add_quad<F, q, R, V, j + 1>(codes, table, x, sum);
  }
}

// Quads of a half of a part, from number n on, in the order of memory: those that share lines of nibbles follow each
// other.
template <class F, int half, int n, int R, int V>
inline __attribute__((always_inline)) void add_quads(const char* x, Index x_row, const char* codes, Raw table,
                                                     Raw (&sum)[R][V]) {
  constexpr int count = 8 / F::halves;
  if constexpr (n < count) {
    constexpr bool joined = F::halves == 1 && F::bits >= 4 && F::bits < 8;
    constexpr int q = joined ? n / 2 + n % 2 * 4 : half * count + n;
    Four four[R];
#pragma GCC unroll 8
    for (int i = 0; i < R; ++i) four[i] = load_four(x + i * x_row + q * 4);
    add_quad<F, q, R, V>(codes, table, four, sum);
    add_quads<F, half, n + 1, R, V>(x, x_row, codes, table, sum);
  }
}

// One half of a part: exact sums, then scales.
template <class F, int half, int R, int V>
inline __attribute__((always_inline)) void add_half(const char* x, Index x_row, const char* codes, const char* beside,
                                                    CodedSums<F, R, V>& s) {
  Raw sum[R][V];
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
    Raw start{};
    if constexpr (F::shift >= 0) {
      const char* const b = x + i * x_row;
      if constexpr (F::halves == 1) start = splat_raw(int_at(b + left_sum));
      if constexpr (F::halves == 2 && half == 0) start = splat_raw(int_at(b + left_half_sum));
      if constexpr (F::halves == 2 && half == 1) start = splat_raw(int_at(b + left_sum) - int_at(b + left_half_sum));
      start = up32<F::shift>(start);
    }
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) sum[i][j] = start;
  }
  add_quads<F, half, 0, R, V>(x, x_row, codes, s.table, sum);
  F32 scale[V], least[V];
#pragma GCC unroll 8
  for (int j = 0; j < V; ++j) {
    const Index group = j / packs_of_group, lane = j % packs_of_group * F32::lanes;
    const char* const at = beside + group * F::beside + half * F::scales;
    if constexpr (F::grouped) {
      scale[j] = small_integers(reinterpret_cast<const signed char*>(at) + lane) * s.scale[j];
      if constexpr (F::minimum)
        least[j] = small_integers(reinterpret_cast<const signed char*>(at) + F::halves * F::scales + lane) * s.least[j];
    } else {
      scale[j] = halves_at<F::bfloat>(at + lane * 2);
      if constexpr (F::minimum) least[j] = halves_at<F::bfloat>(at + F::halves * F::scales + lane * 2);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
    const char* const b = x + i * x_row;
    const F32 by = splat(float_at(b + left_scale));
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) s.sum[i][j] = fma(to_floats(sum[i][j]), by * scale[j], s.sum[i][j]);
    if constexpr (F::minimum) {
      float total = float_at(b + left_scaled_sum);
      if constexpr (F::halves == 2) {
        const int first = int_at(b + left_half_sum), here = half == 0 ? first : int_at(b + left_sum) - first;
        total = float_at(b + left_scale) * static_cast<float>(-here);
      }
      const F32 all = splat(total);
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) s.sum[i][j] = fma(all, least[j], s.sum[i][j]);
    }
  }
}

/// Sums of R rows by V packs of columns over all units.
template <class F, int R, int V>
[[gnu::noinline]] void coded_tile(const CodedTile& t) {
  constexpr Index lanes = F32::lanes;
  CodedSums<F, R, V> s;
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) s.sum[i][j] = splat(0.0F);
  }
  s.table = F::table ? with_bias(table_of(t.values)) : Raw{};
  const char* w = t.w;
  const char* x = t.x;
  const Index x_row = t.x_row, first = t.group;
  for (Index u = t.units; u > 0; --u) {
    if constexpr (F::grouped) {
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) {
        const Index column = (first + j / packs_of_group) * 16 + j % packs_of_group * lanes;
        s.scale[j] = halves_at<F::bfloat>(w + column * 2);
        if constexpr (F::minimum) s.least[j] = halves_at<F::bfloat>(w + (coded_panel + column) * 2);
      }
      w += F::head;
    }
    for (int p = 0; p < F::parts; ++p, w += F::part, x += left_block) {
      // The processor's own prefetching stops where a page ends.
      if constexpr (R <= 2 && !F::grouped) __builtin_prefetch(w + 4096, 0, 2);
      const char* const codes = w + first * line_of_group;
      const char* const beside = w + F::codes + first * F::beside;
      add_half<F, 0, R, V>(x, x_row, codes, beside, s);
      if constexpr (F::halves == 2) add_half<F, 1, R, V>(x, x_row, codes, beside, s);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) store(t.to + i * t.to_row + j * lanes, s.sum[i][j]);
  }
}

// --- one panel by some rows ---

#if defined(__AVX512F__)
inline constexpr int coded_rows = 6, coded_packs = 2;
#else
inline constexpr int coded_rows = 3, coded_packs = 2;
#endif

template <class F, int R, int V>
void coded_columns(CodedTile t, Index columns) {
  constexpr Index wide = V * F32::lanes;
  if constexpr (V > packs_of_group) {
    for (; columns >= wide; columns -= wide, t.group += wide / coded_group, t.to += wide) coded_tile<F, R, V>(t);
    if (columns > 0) coded_columns<F, R, V / 2>(t, columns);
  } else {  // parts of a group
    for (; columns > 0; columns -= coded_group, ++t.group, t.to += coded_group) coded_tile<F, R, packs_of_group>(t);
  }
}

template <class F, int R = coded_rows>
void pick_coded_rows(const CodedTile& t, Index rows, Index columns) {
  if constexpr (R > 0) {
    if (rows != R) return pick_coded_rows<F, R - 1>(t, rows, columns);
    constexpr int few = 4;  // so that chains of one row do not wait for each other
    constexpr int many = coded_packs > packs_of_group ? coded_packs : packs_of_group;
    coded_columns<F, R, (R <= 2 ? few : many)>(t, columns);
  }
}

// --- the whole product ---

inline constexpr Index joined_columns = 256;  // that results wait for on their way out

/// One row of results: a bias, and to memory or finish().
inline void hand_over_coded(const CodedArgs& a, float* sums, Index row, Index column, Index count) {
  float* const to = a.finish.run ? sums : a.c + row * a.c_row + column;
  const float* const bias = a.bias ? a.bias + column : nullptr;
  Index j = 0;
  if (bias || to != sums) {
    for (; j + F32::lanes <= count; j += F32::lanes) {
      const F32 y = load(sums + j);
      store(to + j, bias ? y + load(bias + j) : y);
    }
    for (; j < count; ++j) to[j] = bias ? sums[j] + bias[j] : sums[j];
  }
  if (a.finish.run) a.finish.run(a.finish.context, row, column, count, sums);
}

inline void join_rows(const CodedArgs& a, float* sums, const float* second, Index count) {
  const void* const in[] = {sums};
  if (a.activate) a.activate(in, sums, count);
  for (Index j = 0; j < count; j += F32::lanes) store(sums + j, load(sums + j) * load(second + j));  // whole groups
}

template <class F>
void multiply_coded(const CodedArgs& a) {
  constexpr Index most_bytes = 393216;  // of panels that rows pass over in turn
  alignas(64) float sums[coded_rows][joined_columns], second[coded_rows][joined_columns];
  const Index fits = most_bytes / (a.panel_bytes + 1);
  const Index together = (fits < 1 ? 1 : fits > 4 ? 4 : fits) * coded_panel;
  const auto* const x = static_cast<const char*>(a.x);
  for (Index column = 0; column < a.columns; column += together) {
    const Index count = a.columns - column < together ? a.columns - column : together;
    Index row = 0, left = a.rows;
    for (Index strips = (left + coded_rows - 1) / coded_rows; strips > 0; --strips) {
      const Index height = (left + strips - 1) / strips;
      const auto run = [&](const void* w, float* to) {
        const auto* panel = static_cast<const char*>(w) + column / coded_panel * a.panel_bytes;
        for (Index j = 0; j < count; j += coded_panel, panel += a.panel_bytes) {
          const Index rest = a.columns - column - j, groups = rest >= coded_panel ? 4 : (rest + 15) / 16;
          pick_coded_rows<F>({x + row * a.x_row, a.x_row, panel, 0, a.units, a.values, to + j, joined_columns}, height,
                             groups * coded_group);
        }
      };
      run(a.w, sums[0]);
      if (a.second) {
        run(a.second, second[0]);
        for (Index i = 0; i < height; ++i) join_rows(a, sums[i], second[i], count);
      }
      for (Index i = 0; i < height; ++i) hand_over_coded(a, sums[i], row + i, column, count);
      row += height;
      left -= height;
    }
  }
}

// --- in f32 ---

/// The signed values of quad q for one pack of columns; the table holds them as they are.
template <class F, int q>
inline __attribute__((always_inline)) Raw values_of(const char* p, Raw table) {
  const Raw u = codes_of<F, q>(p, table);
  if constexpr (F::table || F::shift < 0) return u;
  return sub8(u, splat_bytes(static_cast<char>(1 << (F::shift < 0 ? 0 : F::shift))));
}

/// Scale and minimum of a pack of columns for one half of a part, from those of the block.
template <class F, int half>
inline __attribute__((always_inline)) void scales_of(const char* beside, Index lane, F32 block_scale, F32 block_least,
                                                     F32& scale, F32& least) {
  const char* const at = beside + half * F::scales;
  if constexpr (F::grouped) {
    scale = small_integers(reinterpret_cast<const signed char*>(at) + lane) * block_scale;
    if constexpr (F::minimum)
      least = small_integers(reinterpret_cast<const signed char*>(at) + F::halves * F::scales + lane) * block_least;
  } else {
    scale = halves_at<F::bfloat>(at + lane * 2);
    if constexpr (F::minimum) least = halves_at<F::bfloat>(at + F::halves * F::scales + lane * 2);
  }
}

template <class F, int i>
inline __attribute__((always_inline)) F32 element_of(Raw values, F32 scale, F32 least) {
  const F32 y = to_floats(byte_of<i>(values)) * scale;
  if constexpr (F::minimum) return y + least;
  return y;
}

template <class F, int half, int n = 0>
inline __attribute__((always_inline)) void decode_quads(const char* codes, Raw table, F32 scale, F32 least, Index width,
                                                        float* to) {
  constexpr int count = 8 / F::halves;
  if constexpr (n < count) {
    constexpr int q = half * count + n;
    const Raw v = values_of<F, q>(codes, table);
    store(to + (q * 4 + 0) * width, element_of<F, 0>(v, scale, least));
    store(to + (q * 4 + 1) * width, element_of<F, 1>(v, scale, least));
    store(to + (q * 4 + 2) * width, element_of<F, 2>(v, scale, least));
    store(to + (q * 4 + 3) * width, element_of<F, 3>(v, scale, least));
    decode_quads<F, half, n + 1>(codes, table, scale, least, width, to);
  }
}

template <class F>
void decode_coded(const void* w, Index units, Index columns, const signed char* values, Index width, Index panel,
                  float* to) {
  const Index groups = (columns + coded_group - 1) / coded_group;
  const Raw table = F::table ? table_of(values) : Raw{};
  for (Index column = 0; column < groups * coded_group; column += F32::lanes) {
    const Index group = column / coded_group, lane = column % coded_group;
    const char* at = static_cast<const char*>(w);
    float* out = to + column / width * panel + column % width;
    for (Index u = 0; u < units; ++u) {
      F32 block_scale = splat(1.0F), block_least = splat(0.0F), scale, least = splat(0.0F);
      if constexpr (F::grouped) {
        block_scale = halves_at<F::bfloat>(at + column * 2);
        if constexpr (F::minimum) block_least = halves_at<F::bfloat>(at + (coded_panel + column) * 2);
        at += F::head;
      }
      for (int p = 0; p < F::parts; ++p, at += F::part, out += 32 * width) {
        const char* const codes = at + column * 4;
        const char* const beside = at + F::codes + group * F::beside;
        scales_of<F, 0>(beside, lane, block_scale, block_least, scale, least);
        decode_quads<F, 0>(codes, table, scale, least, width, out);
        if constexpr (F::halves == 2) {
          scales_of<F, 1>(beside, lane, block_scale, block_least, scale, least);
          decode_quads<F, 1>(codes, table, scale, least, width, out);
        }
      }
    }
  }
}

// Rows that are multiplied by elements as they are decoded: one chain over ascending inner index, as those of panels.
inline constexpr int dense_rows = 4, dense_packs = 4;

template <class F, int half, int R, int V, int n = 0>
inline __attribute__((always_inline)) void dense_quads(const float* x, Index x_row, const char* codes, Raw table,
                                                       const F32 (&scale)[V], const F32 (&least)[V], F32 (&sum)[R][V]) {
  constexpr int count = 8 / F::halves;
  if constexpr (n < count) {
    constexpr int q = half * count + n;
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) {
      const Raw v = values_of<F, q>(codes + j * F32::lanes * 4, table);
      const F32 y[] = {element_of<F, 0>(v, scale[j], least[j]), element_of<F, 1>(v, scale[j], least[j]),
                       element_of<F, 2>(v, scale[j], least[j]), element_of<F, 3>(v, scale[j], least[j])};
#pragma GCC unroll 4
      for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) sum[i][j] = fma(splat(x[i * x_row + q * 4 + k]), y[k], sum[i][j]);
      }
    }
    dense_quads<F, half, R, V, n + 1>(x, x_row, codes, table, scale, least, sum);
  }
}

// R rows of f32 by V packs of columns of a panel, from `column` on.
template <class F, int R, int V>
[[gnu::noinline]] void dense_tile(const float* x, Index x_row, const char* w, Index column, Index units, Raw table,
                                  float* to, Index to_row) {
  F32 sum[R][V], block_scale[V], block_least[V], scale[V], least[V];
  const auto each = [](auto f) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) f(j);
  };
  each([&](int j) __attribute__((always_inline)) {
    block_scale[j] = block_least[j] = scale[j] = least[j] = splat(0.0F);
    for (int i = 0; i < R; ++i) sum[i][j] = splat(0.0F);
  });
  for (; units > 0; --units) {
    if constexpr (F::grouped) {
      each([&](int j) __attribute__((always_inline)) {
        const Index at = column + j * F32::lanes;
        block_scale[j] = halves_at<F::bfloat>(w + at * 2);
        if constexpr (F::minimum) block_least[j] = halves_at<F::bfloat>(w + (coded_panel + at) * 2);
      });
      w += F::head;
    }
    for (int p = 0; p < F::parts; ++p, w += F::part, x += 32) {
      const auto beside = [&](int j) { return w + F::codes + (column + j * F32::lanes) / coded_group * F::beside; };
      const auto lane = [&](int j) { return (column + j * F32::lanes) % coded_group; };
      each([&](int j) __attribute__((always_inline)) {
        scales_of<F, 0>(beside(j), lane(j), block_scale[j], block_least[j], scale[j], least[j]);
      });
      dense_quads<F, 0, R, V>(x, x_row, w + column * 4, table, scale, least, sum);
      if constexpr (F::halves == 2) {
        each([&](int j) __attribute__((always_inline)) {
          scales_of<F, 1>(beside(j), lane(j), block_scale[j], block_least[j], scale[j], least[j]);
        });
        dense_quads<F, 1, R, V>(x, x_row, w + column * 4, table, scale, least, sum);
      }
    }
  }
  for (int i = 0; i < R; ++i) each([&](int j) { store(to + i * to_row + j * F32::lanes, sum[i][j]); });
}

template <class F, int R = dense_rows>
void pick_dense_rows(const float* x, Index x_row, const char* w, Index units, Raw table, Index rows, float* to) {
  if constexpr (R > 0) {
    if (rows != R) return pick_dense_rows<F, R - 1>(x, x_row, w, units, table, rows, to);
    constexpr int packs = R == 1 ? dense_packs : 2;
    for (Index column = 0; column < coded_panel; column += packs * F32::lanes)
      dense_tile<F, R, packs>(x, x_row, w, column, units, table, to + column, coded_panel);
  }
}

template <class F>
void multiply_dense(const CodedArgs& a) {
  alignas(64) float sums[dense_rows][coded_panel];
  const auto* const x = static_cast<const float*>(a.x);
  const Raw table = F::table ? table_of(a.values) : Raw{};
  const auto* panel = static_cast<const char*>(a.w);
  for (Index column = 0; column < a.columns; column += coded_panel, panel += a.panel_bytes) {
    for (Index row = 0; row < a.rows; row += dense_rows) {
      const Index height = a.rows - row < dense_rows ? a.rows - row : dense_rows;
      pick_dense_rows<F>(x + row * a.x_row, a.x_row, panel, a.units, table, height, sums[0]);
      for (Index i = 0; i < height; ++i)
        hand_over_coded(a, sums[i], row + i, column,
                        a.columns - column < coded_panel ? a.columns - column : coded_panel);
    }
  }
}

template <class F>
inline constexpr CodedKernel coded_kernel{
    .multiply = multiply_coded<F>, .multiply_dense = multiply_dense<F>, .decode = decode_coded<F>};

}  // namespace rlx::RLX_LEVEL
