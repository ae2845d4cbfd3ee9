// The product of a block of rows by panels, for any element type: loops, packing, and the tile of sums kept in
// registers. A type E says what an element is:
//
//   In       element of the operands in memory
//   Out      element of the result
//   Left     what one broadcast of the left operand reads: `step` elements
//   Right    what one lane of a panel holds: `step` elements
//   Sum      scalar of the sums; P is their pack
//   vectors  packs in the width of a panel; rows: largest number of rows of a tile
//   step     inner indices that one multiplication takes
//   copies_left    whether the left operand is brought into another form, unless it has in_place(row_stride, inner)
//   plain_right    whether a matrix with columns of unit stride can be read without packing
//   sums_are_results  whether Sum and Out are the same
//   left(in, inner_stride, n), right(in, inner_stride, n)   joins `step` elements, of which n exist
//   splat(const Left*), load(const Right*), multiply_add(x, y, sum), result(Sum)
// It may have in_place(row_stride, inner): whether rows are such that Left can be read where the elements are; else
// that is so unless copies_left. And it may have faster forms of: left_row(in, n, Left*) for n adjacent elements,
// round(sum, to, n) for a pack of which the first n results are wanted, results(sums, bias or null, to, n) and, where
// results are halves, wide_results(sums, bias, float* to, n) for n sums.
#pragma once

#include "ops/matmul/matmul.kernel.h"
#include "ops/matmul/matmul_packs.h"

namespace rlx::RLX_LEVEL {

inline Index least(Index a, Index b) { return a < b ? a : b; }
inline Index rounded_up(Index a, Index b) { return (a + b - 1) / b; }

/// Columns for which sums continue through the result, and stay in the cache meanwhile; whole panels of every type.
inline constexpr Index direct_columns = 256;

/// Sizes of blocks: rows of the left operand, steps over the inner index, columns of finished sums.
template <class E>
struct Blocks {
  static constexpr Index width = E::vectors * E::P::lanes;
  static constexpr Index rows = 72;
  static constexpr Index steps = 2048 / Index{sizeof(typename E::Left)};
  static constexpr Index columns = 512 / Index{sizeof(typename E::Sum)};
  static_assert(columns % width == 0);
};

/// One tile: addresses and strides in elements of their types.
template <class E>
struct Tile {
  const typename E::Left* a;
  Index a_row, a_step;
  const typename E::Right* b;
  Index b_step, b_panel;
  typename E::Sum* c;
  Index c_row;
  Index steps, columns;
  bool first;
  const typename E::Sum* bias;  // added behind the last step, or null
  /// What is wanted next in the cache, and how far each step goes through it.
  const char* ahead;
  Index ahead_step;
  /// Where the sums go behind the last step, rounded in registers; null: to c.
  typename E::Out* out = nullptr;
  Index out_row = 0;
  /// What they become once they stand in c, strip by strip; null: nothing yet. Place of the first sum.
  const MatmulArgs* to = nullptr;
  Index row = 0, column = 0;
};

template <class E>
void hand_over(const MatmulArgs& m, const typename E::Sum* sums, Index row, Index rows, Index column, Index columns);

/// Whether a bias is added to sums in registers, or to results on their way out.
template <class E>
inline constexpr bool adds_bias = E::sums_are_results && requires(typename E::P p) { p + p; };
template <class E>
inline constexpr bool takes_bias_late = requires { &E::wide_results; };

template <class E, int R, int V>
inline __attribute__((always_inline)) void add_bias(const Tile<E>& t, typename E::P (&sum)[R][V]) {
  using P = typename E::P;
#pragma GCC unroll 16
  for (int j = 0; j < V; ++j) {
    const Index n = t.columns - j * P::lanes;
    const auto* const from = t.bias + j * P::lanes;
    const P bias = n >= P::lanes ? load(from) : load_first<P>(from, n);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) sum[i][j] = sum[i][j] + bias;
  }
}

// sums[R][V packs] before the first step of a tile.
template <class E, int R, int V, bool whole>
inline __attribute__((always_inline)) void begin_sums(const Tile<E>& t, typename E::P (&sum)[R][V]) {
  using P = typename E::P;
  const typename E::Sum* c = t.c;
  if (t.first) {
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i, c += t.c_row) {
#pragma GCC unroll 16
      for (int j = 0; j < V; ++j) {
        // Results may have to come from memory before they are written.
        if constexpr (E::sums_are_results) __builtin_prefetch(c + j * P::lanes, 1);
        sum[i][j] = P{};
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, c += t.c_row) {
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) {
      const Index n = t.columns - j * P::lanes;
      sum[i][j] = whole || n >= P::lanes ? load(c + j * P::lanes) : load_first<P>(c + j * P::lanes, n);
    }
  }
}

// sums[R][V packs] behind the last step of a tile.
template <class E, int R, int V, bool whole>
inline __attribute__((always_inline)) void end_sums(const Tile<E>& t, const typename E::P (&sum)[R][V]) {
  using P = typename E::P;
  typename E::Sum* c = t.c;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, c += t.c_row) {
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) {
      const Index n = t.columns - j * P::lanes;
      if (whole || n >= P::lanes) {
        store(c + j * P::lanes, sum[i][j]);
      } else {
        store_first(c + j * P::lanes, sum[i][j], n);
      }
    }
  }
}

template <class E>
inline constexpr bool rounds = requires { &E::round; };

// sums[R][V packs] as results.
template <class E, int R, int V>
inline __attribute__((always_inline)) void round_sums(const Tile<E>& t, const typename E::P (&sum)[R][V]) {
  typename E::Out* out = t.out;
#pragma GCC unroll 16
  for (int i = 0; i < R; ++i, out += t.out_row) {
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) E::round(sum[i][j], out + j * E::P::lanes, t.columns - j * E::P::lanes);
  }
}

// sums[R][V packs] = (first ? 0 : c) + sum over steps [+ bias]; packs beyond a panel's width read the next panels.
template <class E, int R, int V>
[[gnu::noinline]] void run_tile(const Tile<E>& t) {
  using P = typename E::P;
  constexpr Index lanes = P::lanes;
  P sum[R][V];
  const bool whole = t.columns >= V * lanes;
  whole ? begin_sums<E, R, V, true>(t, sum) : begin_sums<E, R, V, false>(t, sum);
  const typename E::Left* a = t.a;
  const typename E::Right* b = t.b;
  const char* ahead = t.ahead;
  const Index ahead_step = t.ahead_step;
  const Index a_row = t.a_row, a_step = t.a_step, b_step = t.b_step, b_panel = t.b_panel;
  // Two addresses and one stride reach all rows: more would not stay in registers.
  const typename E::Left* a_low = a + 3 * a_row;
  for (Index k = t.steps; k > 0; --k, a += a_step, a_low += a_step, b += b_step) {
    __builtin_prefetch(ahead, 0, 2);
    ahead += ahead_step;
    decltype(E::load(b)) y[V];
#pragma GCC unroll 16
    for (int j = 0; j < V; ++j) y[j] = E::load(b + j / E::vectors * b_panel + j % E::vectors * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < R; ++i) {
      const auto x = E::splat(i < 3 ? a + i * a_row : a_low + (i - 3) * a_row);
#pragma GCC unroll 16
      for (int j = 0; j < V; ++j) sum[i][j] = E::multiply_add(x, y[j], sum[i][j]);
    }
  }
  if constexpr (adds_bias<E>) {
    if (t.bias) add_bias<E, R, V>(t, sum);
  }
  if constexpr (rounds<E>) {
    if (t.out) return round_sums<E, R, V>(t, sum);
  }
  whole ? end_sums<E, R, V, true>(t, sum) : end_sums<E, R, V, false>(t, sum);
}

/// Panels that a tile of so many rows takes abreast: few rows alone would wait for the latency of their chains.
template <class E>
constexpr int abreast(int rows) {
  return rows == 1 ? 4 : rows == 2 || (rows == 3 && E::vectors == 2) ? 2 : 1;
}

template <class E, int R, int V>
void pick_vectors(const Tile<E>& t, Index vectors) {
  if constexpr (V > 0) {
    if (vectors == V) return run_tile<E, R, V>(t);
    pick_vectors<E, R, V - 1>(t, vectors);
  }
}

// All columns of t, for R rows; leaves t as it was. A tile is no value here: a copy would wait until its parts have
// left the store queue, and so for the sums of the tile before.
template <class E, int R>
void run_columns(Tile<E>& t) {
  constexpr Index width = Blocks<E>::width, together = abreast<E>(R);
  if (t.columns <= width) return pick_vectors<E, R, E::vectors>(t, rounded_up(t.columns, E::P::lanes));
  const auto* const b = t.b;
  auto* const c = t.c;
  const auto* const bias = t.bias;
  auto* const out = t.out;
  const Index columns = t.columns;
  Index j = 0;
  const auto next = [&t](Index by) {
    t.b += by / width * t.b_panel;
    t.c += by;
    if (t.out) t.out += by;
    if (t.bias) t.bias += by;
  };
  if constexpr (together > 1) {
    t.columns = together * width;
    for (; j + together * width <= columns; j += together * width) {
      run_tile<E, R, static_cast<int>(together * E::vectors)>(t);
      next(together * width);
    }
  }
  for (; j < columns; j += width) {
    t.columns = least(width, columns - j);
    pick_vectors<E, R, E::vectors>(t, rounded_up(t.columns, E::P::lanes));
    next(width);
  }
  t.b = b, t.c = c, t.bias = bias, t.out = out, t.columns = columns;
}

template <class E, int R>
void pick_rows(Tile<E>& t, Index rows) {
  if constexpr (R > 0) {
    if (rows == R) return run_columns<E, R>(t);
    pick_rows<E, R - 1>(t, rows);
  }
}

/// Columns of one panel (or of several, for few rows) by all rows, in strips of nearly equal height; leaves t as it
/// was.
template <class E>
void run_strips(Tile<E>& t, Index rows) {
  const auto* const a = t.a;
  auto* const c = t.c;
  const char* const ahead = t.ahead;
  auto* const out = t.out;
  const Index row = t.row;
  for (Index strips = rounded_up(rows, E::rows); strips > 0; --strips) {
    const Index height = rounded_up(rows, strips);
    pick_rows<E, E::rows>(t, height);
    if constexpr (!E::sums_are_results) {
      if (t.to) hand_over<E>(*t.to, t.c, t.row, height, t.column, t.columns);
      t.row += height;
      if (t.out) t.out += height * t.out_row;
    }
    t.a += height * t.a_row;
    t.c += height * t.c_row;
    t.ahead += t.steps * t.ahead_step;
    rows -= height;
  }
  t.a = a, t.c = c, t.ahead = ahead, t.out = out, t.row = row;
}

// --- packing ---

// One step of a whole panel.
template <class E>
void right_line(const typename E::In* __restrict b, Index b_inner, Index inner, typename E::Right* __restrict to) {
  constexpr Index width = Blocks<E>::width;
  if constexpr (E::plain_right) {
    __builtin_memcpy(to, b, width * sizeof *to);
  } else if (inner >= E::step) {
    for (Index j = 0; j < width; ++j) to[j] = E::right(b + j, b_inner, E::step);
  } else {
    for (Index j = 0; j < width; ++j) to[j] = E::right(b + j, b_inner, inner);
  }
}

/// Steps [0, steps) of up to `columns` columns into a panel; `inner` elements exist from here on.
template <class E>
void pack_panel(const typename E::In* b, Index b_inner, Index b_column, Index inner, Index steps, Index columns,
                typename E::Right* to) {
  constexpr Index width = Blocks<E>::width;
  if (columns < width) __builtin_memset(to, 0, static_cast<Bits64>(steps * width) * sizeof *to);
  if (b_column == 1) {
    for (Index k = 0; k < steps; ++k, b += E::step * b_inner, to += width, inner -= E::step) {
      if (columns == width) {
        right_line<E>(b, b_inner, inner, to);
      } else {
        for (Index j = 0; j < columns; ++j) to[j] = E::right(b + j, b_inner, inner);
      }
    }
    return;
  }
  // Squares, so that both sides of the copy stay in the cache.
  constexpr Index square = 16;
  for (Index k0 = 0; k0 < steps; k0 += square) {
    for (Index j0 = 0; j0 < columns; j0 += square) {
      for (Index j = j0; j < least(columns, j0 + square); ++j) {
        for (Index k = k0; k < least(steps, k0 + square); ++k)
          to[k * width + j] = E::right(b + j * b_column + k * E::step * b_inner, b_inner, inner - k * E::step);
      }
    }
  }
}

template <class E>
void pack(const void* b, Index b_inner, Index b_column, Index inner, Index columns, void* panels) {
  constexpr Index width = Blocks<E>::width;
  const auto* from = static_cast<const typename E::In*>(b);
  auto* to = static_cast<typename E::Right*>(panels);
  const Index steps = rounded_up(inner, E::step);
  for (Index j = 0; j < columns; j += width, to += steps * width)
    pack_panel<E>(from + j * b_column, b_inner, b_column, inner, steps, least(width, columns - j), to);
}

/// A block of the left operand, as [steps][rows] where rows have unit stride, else as [rows][steps].
template <class E>
void copy_left(const typename E::In* a, Index a_row, Index a_inner, Index rows, Index inner, Index steps,
               typename E::Left* to) {
  if (a_row == 1) {
    for (Index k = 0; k < steps; ++k) {
      for (Index i = 0; i < rows; ++i)
        to[k * Blocks<E>::rows + i] = E::left(a + i + k * E::step * a_inner, a_inner, inner - k * E::step);
    }
    return;
  }
  for (Index i = 0; i < rows; ++i, a += a_row, to += Blocks<E>::steps) {
    if constexpr (requires { E::left_row(a, inner, to); }) {
      if (a_inner == 1) {
        E::left_row(a, least(inner, steps * E::step), to);
        continue;
      }
    }
    for (Index k = 0; k < steps; ++k) to[k] = E::left(a + k * E::step * a_inner, a_inner, inner - k * E::step);
  }
}

// --- the whole product ---

/// One row of results of type T, which write(T*) makes: to memory, or to finish().
template <class E, class T, class F>
void hand_over_row(const MatmulArgs& m, Index row, Index column, Index columns, F write) {
  alignas(64) T values[Blocks<E>::columns];
  write(m.finish.run ? values : static_cast<T*>(m.c) + row * m.c_row + column);
  if (m.finish.run) m.finish.run(m.finish.context, row, column, columns, values);
}

/// Finished sums of a block on their way out, `columns` of them a row.
template <class E>
void hand_over(const MatmulArgs& m, const typename E::Sum* sums, Index row, Index rows, Index column, Index columns) {
  using Out = typename E::Out;
  for (Index i = 0; i < rows; ++i, sums += Blocks<E>::columns) {
    if constexpr (E::sums_are_results) {  // finish() wants them, or they would not be here
      m.finish.run(m.finish.context, row + i, column, columns, sums);
    } else if constexpr (takes_bias_late<E>) {
      const float* const bias = m.bias.row ? static_cast<const float*>(m.bias.row) + column : nullptr;
      if (bias && !m.bias.rounds) {
        const auto write = [&](float* to) { E::wide_results(sums, bias, to, columns); };
        hand_over_row<E, float>(m, row + i, column, columns, write);
      } else {
        const auto write = [&](Out* to) { E::results(sums, bias, to, columns); };
        hand_over_row<E, Out>(m, row + i, column, columns, write);
      }
    } else {
      const auto write = [&](Out* to) {
        for (Index j = 0; j < columns; ++j) to[j] = E::result(sums[j]);
      };
      hand_over_row<E, Out>(m, row + i, column, columns, write);
    }
  }
}

/// One call of multiply: what its loops share.
template <class E>
class Product {
  using B = Blocks<E>;
  using In = typename E::In;
  using Sum = typename E::Sum;

 public:
  explicit Product(const MatmulArgs& args) : m_(args) {}

  void run() {
    // With few rows a panel is read once or twice: packing it first would cost more than it saves.
    plain_ = !m_.packed && E::plain_right && m_.b_column == 1 && m_.rows <= 2 * E::rows;
    copied_ = m_.a_inner != 1 || copies_rows();
    through_block_ = m_.finish.run || !E::sums_are_results;
    const Index height = copied_ || through_block_ ? B::rows : m_.rows;
    const Index group = through_block_ ? Index{B::columns} : direct_columns;
    for (Index j = 0; j < m_.columns; j += group) {
      const Index columns = least(group, m_.columns - j);
      for (Index i = 0; i < m_.rows; i += height) run_block(i, least(height, m_.rows - i), j, columns);
    }
  }

 private:
  void run_block(Index row, Index rows, Index column, Index columns) {
    const Index steps = rounded_up(m_.inner, E::step);
    Tile<E> t{};
    if (through_block_) {
      t.c = sums_;
      t.c_row = B::columns;
    } else {
      if constexpr (E::sums_are_results) t.c = static_cast<Sum*>(m_.c) + row * m_.c_row + column;
      t.c_row = m_.c_row;
    }
    Index k = 0;
    do {
      t.first = k == 0;
      t.steps = least(B::steps, steps - k);
      if constexpr (adds_bias<E>) {
        if (m_.bias.row && k + t.steps == steps) t.bias = static_cast<const Sum*>(m_.bias.row) + column;
      }
      if (by_strips() && k + t.steps == steps) hand_over_strips(t, row, column);
      take_left(t, row, rows, k);
      run_panels(t, rows, k, steps, column, columns);
      k += t.steps;
    } while (k < steps);
    if (through_block_ && !by_strips()) hand_over<E>(m_, sums_, row, rows, column, columns);
  }

  // Sums that only have to be rounded leave while they are in the nearest cache.
  bool by_strips() const { return !E::sums_are_results && !m_.finish.run; }

  void hand_over_strips(Tile<E>& t, Index row, Index column) const {
    if (rounds<E> && !m_.bias.row) {
      t.out = static_cast<typename E::Out*>(m_.c) + row * m_.c_row + column;
      t.out_row = m_.c_row;
    } else {
      t.to = &m_, t.row = row, t.column = column;
    }
  }

  // Whether rows whose elements are adjacent are brought into another form.
  bool copies_rows() const {
    if constexpr (requires { E::in_place(m_.a_row, m_.inner); }) return !E::in_place(m_.a_row, m_.inner);
    return E::copies_left;
  }

  void take_left(Tile<E>& t, Index row, Index rows, Index k) {
    const In* const a = static_cast<const In*>(m_.a) + row * m_.a_row + k * E::step * m_.a_inner;
    if (copied_) {
      copy_left<E>(a, m_.a_row, m_.a_inner, rows, m_.inner - k * E::step, t.steps, left_);
      t.a = left_;
      t.a_row = m_.a_row == 1 ? Index{1} : Index{B::steps};
      t.a_step = m_.a_row == 1 ? Index{B::rows} : Index{1};
    } else {
      t.a = reinterpret_cast<const typename E::Left*>(a);
      t.a_row = m_.a_row / E::step;
      t.a_step = 1;
    }
  }

  void run_panels(Tile<E> t, Index rows, Index k, Index steps, Index column, Index columns) {
    if (m_.packed) {
      t.b = static_cast<const typename E::Right*>(m_.b) + (column / B::width * steps + k) * B::width;
      t.b_step = B::width;
      t.b_panel = steps * B::width;
      return run_wide(t, rows, columns);
    }
    const In* b = static_cast<const In*>(m_.b) + k * E::step * m_.b_inner + column * m_.b_column;
    if constexpr (E::plain_right) {
      if (plain_) {
        t.b = b;
        t.b_step = m_.b_inner;
        t.b_panel = B::width;
        const Index whole = columns / B::width * B::width;
        run_wide(t, rows, whole);
        t.c += whole;
        t.column += whole;
        if (t.out) t.out += whole;
        if (t.bias) t.bias += whole;
        b += whole;
        columns -= whole;
      }
    }
    t.b_step = B::width;
    t.b = right_;
    for (; columns > 0; columns -= B::width, b += B::width * m_.b_column) {
      pack_panel<E>(b, m_.b_inner, m_.b_column, m_.inner - k * E::step, t.steps, least(B::width, columns), right_);
      t.columns = least(B::width, columns);
      t.ahead = reinterpret_cast<const char*>(right_);
      run_strips(t, rows);
      t.c += B::width;
      t.column += B::width;
      if (t.out) t.out += B::width;
      if (t.bias) t.bias += B::width;
    }
  }

  // Few rows take panels abreast; many sweep one panel after the other, which then stays in the cache.
  static void run_wide(Tile<E> t, Index rows, Index columns) {
    const Index group = rows <= E::rows ? columns : Index{B::width};
    t.ahead_step = least(64, B::width * Index{sizeof(typename E::Right)} / rounded_up(rows, E::rows));
    for (; columns > 0; columns -= group, t.b += t.b_panel) {
      t.columns = least(group, columns);
      t.ahead = reinterpret_cast<const char*>(t.b + t.b_panel);
      run_strips(t, rows);
      t.c += group;
      t.column += group;
      if (t.out) t.out += group;
      if (t.bias) t.bias += group;
    }
  }

  const MatmulArgs& m_;
  bool plain_ = false, copied_ = false, through_block_ = false;
  alignas(64) typename E::Left left_[B::rows * B::steps];
  alignas(64) typename E::Right right_[B::steps * B::width];
  alignas(64) Sum sums_[B::rows * B::columns];
};

template <class E>
void multiply(const MatmulArgs& m) {
  if (m.rows > 0 && m.columns > 0) Product<E>(m).run();
}

template <class E>
inline constexpr MatmulKernel kernel_of{.width = Blocks<E>::width,
                                        .step = E::step,
                                        .bytes = sizeof(typename E::Right),
                                        .pack = pack<E>,
                                        .multiply = multiply<E>,
                                        .takes_bias = adds_bias<E> || takes_bias_late<E>};

}  // namespace rlx::RLX_LEVEL
