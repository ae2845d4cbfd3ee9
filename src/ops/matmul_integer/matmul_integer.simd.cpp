// Products of 8-bit integers, compiled once per level. With VNNI, one instruction adds four products of an unsigned and
// a signed byte to a sum; an operand of the other sign is moved by 128, and the sums of the columns, which panels hold,
// take back what that adds. Elsewhere elements are widened to 16 bits, whose products are summed in pairs without loss.
#include "ops/matmul_integer/matmul_integer.kernel.h"
#include "ops/matmul_integer/matmul_integer_tile.h"

namespace rlx::RLX_LEVEL {

namespace {

#if defined(__AVX512VNNI__)

// Four adjacent inner indices. The unsigned operand of the instruction is `a` when b is signed, else b.
template <bool b_signed>
struct Codes : FloatTile {
  static constexpr Index step = 4;
  // What the bits of `a` are changed by, so that it is signed where b is not.
  static Bits32 flip(bool a_signed) { return a_signed == b_signed ? 0x80808080u : 0; }
  // What a unit of a column's sum adds to the sums that the instruction makes.
  static Bits32 correction(bool a_signed) {
    return a_signed != b_signed ? 0 : b_signed ? static_cast<Bits32>(-128) : Bits32{128};
  }
  static Bits32 code(Bits8 x, bool) { return x; }
  static Words multiply_add(Words x, Words y, Words sum) {
    const auto s = reinterpret_cast<__m512i>(sum.v), p = reinterpret_cast<__m512i>(x.v),
               q = reinterpret_cast<__m512i>(y.v);
    return {reinterpret_cast<Words::Vector>(b_signed ? _mm512_dpbusd_epi32(s, p, q) : _mm512_dpbusd_epi32(s, q, p))};
  }
};

#else

// Two adjacent inner indices, as 16-bit integers.
template <bool b_signed>
struct Codes : FloatTile {
  static constexpr Index step = 2;
  static Bits32 flip(bool) { return 0; }
  static Bits32 correction(bool) { return 0; }
  static Bits32 code(Bits8 x, bool has_sign) { return has_sign && x > 127 ? Bits32{x} | 0xFF00u : Bits32{x}; }
  static Words multiply_add(Words x, Words y, Words sum) {
#if defined(__AVX512F__)
    const auto products = _mm512_madd_epi16(reinterpret_cast<__m512i>(x.v), reinterpret_cast<__m512i>(y.v));
#elif defined(__AVX2__)
    const auto products = _mm256_madd_epi16(reinterpret_cast<__m256i>(x.v), reinterpret_cast<__m256i>(y.v));
#else
    const auto products = _mm_madd_epi16(reinterpret_cast<__m128i>(x.v), reinterpret_cast<__m128i>(y.v));
#endif
    return {sum.v + reinterpret_cast<Words::Vector>(products)};
  }
};

#endif

constexpr Index step = Codes<true>::step, width = FloatTile::vectors * Words::lanes;
// Bits of an element in a step.
constexpr int element_bits = 32 / static_cast<int>(step);
// Sizes of blocks: rows and steps of the left operand, columns of sums.
constexpr Index block_rows = 72, block_steps = 384, block_columns = 512;
// Rows of sums lie so that they do not meet in the same lines of the cache.
constexpr Index sums_row = block_columns + 16;
static_assert(block_columns % width == 0);

// `n` of the elements of a step, at this stride.
template <class C>
inline Bits32 join(const Bits8* x, Index stride, Index n, bool has_sign) {
  Bits32 all = 0;
  for (Index i = 0; i < (n < step ? n : step); ++i) all |= C::code(x[i * stride], has_sign) << (i * element_bits);
  return all;
}

// A pack of steps of adjacent elements.
inline Words joined(const Bits8* x, bool has_sign) {
  if constexpr (step == 4) {
    Words all;
    __builtin_memcpy(&all.v, x, sizeof all.v);
    return all;
  }
#if defined(__AVX512F__)
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  return {reinterpret_cast<Words::Vector>(has_sign ? _mm512_cvtepi8_epi16(b) : _mm512_cvtepu8_epi16(b))};
#elif defined(__AVX2__)
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  return {reinterpret_cast<Words::Vector>(has_sign ? _mm256_cvtepi8_epi16(b) : _mm256_cvtepu8_epi16(b))};
#else
  const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
  return {reinterpret_cast<Words::Vector>(has_sign ? _mm_cvtepi8_epi16(b) : _mm_cvtepu8_epi16(b))};
#endif
}

// --- the right operand ---

inline Bits32 number(Bits8 x, bool has_sign) {
  return has_sign ? static_cast<Bits32>(static_cast<signed char>(x)) : Bits32{x};
}

// One step of a whole panel whose columns have unit stride; the sums of the columns grow.
template <class C, bool has_sign>
void right_line(const Bits8* __restrict b, Index b_inner, Bits32* __restrict to, Bits32* __restrict sums) {
  for (Index j = 0; j < width; ++j) {
    Bits32 all = 0, sum = 0;
#pragma GCC unroll 4
    for (Index i = 0; i < step; ++i) {
      const Bits8 x = b[i * b_inner + j];
      all |= C::code(x, has_sign) << (i * element_bits);
      sum += number(x, has_sign);
    }
    to[j] = all;
    sums[j] += sum;
  }
}

// Steps [0, steps) of up to `width` columns; `inner` elements exist from here on. Adds to the sums of the columns.
template <bool has_sign>
void pack_panel(const Bits8* b, Index b_inner, Index b_column, Index inner, Index steps, Index columns, Bits32* to,
                Bits32* sums) {
  using C = Codes<has_sign>;
  if (columns < width) __builtin_memset(to, 0, static_cast<Bits64>(steps * width) * sizeof *to);
  for (Index k = 0; k < steps; ++k, b += step * b_inner, to += width, inner -= step) {
    if (columns == width && b_column == 1 && inner >= step) {
      right_line<C, has_sign>(b, b_inner, to, sums);
      continue;
    }
    for (Index j = 0; j < columns; ++j) {
      to[j] = join<C>(b + j * b_column, b_inner, inner, has_sign);
      for (Index i = 0; i < least(inner, step); ++i) sums[j] += number(b[j * b_column + i * b_inner], has_sign);
    }
  }
}

long panel_bytes(long inner) { return (rounded_up(inner, step) + 1) * width * 4; }

template <bool has_sign>
void pack_all(const Bits8* b, Index b_inner, Index b_column, Index inner, Index columns, Bits32* to) {
  const Index steps = rounded_up(inner, step);
  for (Index j = 0; j < columns; j += width, to += (steps + 1) * width) {
    __builtin_memset(to + steps * width, 0, width * sizeof *to);
    pack_panel<has_sign>(b + j * b_column, b_inner, b_column, inner, steps, least(width, columns - j), to,
                         to + steps * width);
  }
}

void pack(const void* b, bool b_signed, long b_inner, long b_column, long inner, long columns, void* panels) {
  (b_signed ? pack_all<true> : pack_all<false>)(static_cast<const Bits8*>(b), b_inner, b_column, inner, columns,
                                                static_cast<Bits32*>(panels));
}

// --- the whole product ---

template <bool b_signed>
class IntegerProduct {
  using E = Codes<b_signed>;

 public:
  explicit IntegerProduct(const IntegerArgs& args) : m_(args) {}

  void run() {
    steps_ = rounded_up(m_.inner, step);
    for (Index i = 0; i < m_.rows; i += block_rows) {
      const Index rows = least(block_rows, m_.rows - i);
      take_row_factors(i, rows);
      if (steps_ <= block_steps && !in_place()) take_left(i, rows, 0, steps_);
      for (Index j = 0; j < m_.columns; j += block_columns) run_block(i, rows, j, least(block_columns, m_.columns - j));
    }
  }

 private:
  void run_block(Index row, Index rows, Index column, Index columns) {
    take_column_sums(column, columns);
    IntegerTile t{.a = left_,
                  .sums = sums_,
                  .sums_row = sums_row,
                  .to = sums_,
                  .to_row = sums_row,
                  .column_sums = column_sums_,
                  .row_factors = row_factors_,
                  .corrected = corrected_};
    if (!m_.finish.run) {
      t.to = static_cast<Bits32*>(m_.c) + row * m_.c_row + column;
      t.to_row = m_.c_row;
    }
    if (m_.scales.row) {
      t.row = m_.scales.row + row;
      t.column = m_.scales.column + column;
      if (m_.scales.bias) t.bias = m_.scales.bias + column;
    }
    Index k = 0;
    do {
      t.steps = least(block_steps, steps_ - k);
      t.first = k == 0;
      t.last = k + t.steps == steps_;
      if (in_place()) {
        t.a = reinterpret_cast<const Bits32*>(static_cast<const Bits8*>(m_.a) + row * m_.a_row) + k;
        t.a_row = m_.a_row / step;
      } else {
        t.a_row = t.steps;
        if (steps_ > block_steps) take_left(row, rows, k, t.steps);
      }
      run_panels(t, rows, k, column, columns);
      k += t.steps;
    } while (k < steps_);
    if (!m_.finish.run) return;
    for (Index i = 0; i < rows; ++i) m_.finish.run(m_.finish.context, row + i, column, columns, sums_ + i * sums_row);
  }

  // Packed panels hold them; otherwise packing adds them up.
  void take_column_sums(Index column, Index columns) {
    if (!m_.packed) return static_cast<void>(__builtin_memset(column_sums_, 0, sizeof column_sums_));
    const Index panel = (steps_ + 1) * width;
    const auto* b = static_cast<const Bits32*>(m_.b) + (column / width + 1) * panel - width;
    for (Index j = 0; j < columns; j += width, b += panel) {
      __builtin_memcpy(column_sums_ + j, b, width * sizeof *b);
    }
  }
  // Moving an operand by 128 and the zero points of rows change sums by a multiple of the column's sum.
  void take_row_factors(Index row, Index rows) {
    const auto* const zeros = static_cast<const Bits8*>(m_.row_zeros);
    corrected_ = false;
    for (Index i = 0; i < rows; ++i) {
      row_factors_[i] = E::correction(m_.a_signed) - (zeros ? number(zeros[row + i], m_.a_signed) : 0);
      corrected_ = corrected_ || row_factors_[i] != 0;
    }
  }

  // Whether the left operand is read where it lies, four elements a word, wherever they lie.
  bool in_place() const {
    return step == 4 && m_.a_inner == 1 && E::flip(m_.a_signed) == 0 && m_.a_row % step == 0 && m_.inner % step == 0;
  }

  void take_left(Index row, Index rows, Index k, Index steps) {
    const Bits8* a = static_cast<const Bits8*>(m_.a) + row * m_.a_row + k * step * m_.a_inner;
    const Bits32 flip = E::flip(m_.a_signed);
    const Index inner = least(steps * step, m_.inner - k * step), whole = inner / step;
    Bits32* to = left_;
    for (Index i = 0; i < rows; ++i, a += m_.a_row, to += steps) {
      if (m_.a_inner == 1) {
        whole_steps(a, whole, flip, to);
      } else {
        for (Index s = 0; s < whole; ++s)
          to[s] = join<E>(a + s * step * m_.a_inner, m_.a_inner, step, m_.a_signed) ^ flip;
      }
      if (whole < steps)
        to[whole] = join<E>(a + whole * step * m_.a_inner, m_.a_inner, inner - whole * step, m_.a_signed) ^ flip;
    }
  }

  void whole_steps(const Bits8* a, Index steps, Bits32 flip, Bits32* to) const {
    Index s = 0;
    for (; s + Words::lanes <= steps; s += Words::lanes)
      store(to + s, Words{joined(a + s * step, m_.a_signed).v ^ splat_bits(flip).v});
    for (; s < steps; ++s) to[s] = join<E>(a + s * step, 1, step, m_.a_signed) ^ flip;
  }

  void run_panels(IntegerTile t, Index rows, Index k, Index column, Index columns) {
    if (m_.packed) {
      t.b_panel = (steps_ + 1) * width;
      t.b = static_cast<const Bits32*>(m_.b) + column / width * t.b_panel + k * width;
      // Few rows take panels abreast; many sweep one panel after the other, which then stays in the cache.
      const Index group = rows <= E::rows ? columns : width;
      t.ahead_step = least(64, width * 4 / rounded_up(rows, E::rows));
      for (; columns > 0; columns -= group) {
        t.columns = least(group, columns);
        t.ahead = reinterpret_cast<const char*>(t.b + t.b_panel);
        run_integer_strips<E>(t, rows);
        move_columns(t, group, width);
      }
      return;
    }
    const Bits8* b = static_cast<const Bits8*>(m_.b) + k * step * m_.b_inner + column * m_.b_column;
    for (Index j = 0; j < columns; j += width, b += width * m_.b_column) {
      t.columns = least(width, columns - j);
      pack_panel<b_signed>(b, m_.b_inner, m_.b_column, m_.inner - k * step, t.steps, t.columns, right_,
                           column_sums_ + j);
      t.b = right_;
      t.ahead = reinterpret_cast<const char*>(right_);
      run_integer_strips<E>(t, rows);
      move_columns(t, width, width);
    }
  }

  const IntegerArgs& m_;
  Index steps_ = 0;
  alignas(64) Bits32 left_[block_rows * block_steps];
  alignas(64) Bits32 right_[block_steps * width];
  alignas(64) Bits32 sums_[block_rows * sums_row];
  alignas(64) Bits32 column_sums_[block_columns];
  Bits32 row_factors_[block_rows];
  bool corrected_ = false;
};

void multiply(const IntegerArgs& m) {
  if (m.rows <= 0 || m.columns <= 0) return;
  if (m.b_signed) return IntegerProduct<true>(m).run();
  IntegerProduct<false>(m).run();
}

}  // namespace

const IntegerKernels integer_kernels{.width = width, .panel_bytes = panel_bytes, .pack = pack, .multiply = multiply};

}  // namespace rlx::RLX_LEVEL
