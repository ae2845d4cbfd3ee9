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

/// The sum that add(sum, c, n) makes of every pack of a row, in four sums that do not wait for each other.
template <class F>
static double sum_packs(Index cols, F add) {
  constexpr Index lanes = F32::lanes;
  WideSum sums[4];
  Index c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) add(sums[i], c + i * lanes, lanes);
  }
  for (; c + lanes <= cols; c += lanes) add(sums[0], c, lanes);
  if (c < cols) add(sums[0], c, cols - c);
  sums[0].add(sums[1]);
  sums[2].add(sums[3]);
  sums[0].add(sums[2]);
  return sums[0].total();
}

/// The elements of a row that is to be normalised, as sums of `terms` operands.
template <class T, int terms>
struct Row {
  const T* at[terms];
  Row(const NormRows& n, Index r) {
    for (int i = 0; i < terms; ++i) at[i] = static_cast<const T*>(n.terms[i].data) + r * n.terms[i].stride;
  }
  F32 pack(Index c, Index n) const {
    F32 x = load_some(at[0] + c, n);
    for (int i = 1; i < terms; ++i) x = rounded(x + load_some(at[i] + c, n), at[i]);
    return x;
  }
};

/// A row less its mean: the mean as the nearest f32 and the rest, which f32 holds too. Twice rounded, but near the mean
/// the first difference is exact.
struct Middle {
  float nearest = 0, rest = 0;
  F32 take(F32 x) const { return x - splat(nearest) - splat(rest); }
};

template <class T, int terms, bool centre>
static void norm_row(const NormRows& n, const Row<T, terms>& row, T* kept, T* y) {
  Middle middle;
  if constexpr (centre) {
    const double total = sum_packs(n.cols, [&](WideSum& sum, Index c, Index k) { sum.add(row.pack(c, k)); });
    const double mean = total / static_cast<double>(n.cols);
    middle.nearest = static_cast<float>(mean);
    middle.rest = static_cast<float>(mean - static_cast<double>(middle.nearest));
  }
  const double square = sum_packs(n.cols, [&](WideSum& sum, Index c, Index k) {
    const F32 z = row.pack(c, k);
    if (!centre || k == F32::lanes) return sum.add_square(centre ? middle.take(z) : z);
    // Lanes behind the row hold 0, which is not the mean.
    float all[F32::lanes];
    store(all, middle.take(z));
    for (Index i = k; i < F32::lanes; ++i) all[i] = 0;
    sum.add_square(load(all));
  });
  const double deviation = __builtin_sqrt(square / static_cast<double>(n.cols) + n.epsilon);
  const F32 scale = splat(static_cast<float>(1 / deviation));
  const T *gamma = static_cast<const T*>(n.gamma), *beta = static_cast<const T*>(n.beta);
  each_pack(n.cols, [&](Index c, Index k) {
    const F32 x = row.pack(c, k);
    F32 z = (centre ? middle.take(x) : x) * scale;
    if (gamma) z = z * load_some(gamma + c, k);
    if (beta) z = z + load_some(beta + c, k);
    if (kept) store_some(kept + c, x, k);
    store_some(y + c, z, k);
  });
}

template <class T, int terms, bool centre>
static void norm_terms(const NormRows& n, Index begin, Index end) {
  for (Index r = begin; r < end; ++r) {
    T* sum = n.sum ? static_cast<T*>(n.sum) + r * n.cols : nullptr;
    norm_row<T, terms, centre>(n, Row<T, terms>(n, r), sum, static_cast<T*>(n.y) + r * n.cols);
  }
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
