// Products of 8-bit integers, compiled once per level. With VNNI, one instruction adds four products of an unsigned and
// a signed byte to a sum; an operand of the other sign is moved by 128, and the sums of the columns, which panels hold,
// take back what that adds. Elsewhere elements are widened to 16 bits, whose products are summed in pairs without loss.
#include "ops/matmul/matmul_tile.h"
#include "ops/matmul_integer/matmul_integer.kernel.h"

namespace rlx::RLX_LEVEL {

namespace {

using Words = Wrapping<Bits32>;

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

// As matmul_tile.h wants it.
template <bool b_signed>
struct Element : Codes<b_signed> {
  using P = Words;
  using Left = Bits32;
  using Right = Bits32;
  using Sum = Bits32;
  static Words splat(const Bits32* a) { return splat_bits(*a); }
  static Words load(const Bits32* b) { return load_bits(b); }
};

constexpr Index step = Codes<true>::step, width = FloatTile::vectors * Words::lanes;
// Bits of an element in a step.
constexpr int element_bits = 32 / static_cast<int>(step);
// Sizes of blocks: rows and steps of the left operand, columns of sums.
constexpr Index block_rows = 72, block_steps = 384, block_columns = 256;
static_assert(block_columns % width == 0);

// `n` of the elements of a step, at this stride.
template <class C>
inline Bits32 join(const Bits8* x, Index stride, Index n, bool has_sign) {
  Bits32 all = 0;
  for (Index i = 0; i < (n < step ? n : step); ++i) all |= C::code(x[i * stride], has_sign) << (i * element_bits);
  return all;
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

// f32(s) for i32 s.
inline F32 to_f32(Words s) {
#if defined(__AVX512F__)
  return {_mm512_cvtepi32_ps(reinterpret_cast<__m512i>(s.v))};
#elif defined(__AVX2__)
  return {_mm256_cvtepi32_ps(reinterpret_cast<__m256i>(s.v))};
#else
  return {_mm_cvtepi32_ps(reinterpret_cast<__m128i>(s.v))};
#endif
}

template <bool b_signed>
class IntegerProduct {
  using E = Element<b_signed>;

 public:
  explicit IntegerProduct(const IntegerArgs& args) : m_(args) {}

  void run() {
    for (Index j = 0; j < m_.columns; j += block_columns) {
      const Index columns = least(block_columns, m_.columns - j);
      for (Index i = 0; i < m_.rows; i += block_rows) run_block(i, least(block_rows, m_.rows - i), j, columns);
    }
  }

 private:
  void run_block(Index row, Index rows, Index column, Index columns) {
    const Index steps = rounded_up(m_.inner, step);
    Tile<E> t{};
    t.c = sums_;
    t.c_row = block_columns;
    take_column_sums(steps, column, columns);
    Index k = 0;
    do {
      t.first = k == 0;
      t.steps = least(block_steps, steps - k);
      take_left(row, rows, k, t.steps);
      t.a = left_;
      t.a_row = t.steps;
      t.a_step = 1;
      run_panels(t, rows, k, steps, column, columns);
      k += t.steps;
    } while (k < steps);
    hand_over(row, rows, column, columns);
  }

  // Packed panels hold them; otherwise packing adds them up.
  void take_column_sums(Index steps, Index column, Index columns) {
    if (!m_.packed) return static_cast<void>(__builtin_memset(column_sums_, 0, sizeof column_sums_));
    const auto* b = static_cast<const Bits32*>(m_.b) + (column / width + 1) * (steps + 1) * width - width;
    for (Index j = 0; j < columns; j += width, b += (steps + 1) * width)
      __builtin_memcpy(column_sums_ + j, b, width * sizeof *b);
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

  void whole_steps(const Bits8* __restrict a, Index steps, Bits32 flip, Bits32* __restrict to) const {
    if constexpr (step == 4) {
      for (Index s = 0; s < steps; ++s) {
        Bits32 all;
        __builtin_memcpy(&all, a + s * 4, 4);
        to[s] = all ^ flip;
      }
    } else if (m_.a_signed) {
      for (Index s = 0; s < steps; ++s) to[s] = E::code(a[2 * s], true) | E::code(a[2 * s + 1], true) << 16;
    } else {
      for (Index s = 0; s < steps; ++s) to[s] = a[2 * s] | static_cast<Bits32>(a[2 * s + 1]) << 16;
    }
  }

  void run_panels(Tile<E> t, Index rows, Index k, Index steps, Index column, Index columns) {
    t.b_step = width;
    if (m_.packed) {
      t.b = static_cast<const Bits32*>(m_.b) + column / width * (steps + 1) * width + k * width;
      t.b_panel = (steps + 1) * width;
      // Few rows take panels abreast; many sweep one panel after the other, which then stays in the cache.
      const Index group = rows <= E::rows ? columns : width;
      for (; columns > 0; columns -= group, t.c += group, t.b += t.b_panel) {
        t.columns = least(group, columns);
        run_strips(t, rows);
      }
      return;
    }
    const Bits8* b = static_cast<const Bits8*>(m_.b) + k * step * m_.b_inner + column * m_.b_column;
    t.b = right_;
    for (Index j = 0; j < columns; j += width, t.c += width, b += width * m_.b_column) {
      t.columns = least(width, columns - j);
      pack_panel<b_signed>(b, m_.b_inner, m_.b_column, m_.inner - k * step, t.steps, t.columns, right_,
                           column_sums_ + j);
      run_strips(t, rows);
    }
  }

  void hand_over(Index row, Index rows, Index column, Index columns) {
    const Words correction = splat_bits(E::correction(m_.a_signed));
    for (Index j = 0; j < columns; j += Words::lanes)
      store(column_sums_ + j, Words{load_bits(column_sums_ + j).v * correction.v});
    for (Index i = 0; i < rows; ++i) {
      Bits32* const sums = sums_ + i * block_columns;
      void* const memory = static_cast<Bits32*>(m_.c) + (row + i) * m_.c_row + column;
      void* const to = m_.finish.run ? static_cast<void*>(sums) : memory;
      if (m_.scales.row) {
        scale(sums, m_.scales.row[row + i], column, columns, static_cast<float*>(to));
      } else {
        whole(sums, columns, static_cast<Bits32*>(to));
      }
      if (m_.finish.run) m_.finish.run(m_.finish.context, row + i, column, columns, to);
    }
  }

  void whole(const Bits32* sums, Index columns, Bits32* to) const {
    Index j = 0;
    for (; j + Words::lanes <= columns; j += Words::lanes)
      store(to + j, Words{load_bits(sums + j).v + load_bits(column_sums_ + j).v});
    for (; j < columns; ++j) to[j] = sums[j] + column_sums_[j];
  }

  void scale(const Bits32* sums, float factor, Index column, Index columns, float* to) const {
    const float *by = m_.scales.column + column, *bias = m_.scales.bias ? m_.scales.bias + column : nullptr;
    const F32 f = RLX_LEVEL::splat(factor), zero = RLX_LEVEL::splat(0.0f);
    for (Index j = 0; j < columns; j += F32::lanes) {
      const Index n = columns - j;
      const F32 s = to_f32(Words{load_bits(sums + j).v + load_bits(column_sums_ + j).v}) * f;
      if (n >= F32::lanes) {
        const F32 y = s * load(by + j);
        store(to + j, bias ? y + load(bias + j) : y);
      } else {
        const F32 y = s * load(by + j, n, zero);
        store(to + j, bias ? y + load(bias + j, n, zero) : y, n);
      }
    }
  }

  const IntegerArgs& m_;
  alignas(64) Bits32 left_[block_rows * block_steps];
  alignas(64) Bits32 right_[block_steps * width];
  alignas(64) Bits32 sums_[block_rows * block_columns];
  alignas(64) Bits32 column_sums_[block_columns];
};

void multiply(const IntegerArgs& m) {
  if (m.rows <= 0 || m.columns <= 0) return;
  if (m.b_signed) return IntegerProduct<true>(m).run();
  IntegerProduct<false>(m).run();
}

}  // namespace

const IntegerKernels integer_kernels{.width = width, .panel_bytes = panel_bytes, .pack = pack, .multiply = multiply};

}  // namespace rlx::RLX_LEVEL
