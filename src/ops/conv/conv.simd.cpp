// Windows of one channel of f32: depthwise convolution, and maxima. Every result is one chain over the taps; compiled
// once per level.
#include "core/simd.h"
#include "ops/conv/conv.kernel.h"
#include "ops/scalar/rows.h"

namespace rlx::RLX_LEVEL {

namespace {

constexpr Index lanes = F32::lanes;
constexpr Index most_taps = 64;  // along the last axis; longer kernels are done window by window

Index rounded_up(Index a, Index b) { return a <= 0 ? 0 : (a + b - 1) / b; }
Index least(Index a, Index b) { return a < b ? a : b; }
Index most(Index a, Index b) { return a > b ? a : b; }

// The row that the taps (i, j) of a row of windows read; null in the padding.
struct Taps {
  const DepthwiseArgs& a;
  Index z, y;
  const float* row(Index i, Index j) const {
    const Index at = z * a.stride[0] - a.before[0] + i * a.dilation[0];
    const Index line = y * a.stride[1] - a.before[1] + j * a.dilation[1];
    const bool inside = at >= 0 && at < a.in[0] && line >= 0 && line < a.in[1];
    return inside ? a.x + (at * a.in[1] + line) * a.in[2] : nullptr;
  }
};

float scalar_fma(float x, float y, float z) {
#if defined(__FMA__)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}

F32 finished(const ConvFinish& f, F32 sum) {
  if (f.bias) sum = sum + splat(*f.bias);
  switch (f.activation) {
    case ConvActivation::relu:
      return Relu::value(sum);
    case ConvActivation::leaky:
      return select(less(sum, F32{}), sum * splat(f.slope), sum);
    default:
      return sum;
  }
}

// What is done with the taps of a window: `outside` stands for those in the padding.
struct Products {
  static constexpr float outside = 0;
  static F32 start() { return F32{}; }
  static F32 join(F32 sum, F32 x, const float* w) { return fma(x, splat(*w), sum); }
  static float join(float sum, float x, const float* w) { return scalar_fma(x, *w, sum); }
  static const float* weights(const DepthwiseArgs& a) { return a.w; }
  static F32 finish(const DepthwiseArgs& a, F32 sum) { return finished(a.finish, sum); }
};
// The larger element, the first of equal ones; NaN where there is one.
struct Maxima {
  static constexpr float outside = -__builtin_inff();
  static F32 start() { return splat(outside); }
  static F32 join(F32 best, F32 x, const float*) { return maximum(best, x); }
  static float join(float best, float x, const float*) { return x > best || (x != x && best == best) ? x : best; }
  static const float* weights(const DepthwiseArgs& a) { return a.x; }  // not read
  static F32 finish(const DepthwiseArgs&, F32 best) { return best; }
};

// One window, any of whose taps may lie in the padding.
template <class Kind>
float one_window(const DepthwiseArgs& a, const Taps& t, Index window) {
  const float* w = Kind::weights(a);
  const Index first = window * a.stride[2] - a.before[2];
  float sum = Kind::outside;
  for (Index i = 0; i < a.kernel[0]; ++i) {
    for (Index j = 0; j < a.kernel[1]; ++j) {
      const float* const row = t.row(i, j);
      for (Index k = 0; k < a.kernel[2]; ++k, ++w) {
        const Index at = first + k * a.dilation[2];
        const bool inside = row && at >= 0 && at < a.in[2];
        sum = Kind::join(sum, inside ? row[at] : Kind::outside, w);
      }
    }
  }
  float all[lanes];
  store(all, Kind::finish(a, splat(sum)));
  return all[0];
}

// Elements row[at + i * stride] for the lanes i of [low, high), `outside` in the others, which are not read.
F32 some(const float* row, Index at, Index stride, Index low, Index high, float outside) {
#if defined(__AVX512F__)
  const unsigned wanted = ((1u << high) - 1) & ~((1u << low) - 1);
  if (stride == 1) {
    return {_mm512_mask_loadu_ps(_mm512_set1_ps(outside), static_cast<__mmask16>(wanted), row + at)};
  }
#endif
  float all[lanes];
  for (Index i = 0; i < lanes; ++i) all[i] = i >= low && i < high ? row[at + i * stride] : outside;
  return load(all);
}

// Every second element from p on, and no further than the last of them.
F32 load_second(const float* p) {
#if defined(__AVX512F__)
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return {_mm512_permutex2var_ps(_mm512_loadu_ps(p), even, _mm512_maskz_loadu_ps(0x7FFF, p + 16))};
#elif defined(__AVX2__)
  const __m256 low = _mm256_loadu_ps(p), high = _mm256_loadu_ps(p + 7);  // the last element is the one at 14
  const __m256 mixed = _mm256_shuffle_ps(low, high, 0xD8);               // 0 2 | 8 10 of each half, high from 1 on
  return {_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xD8))};
#else
  return {_mm_setr_ps(p[0], p[2], p[4], p[6])};
#endif
}

F32 load_apart(const float* p, Index stride) {
  float all[lanes];
  for (Index i = 0; i < lanes; ++i) all[i] = p[i * stride];
  return load(all);
}

// V packs of windows from `window` on, whose taps lie inside along the last axis.
template <class Kind, int V, bool second>
void packs(const DepthwiseArgs& a, const Taps& t, Index window, float* y) {
  F32 sum[V];
  for (int v = 0; v < V; ++v) sum[v] = Kind::start();
  const float* w = Kind::weights(a);
  const Index stride = a.stride[2], first = window * stride - a.before[2], dilation = a.dilation[2];
  for (Index i = 0; i < a.kernel[0]; ++i) {
    for (Index j = 0; j < a.kernel[1]; ++j) {
      const float* const row = t.row(i, j);
      for (Index k = 0; k < a.kernel[2]; ++k, ++w) {
        const float* const from = row ? row + first + k * dilation : nullptr;
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) {
          F32 x = splat(Kind::outside);
          if (row && !second) x = stride == 1 ? load(from + v * lanes) : load_apart(from + v * lanes * stride, stride);
          if (row && second) x = load_second(from + v * lanes * 2);
          sum[v] = Kind::join(sum[v], x, w);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < V; ++v) store(y + window + v * lanes, Kind::finish(a, sum[v]));
}

// Up to a pack of windows, some of whose taps lie in the padding along the last axis: which lanes of each tap do not.
template <class Kind>
struct End {
  Index window = 0, count = 0;
  Index low[most_taps], high[most_taps];

  void set(const DepthwiseArgs& a, Index first, Index n) {
    window = first;
    count = n;
    const Index stride = a.stride[2];
    for (Index k = 0; k < a.kernel[2]; ++k) {
      const Index at = first * stride - a.before[2] + k * a.dilation[2];
      low[k] = least(rounded_up(-at, stride), n);
      high[k] = most(low[k], least(rounded_up(a.in[2] - at, stride), n));
    }
  }
  void run(const DepthwiseArgs& a, const Taps& t, float* y) const {
    F32 sum = Kind::start();
    const float* w = Kind::weights(a);
    const Index at = window * a.stride[2] - a.before[2];
    for (Index i = 0; i < a.kernel[0]; ++i) {
      for (Index j = 0; j < a.kernel[1]; ++j) {
        const float* const row = t.row(i, j);
        for (Index k = 0; k < a.kernel[2]; ++k, ++w) {
          F32 x = splat(Kind::outside);
          if (row) x = some(row, at + k * a.dilation[2], a.stride[2], low[k], high[k], Kind::outside);
          sum = Kind::join(sum, x, w);
        }
      }
    }
    sum = Kind::finish(a, sum);
    if (count == lanes) {
      store(y + window, sum);
    } else {
      store(y + window, sum, count);
    }
  }
};

// --- small square kernels over two axes ---

// The taps of a pack of windows that lie S apart, along a line of which some elements do not exist: those are 0 and not
// read. set() is told where on the line the first window begins.
#if defined(__AVX512F__)

// Elements are read once, and moved to the lanes of every tap.
template <int K, int S>
class Line {
  static_assert((S == 1 || S == 2) && K <= 5);

 public:
  void set(Index at, Index size, Index) {
    for (int i = 0; i <= S; ++i, at += lanes) {
      const Index low = least(most(-at, 0), lanes), high = most(low, least(size - at, lanes));
      exist_[i] = static_cast<__mmask16>(((1u << high) - 1) & ~((1u << low) - 1));
    }
  }
  void load(const float* p, F32 (&x)[K]) const {
    const __m512 a = _mm512_maskz_loadu_ps(exist_[0], p), b = _mm512_maskz_loadu_ps(exist_[1], p + lanes);
    if constexpr (S == 1) {
      taps<0>(a, b, x);
    } else {
      const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
      const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
      const __m512 c = _mm512_maskz_loadu_ps(exist_[2], p + 2 * lanes);
      taps<0>(_mm512_permutex2var_ps(a, even, b), _mm512_permutexvar_ps(even, c), x);
      taps<1>(_mm512_permutex2var_ps(a, odd, b), _mm512_permutexvar_ps(odd, c), x);
    }
  }

 private:
  // Tap first + n * S for every n: its element i is element i + n of a, then b.
  template <int first>
  static void taps(__m512 a, __m512 b, F32 (&x)[K]) {
    x[first] = {a};
    shifted<first, 1>(a, b, x);
    shifted<first, 2>(a, b, x);
    shifted<first, 3>(a, b, x);
    shifted<first, 4>(a, b, x);
  }
  template <int first, int n>
  static void shifted(__m512 a, __m512 b, F32 (&x)[K]) {
    if constexpr (first + n * S < K) {
      x[first + n * S] = {_mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(b), _mm512_castps_si512(a), n))};
    }
  }
  __mmask16 exist_[S + 1] = {};
};

#else

template <int K, int S>
class Line {
 public:
  void set(Index at, Index size, Index count) {
    for (int k = 0; k < K; ++k) {
      low_[k] = least(rounded_up(-(at + k), S), count);
      high_[k] = most(low_[k], least(rounded_up(size - (at + k), S), count));
#if defined(__AVX2__)
      for (Index i = 0; i < lanes; ++i) exist_[k][i] = i >= low_[k] && i < high_[k] ? -1 : 0;
#endif
    }
  }
  void load(const float* p, F32 (&x)[K]) const {
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k) x[k] = tap(p + k, k);
  }

 private:
  F32 tap(const float* p, int k) const {
    if (low_[k] == 0 && high_[k] == lanes) return S == 1 ? RLX_LEVEL::load(p) : load_second(p);
#if defined(__AVX2__)
    if (S == 1) return {_mm256_maskload_ps(p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(exist_[k])))};
#endif
    return some(p, 0, S, low_[k], high_[k], 0.0F);
  }
#if defined(__AVX2__)
  int exist_[K][lanes] = {};
#endif
  Index low_[K] = {}, high_[K] = {};
};

#endif

// What a line of padding holds, as far as a pack reads it.
alignas(64) constexpr float zeros[4 * lanes] = {};

// One pack of windows of R lines from `line` on: every line of elements is read once for all of them.
template <int K, int S, int R>
void pack_of_lines(const DepthwiseArgs& a, const Line<K, S>& taps, const F32 (&w)[K * K], Index line, Index at,
                   float* y, Index count) {
  F32 sum[R] = {};
  const Index top = line * S - a.before[1];
#pragma GCC unroll 32
  for (int i = 0; i < (R - 1) * S + K; ++i) {
    const bool inside = top + i >= 0 && top + i < a.in[1];
    const float* const row = inside ? a.x + (top + i) * a.in[2] + at : zeros;
    F32 x[K];
    taps.load(row, x);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const int j = i - r * S;
      if (j < 0 || j >= K) continue;
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) sum[r] = fma(x[k], w[j * K + k], sum[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const F32 done = finished(a.finish, sum[r]);
    float* const to = y + r * a.out[2];
    if (count == lanes) {
      store(to, done);
    } else {
      store(to, done, count);
    }
  }
}

template <int K, int S>
void square(const DepthwiseArgs& a) {
  constexpr int together = S == 1 ? 4 : 2;
  F32 w[K * K];
  for (int i = 0; i < K * K; ++i) w[i] = splat(a.w[i]);
  for (Index window = 0; window < a.out[2]; window += lanes) {
    const Index count = least(lanes, a.out[2] - window), at = window * S - a.before[2];
    Line<K, S> taps;
    taps.set(at, a.in[2], count);
    Index line = 0;
    float* y = a.y + window;
    for (; line + together <= a.out[1]; line += together, y += together * a.out[2]) {
      pack_of_lines<K, S, together>(a, taps, w, line, at, y, count);
    }
    for (; line < a.out[1]; ++line, y += a.out[2]) pack_of_lines<K, S, 1>(a, taps, w, line, at, y, count);
  }
}

bool is_square(const DepthwiseArgs& a, Index size, Index stride) {
  return a.in[0] == 1 && a.out[0] == 1 && a.kernel[0] == 1 && a.before[0] == 0 && a.kernel[1] == size &&
         a.kernel[2] == size && a.stride[1] == stride && a.stride[2] == stride && a.dilation[1] == 1 &&
         a.dilation[2] == 1;
}

// All windows one by one: for kernels that are longer than packs at the ends of a row can hold.
template <class Kind>
void one_by_one(const DepthwiseArgs& a) {
  float* y = a.y;
  for (Index z = 0; z < a.out[0]; ++z) {
    for (Index line = 0; line < a.out[1]; ++line, y += a.out[2]) {
      for (Index i = 0; i < a.out[2]; ++i) y[i] = one_window<Kind>(a, {a, z, line}, i);
    }
  }
}

// Windows [begin, end) of every row lie inside along the last axis; packs of other windows are the ends of the row.
template <class Kind, bool second>
void rows(const DepthwiseArgs& a, Index begin, Index end) {
  constexpr int together = lanes == 16 ? 4 : 8;
  constexpr Index most_ends = 8;
  const Index first = least(rounded_up(begin, lanes) * lanes, a.out[2]);
  const Index last = end - first < lanes ? first : first + (end - first) / lanes * lanes;
  const Index count = rounded_up(first, lanes) + rounded_up(a.out[2] - last, lanes);
  if (count > most_ends || a.kernel[2] > most_taps) return one_by_one<Kind>(a);
  End<Kind> ends[most_ends];
  Index used = 0;
  for (Index at = 0; at < a.out[2]; at += lanes) {
    if (at < first || at >= last) ends[used++].set(a, at, least(lanes, a.out[2] - at));
  }
  float* y = a.y;
  for (Index z = 0; z < a.out[0]; ++z) {
    for (Index line = 0; line < a.out[1]; ++line, y += a.out[2]) {
      const Taps t{a, z, line};
      for (Index i = 0; i < used; ++i) ends[i].run(a, t, y);
      Index i = first;
      for (; i + together * lanes <= last; i += together * lanes) packs<Kind, together, second>(a, t, i, y);
      for (; i + 2 * lanes <= last; i += 2 * lanes) packs<Kind, 2, second>(a, t, i, y);
      for (; i < last; i += lanes) packs<Kind, 1, second>(a, t, i, y);
    }
  }
}

template <class Kind>
void all_rows(const DepthwiseArgs& a) {
  const Index reach = (a.kernel[2] - 1) * a.dilation[2];
  const Index begin = least(rounded_up(a.before[2], a.stride[2]), a.out[2]);
  const Index room = a.in[2] + a.before[2] - reach - 1;
  const Index end = room < 0 ? 0 : least(room / a.stride[2] + 1, a.out[2]);
  if (a.stride[2] == 2) {
    rows<Kind, true>(a, begin, most(begin, end));
  } else {
    rows<Kind, false>(a, begin, most(begin, end));
  }
}

void depthwise(const DepthwiseArgs& a) {
  if (is_square(a, 3, 1)) return square<3, 1>(a);
  if (is_square(a, 3, 2)) return square<3, 2>(a);
  if (is_square(a, 5, 1)) return square<5, 1>(a);
  if (is_square(a, 5, 2)) return square<5, 2>(a);
  all_rows<Products>(a);
}

// --- maxima of windows that lie side by side along the last axis ---

// Of the pairs of adjacent lanes of a, then those of b, the larger, the first of equal ones.
F32 maxima_of_pairs(F32 a, F32 b) {
#if defined(__AVX512F__)
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
  return maximum(F32{_mm512_permutex2var_ps(a.v, even, b.v)}, F32{_mm512_permutex2var_ps(a.v, odd, b.v)});
#elif defined(__AVX2__)
  // Pairs of the halves: a's low, b's low, a's high, b's high.
  const F32 mixed = maximum(F32{_mm256_shuffle_ps(a.v, b.v, 0x88)}, F32{_mm256_shuffle_ps(a.v, b.v, 0xDD)});
  return {_mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed.v), 0xD8))};
#else
  return maximum(F32{_mm_shuffle_ps(a.v, b.v, 0x88)}, F32{_mm_shuffle_ps(a.v, b.v, 0xDD)});
#endif
}

// The maxima of a pack of windows of S elements from p on, of which `exist` elements exist.
template <int S>
F32 side_by_side(const float* p, Index exist) {
  if constexpr (S == 1) {
    if (exist >= lanes) return load(p);
    return exist > 0 ? load(p, exist, splat(Maxima::outside)) : splat(Maxima::outside);
  } else {
    return maxima_of_pairs(side_by_side<S / 2>(p, exist),
                           side_by_side<S / 2>(p + S / 2 * lanes, exist - S / 2 * lanes));
  }
}

template <int S>
void maxima_side_by_side(const DepthwiseArgs& a) {
  float* y = a.y;
  for (Index z = 0; z < a.out[0]; ++z) {
    for (Index line = 0; line < a.out[1]; ++line, y += a.out[2]) {
      const Taps t{a, z, line};
      for (Index c = 0; c < a.out[2]; c += lanes) {
        F32 best = Maxima::start();
        for (Index i = 0; i < a.kernel[0]; ++i) {
          for (Index j = 0; j < a.kernel[1]; ++j) {
            if (const float* const row = t.row(i, j)) {
              best = maximum(best, side_by_side<S>(row + c * S, (a.out[2] - c) * S));
            }
          }
        }
        const Index n = a.out[2] - c;
        n >= lanes ? store(y + c, best) : store(y + c, best, n);
      }
    }
  }
}

void maxima(const DepthwiseArgs& a) {
  const Index side = a.kernel[2];
  const bool apart = a.stride[2] == side && a.dilation[2] == 1 && a.before[2] == 0 && a.out[2] * side <= a.in[2];
  if (apart && side == 1) return maxima_side_by_side<1>(a);
  if (apart && side == 2) return maxima_side_by_side<2>(a);
  if (apart && side == 4) return maxima_side_by_side<4>(a);
  all_rows<Maxima>(a);
}

}  // namespace

const ConvKernels conv_kernels{.depthwise = depthwise, .maxima = maxima};

}  // namespace rlx::RLX_LEVEL
