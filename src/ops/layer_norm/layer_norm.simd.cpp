// Kernels of layer_norm and rms_norm, compiled once per level.
#include "core/simd_float.h"
#include "ops/layer_norm/layer_norm.kernel.h"

namespace rlx::RLX_LEVEL {

template <class T>
static F32 load_some(const T* p, Index n) {
  return n == F32::lanes ? load(p) : load(p, n, splat(0.0f));
}
template <class T>
static void store_some(T* p, F32 a, Index n) {
  n == F32::lanes ? store(p, a) : store(p, a, n);
}

/// x as an element of type T holds it.
static F32 rounded(F32 x, const float*) { return x; }
template <class T>
static F32 rounded(F32 x, const T*) {
  T all[F32::lanes];
  store(all, x);
  return load(all);
}

/// f(c, n) for every pack of a row: the n elements from c on.
template <class F>
static void each_pack(Index cols, F f) {
  Index c = 0;
  for (; c + F32::lanes <= cols; c += F32::lanes) f(c, F32::lanes);
  if (c < cols) f(c, cols - c);
}

/// Sums over a row: of its elements, of their squares.
struct RowSums {
  double plain = 0, square = 0;
};

/// Sums of pack(c, n), whose lanes behind the n-th are 0, over a row. Every element is widened to f64 where `wide`;
/// else up to 16 packs are summed in f32 first, in four sums that do not wait for each other.
template <bool plain, bool square, bool wide, class F>
static RowSums sum_row(Index cols, F pack) {
  constexpr Index lanes = F32::lanes, step = 4 * lanes, block = 16 * step;
  WideSum all, squares;
  for (Index c = 0; c < cols;) {
    const Index end = cols - c < block ? cols : c + block;
    F32 sum[4], square_sum[4];
    for (int i = 0; i < 4; ++i) sum[i] = square_sum[i] = splat(0.0f);
    const auto add = [&](F32 x, int i) {
      if constexpr (wide && plain) all.add(x);
      if constexpr (wide && square) squares.add_square(x);
      if constexpr (!wide && plain) sum[i] = sum[i] + x;
      if constexpr (!wide && square) square_sum[i] = fma(x, x, square_sum[i]);
    };
    for (; c + step <= end; c += step) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) add(pack(c + i * lanes, lanes), i);
    }
    for (; c + lanes <= end; c += lanes) add(pack(c, lanes), 0);
    if (c < end) add(pack(c, end - c), 1), c = end;
    if constexpr (!wide && plain) all.add((sum[0] + sum[1]) + (sum[2] + sum[3]));
    if constexpr (!wide && square) squares.add((square_sum[0] + square_sum[1]) + (square_sum[2] + square_sum[3]));
  }
  return {plain ? all.total() : 0, square ? squares.total() : 0};
}

/// The elements of a row that is to be normalised, as sums of `terms` operands.
template <class T, int terms>
struct Row {
  const T* at[terms];
  Index stride[terms];
  Row(const NormRows& n, Index r) {
    for (int i = 0; i < terms; ++i) {
      at[i] = static_cast<const T*>(n.terms[i].data) + r * n.terms[i].stride;
      stride[i] = n.terms[i].stride;
    }
  }
  /// Asks for the next row, in case that it comes from memory.
  void fetch_next(Index c) const {
    for (int i = 0; i < terms; ++i) __builtin_prefetch(at[i] + stride[i] + c, 0, 2);
  }
  F32 pack(Index c, Index n) const {
    F32 x = load_some(at[0] + c, n);
    for (int i = 1; i < terms; ++i) x = rounded(x + load_some(at[i] + c, n), at[i]);
    return x;
  }
};

/// x with 0 in the lanes behind the n-th.
static F32 first_lanes(F32 x, Index n) {
  if (n == F32::lanes) return x;
  float all[F32::lanes];
  store(all, x);
  for (Index i = n; i < F32::lanes; ++i) all[i] = 0;
  return load(all);
}

/// The mean of a row as the sum of two f32, and the mean of the squares around it.
struct Moments {
  float near = 0, rest = 0;
  double square = 0;
};

/// `one_of` is 1 / cols. The mean need only be near for the differences to keep their digits: their own mean is the
/// rest. In the second pass the memory has nothing to do: with `fetches` the next row comes.
template <bool centre, bool wide, bool fetches, class T, int terms>
static Moments moments(const Row<T, terms>& row, Index cols, double one_of) {
  if constexpr (!centre) {
    const auto square = sum_row<false, true, wide>(cols, [&](Index c, Index k) { return row.pack(c, k); }).square;
    return {0, 0, square * one_of};
  } else {
    const double sum = sum_row<true, false, wide>(cols, [&](Index c, Index k) { return row.pack(c, k); }).plain;
    Moments m{.near = static_cast<float>(sum * one_of)};
    const RowSums around = sum_row<true, true, wide>(cols, [&, near = splat(m.near)](Index c, Index k) {
      if (fetches) row.fetch_next(c);
      return first_lanes(row.pack(c, k) - near, k);
    });
    const double rest = around.plain * one_of;
    m.rest = static_cast<float>(rest);
    m.square = around.square * one_of - rest * rest;
    return m;
  }
}

/// Squares in f32 that overflow, or that are small enough to lose digits, are summed in f64.
static bool in_range(double square) { return square > 0x1p-96 && square < 0x1p120; }

static void stream_pack(float* p, F32 a) { stream(p, a); }
template <class T>
static void stream_pack(T* p, F32 a) {
  store(p, a);
}

template <class T, int terms, bool centre, bool streams>
static void norm_row(const NormRows& n, const Row<T, terms>& row, double one_of, T* kept, T* y) {
  Moments m = moments<centre, false, streams>(row, n.cols, one_of);
  if (!in_range(m.square)) m = moments<centre, true, streams>(row, n.cols, one_of);
  const auto scale = static_cast<float>(1 / __builtin_sqrt(m.square + n.epsilon));
  // 0 minus, so that an element at the mean becomes 0, not -0.
  const F32 near = splat(m.near), by = splat(scale), rest = splat(0.0f - m.rest * scale);
  const T *gamma = static_cast<const T*>(n.gamma), *beta = static_cast<const T*>(n.beta);
  each_pack(n.cols, [&](Index c, Index k) {
    const F32 x = row.pack(c, k);
    F32 z = centre ? fma(x - near, by, rest) : x * by;
    if (beta) {
      z = fma(z, load_some(gamma + c, k), load_some(beta + c, k));
    } else if (gamma) {
      z = z * load_some(gamma + c, k);
    }
    if (kept) store_some(kept + c, x, k);
    streams ? stream_pack(y + c, z) : store_some(y + c, z, k);
  });
}

template <class T, int terms, bool centre>
static void norm_terms(const NormRows& n, Index begin, Index end) {
  const double one_of = 1 / static_cast<double>(n.cols);
  const auto rows = [&](auto norm_one) {
    for (Index r = begin; r < end; ++r) {
      T* sum = n.sum ? static_cast<T*>(n.sum) + r * n.cols : nullptr;
      norm_one(n, Row<T, terms>(n, r), one_of, sum, static_cast<T*>(n.y) + r * n.cols);
    }
  };
  if (sizeof(T) != sizeof(float) || !n.stream || !may_stream(n.y, n.cols)) {
    return rows(norm_row<T, terms, centre, false>);
  }
  rows(norm_row<T, terms, centre, true>);
  stream_end();
}

template <class T, bool centre>
static void norm(const NormRows& n, Index begin, Index end) {
  if (n.term_count == 1) return norm_terms<T, 1, centre>(n, begin, end);
  if (n.term_count == 2) return norm_terms<T, 2, centre>(n, begin, end);
  norm_terms<T, 3, centre>(n, begin, end);
}

// --- f64: one element after the other, in eight sums ---

struct Row64 {
  const double* at[3];
  int terms;
  Row64(const NormRows& n, Index r) : terms(n.term_count) {
    for (int i = 0; i < 3; ++i) at[i] = static_cast<const double*>(n.terms[i].data) + r * n.terms[i].stride;
  }
  double operator[](Index c) const {
    double x = at[0][c];
    if (terms > 1) x += at[1][c];
    return terms > 2 ? x + at[2][c] : x;
  }
};

template <class F>
static double sum_of(Index cols, F f) {
  double sums[8] = {};
  for (Index c = 0; c < cols; ++c) sums[c % 8] += f(c);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <bool centre>
static void norm_f64(const NormRows& n, Index begin, Index end) {
  const auto count = static_cast<double>(n.cols);
  const auto *gamma = static_cast<const double*>(n.gamma), *beta = static_cast<const double*>(n.beta);
  for (Index r = begin; r < end; ++r) {
    const Row64 row(n, r);
    double *sum = n.sum ? static_cast<double*>(n.sum) + r * n.cols : nullptr,
           *y = static_cast<double*>(n.y) + r * n.cols;
    double mean = 0;
    if (centre) {
      mean = sum_of(n.cols, [&](Index c) { return row[c]; }) / count;
      // What rounding lost: the mean of the differences.
      mean += sum_of(n.cols, [&](Index c) { return row[c] - mean; }) / count;
    }
    const double square = sum_of(n.cols, [&](Index c) { return (row[c] - mean) * (row[c] - mean); });
    const double deviation = __builtin_sqrt(square / count + n.epsilon);
    for (Index c = 0; c < n.cols; ++c) {
      const double x = row[c];
      double z = (x - mean) / deviation;
      if (gamma) z *= gamma[c];
      if (beta) z += beta[c];
      if (sum) sum[c] = x;
      y[c] = z;
    }
  }
}

const NormKernels norm_kernels{
    .layer_norm = {norm_f64<true>, norm<float, true>, norm<StoredF16, true>, norm<StoredBF16, true>},
    .rms_norm = {norm_f64<false>, norm<float, false>, norm<StoredF16, false>, norm<StoredBF16, false>},
};

}  // namespace rlx::RLX_LEVEL
