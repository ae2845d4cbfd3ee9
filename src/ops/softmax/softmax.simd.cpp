// Kernels of softmax and log_softmax, compiled once per level.
#include "core/simd_float.h"
#include "ops/softmax/softmax.kernel.h"

namespace rlx::RLX_LEVEL {

static constexpr float lowest = -__builtin_inff();

// --- rows: lanes along the row ---

/// The largest element; a NaN may be left out, it comes back in the sum of the exponentials.
template <class T>
static float row_max(const T* x, Index cols) {
  constexpr Index lanes = F32::lanes;
  F32 top[4] = {splat(lowest), splat(lowest), splat(lowest), splat(lowest)};
  Index c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) top[i] = max_or_second(load(x + c + i * lanes), top[i]);
  }
  for (; c + lanes <= cols; c += lanes) top[0] = max_or_second(load(x + c), top[0]);
  if (c < cols) top[1] = max_or_second(load(x + c, cols - c, splat(lowest)), top[1]);
  const F32 all = max_or_second(max_or_second(top[0], top[1]), max_or_second(top[2], top[3]));
  return fold(all, [](float a, float b) { return a < b ? b : a; });
}

/// The sum of e^(x - top); every exponential goes to `keep`.
template <class T, class Keep>
static float row_sum(const T* x, Index cols, float top, Keep keep) {
  F32 sum = splat(0.0f);
  Index c = 0;
  for (; c + F32::lanes <= cols; c += F32::lanes) {
    const F32 e = exp(load(x + c) - splat(top));
    keep(c, e, F32::lanes);
    sum = sum + e;
  }
  if (c < cols) {
    const F32 e = exp(load(x + c, cols - c, splat(lowest)) - splat(top));
    keep(c, e, cols - c);
    sum = sum + e;
  }
  return fold(sum, [](float a, float b) { return a + b; });
}

/// y = f(x) over a row.
template <class T, class F>
static void row_map(const T* x, T* y, Index cols, F f) {
  Index c = 0;
  for (; c + F32::lanes <= cols; c += F32::lanes) store(y + c, f(load(x + c)));
  if (c < cols) store(y + c, f(load(x + c, cols - c, splat(0.0f))), cols - c);
}

static void rows_f32(const float* x, float* y, Index rows, Index cols) {
  for (Index r = 0; r < rows; ++r, x += cols, y += cols) {
    const float sum = row_sum(x, cols, row_max(x, cols),
                              [&](Index c, F32 e, Index n) { n == F32::lanes ? store(y + c, e) : store(y + c, e, n); });
    const F32 share = splat(1.0f / sum);
    row_map(y, y, cols, [&](F32 e) { return e * share; });
  }
}

// The exponentials of a row wait in the nearest cache; while they are computed, the next row comes.
static void rows_streamed(const void* from, void* to, Index rows, Index cols) {
  constexpr Index longest = 4096, lanes = F32::lanes;
  const auto* x = static_cast<const float*>(from);
  auto* y = static_cast<float*>(to);
  if (cols > longest || !may_stream(y, cols)) return rows_f32(x, y, rows, cols);
  alignas(sizeof(F32)) float row[longest];
  for (Index r = 0; r < rows; ++r, x += cols, y += cols) {
    const float* next = r + 1 < rows ? x + cols : x;
    const float sum = row_sum(x, cols, row_max(x, cols), [&](Index c, F32 e, Index) {
      __builtin_prefetch(next + c, 0, 2);
      store(row + c, e);
    });
    const F32 share = splat(1.0f / sum);
    for (Index c = 0; c < cols; c += lanes) stream(y + c, load(row + c) * share);
  }
  stream_end();
}

template <class T, bool logarithm>
static void rows_of(const void* from, void* to, Index rows, Index cols) {
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  for (Index r = 0; r < rows; ++r, x += cols, y += cols) {
    const float top = row_max(x, cols), sum = row_sum(x, cols, top, [](Index, F32, Index) {});
    if constexpr (logarithm) {
      const float less = __builtin_logf(sum);
      row_map(x, y, cols, [&](F32 e) { return e - splat(top) - splat(less); });
    } else {
      const F32 share = splat(1.0f / sum);
      row_map(x, y, cols, [&](F32 e) { return exp(e - splat(top)) * share; });
    }
  }
}

static void plain_rows_f32(const void* x, void* y, Index rows, Index cols) {
  rows_f32(static_cast<const float*>(x), static_cast<float*>(y), rows, cols);
}

// --- columns: lanes across columns, several packs abreast so that whole cache lines are read ---

template <class T>
static F32 load_some(const T* p, Index n) {
  return n >= F32::lanes ? load(p) : load(p, n, splat(0.0f));
}
template <class T>
static void store_some(T* p, F32 a, Index n) {
  n >= F32::lanes ? store(p, a) : store(p, a, n);
}

/// `packs` packs of columns from x on, of which the last has `tail` columns.
template <class T, bool logarithm, int packs>
static void column_block(const T* x, T* y, Index rows, Index cols, Index tail) {
  constexpr Index lanes = F32::lanes;
  const auto width = [&](int p) { return p + 1 == packs ? tail : lanes; };
  F32 top[packs], sum[packs];
  for (int p = 0; p < packs; ++p) {
    top[p] = splat(lowest);
    sum[p] = splat(0.0f);
  }
  // A NaN that is left out here comes back in the sum.
  for (Index r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) top[p] = max_or_second(load_some(x + r * cols + p * lanes, width(p)), top[p]);
  }
  constexpr bool keep = !logarithm && sizeof(T) == sizeof(float);  // y has room for the exponentials
  for (Index r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) {
      const F32 e = exp(load_some(x + r * cols + p * lanes, width(p)) - top[p]);
      if constexpr (keep) store_some(y + r * cols + p * lanes, e, width(p));
      sum[p] = sum[p] + e;
    }
  }
  for (int p = 0; p < packs; ++p) {
    float all[lanes];
    store(all, sum[p]);
    for (float& s : all) s = logarithm ? __builtin_logf(s) : 1.0f / s;
    sum[p] = load(all);
  }
  for (Index r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) {
      const Index at = r * cols + p * lanes;
      if constexpr (keep) {
        store_some(y + at, load_some(y + at, width(p)) * sum[p], width(p));
      } else {
        const F32 below = load_some(x + at, width(p)) - top[p];
        store_some(y + at, logarithm ? below - sum[p] : exp(below) * sum[p], width(p));
      }
    }
  }
}

template <class T, bool logarithm>
static void columns_of(const void* from, void* to, Index rows, Index cols, Index begin, Index end) {
  constexpr Index lanes = F32::lanes;
  const T* x = static_cast<const T*>(from);
  T* y = static_cast<T*>(to);
  Index c = begin;
  for (; c + 4 * lanes <= end; c += 4 * lanes) column_block<T, logarithm, 4>(x + c, y + c, rows, cols, lanes);
  for (; c < end; c += lanes) {
    column_block<T, logarithm, 1>(x + c, y + c, rows, cols, end - c < lanes ? end - c : lanes);
  }
}

// --- f64: one element after the other ---

template <bool logarithm>
static void line_f64(const double* x, double* y, Index n, Index stride) {
  double top = -__builtin_inf(), sum = 0;
  for (Index i = 0; i < n; ++i) {
    if (top < x[i * stride]) top = x[i * stride];
  }
  for (Index i = 0; i < n; ++i) sum += __builtin_exp(x[i * stride] - top);
  const double less = __builtin_log(sum);
  for (Index i = 0; i < n; ++i) {
    const double below = x[i * stride] - top;
    y[i * stride] = logarithm ? below - less : __builtin_exp(below) / sum;
  }
}
template <bool logarithm>
static void rows_f64(const void* x, void* y, Index rows, Index cols) {
  for (Index r = 0; r < rows; ++r) {
    line_f64<logarithm>(static_cast<const double*>(x) + r * cols, static_cast<double*>(y) + r * cols, cols, 1);
  }
}
template <bool logarithm>
static void columns_f64(const void* x, void* y, Index rows, Index cols, Index begin, Index end) {
  for (Index c = begin; c < end; ++c) {
    line_f64<logarithm>(static_cast<const double*>(x) + c, static_cast<double*>(y) + c, rows, cols);
  }
}

const SoftmaxKernels softmax_kernels{
    .rows_f32 = rows_f32,
    .rows_streamed = rows_streamed,
    .softmax = {{rows_f64<false>, columns_f64<false>},
                {plain_rows_f32, columns_of<float, false>},
                {rows_of<StoredF16, false>, columns_of<StoredF16, false>},
                {rows_of<StoredBF16, false>, columns_of<StoredBF16, false>}},
    .log_softmax = {{rows_f64<true>, columns_f64<true>},
                    {rows_of<float, true>, columns_of<float, true>},
                    {rows_of<StoredF16, true>, columns_of<StoredF16, true>},
                    {rows_of<StoredBF16, true>, columns_of<StoredBF16, true>}},
};

}  // namespace rlx::RLX_LEVEL
