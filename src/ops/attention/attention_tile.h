// Parts of the kernels of attention: the memory of an item, what positions and the fourth operand hide, a tile of keys
// and values in memory, scores and their weights. Only kernels of attention include this.
#pragma once

#include "core/simd_float.h"
#include "ops/attention/attention.kernel.h"

namespace rlx::RLX_LEVEL::attention_tiles {

inline constexpr Index lanes = F32::lanes;
inline constexpr Index tile = 128;   // keys; the order of all sums depends on it
inline constexpr Index abreast = 6;  // rows that share every load of keys and values
inline constexpr Index strip = 24;   // rows that use a panel of keys or values before the next: it stays in the cache
#if defined(__AVX512F__)
inline constexpr int packs_abreast = 4;
#else
inline constexpr int packs_abreast = 2;
#endif
inline constexpr float inf = __builtin_inff();

template <class T>
inline constexpr bool is_f32 = false;
template <>
inline constexpr bool is_f32<float> = true;

using Bits32 = unsigned int;

/// How operands lie for products: as f32, which takes one inner index a step.
struct Single {
  using Element = float;
  static constexpr Index step = 1;
  static F32 splat(const float* a) { return RLX_LEVEL::splat(*a); }
  static F32 load(const float* b) { return RLX_LEVEL::load(b); }
  static F32 load(const float* b, Index n) { return RLX_LEVEL::load(b, n, RLX_LEVEL::splat(0.0f)); }
  static F32 multiply_add(F32 x, F32 y, F32 sum) { return fma(x, y, sum); }
};
#if defined(__AVX512BF16__)
/// As pairs of bf16 at adjacent inner indices.
struct Paired {
  using Element = Bits32;
  struct Pack {
    __m512i v;
  };
  static constexpr Index step = 2;
  static Pack splat(const Bits32* a) {
    int pair;
    __builtin_memcpy(&pair, reinterpret_cast<const char*>(a), sizeof pair);
    return {_mm512_set1_epi32(pair)};
  }
  static Pack load(const Bits32* b) { return {_mm512_loadu_si512(b)}; }
  static Pack load(const Bits32* b, Index n) { return {_mm512_maskz_loadu_epi32(first(n), b)}; }
  static F32 multiply_add(Pack x, Pack y, F32 sum) {
    return {_mm512_dpbf16_ps(sum.v, reinterpret_cast<__m512bh>(x.v), reinterpret_cast<__m512bh>(y.v))};
  }
};
#endif
template <class T>
struct FormOf {
  using type = Single;
};
#if defined(__AVX512BF16__)
template <>
struct FormOf<StoredBF16> {
  using type = Paired;
};
#endif
template <class T>
using Form = typename FormOf<T>::type;
template <class T>
inline constexpr bool in_pairs = Form<T>::step == 2;

/// Memory of one item.
template <class T>
struct Work {
  using Element = typename Form<T>::Element;
  static constexpr Index copied = is_f32<T> ? 1 : AttentionCall::max_size;
  alignas(64) float sums[AttentionCall::block_size];             // of weighted values, a row each
  alignas(64) float weights[AttentionCall::block_rows * lanes];  // sums of weights, in lanes
  alignas(64) float scores[strip * tile], exponentials[strip * tile];
  alignas(64) float tops[strip * lanes];                     // largest scores of a tile, in lanes
  alignas(64) float limits[tile], row_limits[tile];          // -inf for hidden keys, else +inf
  alignas(64) Element keys[AttentionCall::max_size * tile];  // the tile of keys, transposed
  alignas(64) Element values[copied * tile];                 // the tile of values of a half type
  alignas(64) Element queries[strip * copied];
  float top[AttentionCall::block_rows];                                     // largest scores so far
  Index query[AttentionCall::block_rows], head[AttentionCall::block_rows];  // of every row
  const void* from[AttentionCall::block_rows];                              // the query of every row
};

/// One item: rows [first, first + count) of one head of k and v of one batch.
struct Item {
  Index batch, kv_head, first, count;
};

/// Keys [begin, end).
struct Keys {
  Index begin, end;
  bool empty() const { return begin >= end; }
};

inline Index least(Index a, Index b) { return a < b ? a : b; }
inline Index most(Index a, Index b) { return a < b ? b : a; }
inline Index up(Index n, Index to) { return (n + to - 1) / to * to; }
inline Index down(Index n, Index to) { return n / to * to; }

/// Rows of q, k and v of the item to come, fetched into the second cache piece by piece: heads lie apart in memory, so
/// that no prefetcher of the machine sees a pattern.
class Ahead {
 public:
  template <class T>
  void add(const T* first, Index stride, Index count, Index size) {
    rows_[n_++] = {reinterpret_cast<const char*>(first), stride * Index{sizeof(T)}, count, size * Index{sizeof(T)}};
  }
  /// The next `count` rows of each.
  void fetch(Index count) {
    for (int i = 0; i < n_; ++i) {
      Rows& r = rows_[i];
      for (Index k = least(count, r.left); k > 0; --k, --r.left, r.at += r.stride) {
        for (Index byte = 0; byte < r.bytes; byte += 64) __builtin_prefetch(r.at + byte, 0, 2);
      }
    }
  }

 private:
  struct Rows {
    const char* at;
    Index stride, left, bytes;
  };
  Rows rows_[3];
  int n_ = 0;
};

/// The keys that a query's position shows.
inline Keys seen(const AttentionCall& c, Index query) {
  if (!c.by_position) return {0, c.keys};
  const Index position = c.offset + query;
  return {most(0, position - c.window + 1), least(c.keys, position + 1)};
}
inline Keys seen_in(const AttentionCall& c, Index query, Index start, Index count) {
  const Keys all = seen(c, query);
  return {most(0, all.begin - start), least(count, all.end - start)};
}
/// What some queries see of a tile: what any of them sees, and whether all see all of it.
struct Seen {
  Keys any;
  bool all;
};
inline Seen seen_by(const AttentionCall& c, const Index* queries, Index count, Index start, Index keys) {
  if (!c.by_position) return {{0, keys}, true};
  Keys any{keys, 0};
  bool all = true;
  for (Index r = 0; r < count; ++r) {
    const Keys one = seen_in(c, queries[r], start, keys);
    all = all && one.begin == 0 && one.end == keys;
    if (!one.empty()) any = {least(any.begin, one.begin), most(any.end, one.end)};
  }
  return {any, all};
}

// --- a tile of keys and values ---

inline __m128 load_four(const float* p) { return _mm_loadu_ps(p); }
#if defined(__AVX2__)
inline __m128 load_four(const StoredF16* p) {
  return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
#else
inline __m128 load_four(const StoredF16* p) { return _mm_setr_ps(widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])); }
#endif
inline __m128 load_four(const StoredBF16* p) {
  const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(half), 16));
}
inline float widen(float x) { return x; }

/// to[e * tile + j] = element e of key j; keys behind the last up to a whole pack are 0.
template <class T>
inline void transpose_keys(const T* k, Index stride, Index count, Index size, float* to) {
  Index j = 0;
  for (; j + 4 <= count; j += 4, k += 4 * stride) {
    Index e = 0;
    for (; e + 4 <= size; e += 4) {
      __m128 a = load_four(k + e), b = load_four(k + stride + e);
      __m128 c = load_four(k + 2 * stride + e), d = load_four(k + 3 * stride + e);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      _mm_store_ps(to + e * tile + j, a);
      _mm_store_ps(to + (e + 1) * tile + j, b);
      _mm_store_ps(to + (e + 2) * tile + j, c);
      _mm_store_ps(to + (e + 3) * tile + j, d);
    }
    for (; e < size; ++e) {
      for (Index i = 0; i < 4; ++i) to[e * tile + j + i] = widen(k[i * stride + e]);
    }
  }
  for (; j < count; ++j, k += stride) {
    for (Index e = 0; e < size; ++e) to[e * tile + j] = widen(k[e]);
  }
  for (; j < up(count, lanes); ++j) {
    for (Index e = 0; e < size; ++e) to[e * tile + j] = 0;
  }
}

/// A sum that is 0 as long as all that was added is finite.
struct Finite {
  F32 sum = splat(0.0f);
  F32 add(F32 x) {
    sum = fma(x, splat(0.0f), sum);
    return x;
  }
  bool all() const {
    const float total = fold(sum, [](float a, float b) { return a + b; });
    return total == total;
  }
};

/// Values as f32, in whole packs. Whether all are finite.
template <class T>
inline bool copy_values(const T* v, Index stride, Index count, Index size, float* to) {
  Finite finite;
  for (Index j = 0; j < count; ++j, v += stride, to += up(size, lanes)) {
    Index e = 0;
    for (; e + lanes <= size; e += lanes) store(to + e, finite.add(load(v + e)));
    if (e < size) store(to + e, finite.add(load(v + e, size - e, splat(0.0f))));
  }
  return finite.all();
}

#if defined(__AVX512BF16__)
inline Bits32 pair_of(const StoredBF16* low, const StoredBF16* high) {
  return (low ? low->bits : 0u) | static_cast<Bits32>(high ? high->bits : 0u) << 16;
}

/// to[e * tile + j] = elements 2e and 2e + 1 of key j; keys behind the last up to a whole pack, and an element behind
/// the last, are 0.
inline void transpose_keys(const StoredBF16* k, Index stride, Index count, Index size, Bits32* to) {
  Index j = 0;
  const auto four = [](const StoredBF16* p) { return _mm_loadu_ps(reinterpret_cast<const float*>(p)); };
  for (; j + 4 <= count; j += 4, k += 4 * stride) {
    Index e = 0;
    for (; e + 8 <= size; e += 8) {
      __m128 a = four(k + e), b = four(k + stride + e), c = four(k + 2 * stride + e), d = four(k + 3 * stride + e);
      _MM_TRANSPOSE4_PS(a, b, c, d);
      float* const line = reinterpret_cast<float*>(to + e / 2 * tile + j);
      _mm_store_ps(line, a);
      _mm_store_ps(line + tile, b);
      _mm_store_ps(line + 2 * tile, c);
      _mm_store_ps(line + 3 * tile, d);
    }
    for (; e < size; e += 2) {
      for (Index i = 0; i < 4; ++i) {
        const StoredBF16* const x = k + i * stride + e;
        to[e / 2 * tile + j + i] = pair_of(x, e + 1 < size ? x + 1 : nullptr);
      }
    }
  }
  for (; j < up(count, lanes); ++j, k += stride) {
    for (Index e = 0; e < size; e += 2) {
      to[e / 2 * tile + j] = j < count ? pair_of(k + e, e + 1 < size ? k + e + 1 : nullptr) : 0;
    }
  }
}

/// to[j * width + e] = element e of values 2j and 2j + 1, width being `size` up to whole packs; what is behind the last
/// is 0. Whether all are finite.
inline bool copy_values(const StoredBF16* v, Index stride, Index count, Index size, Bits32* to) {
  const __m512i magnitude = _mm512_set1_epi16(0x7FFF), infinity = _mm512_set1_epi16(0x7F80);
  __mmask32 wrong = 0;
  for (Index j = 0; j < count; j += 2, v += 2 * stride) {
    for (Index e = 0; e < size; e += lanes, to += lanes) {
      const __mmask16 some = first(least(lanes, size - e));
      const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, v + e));
      const __m512i high = j + 1 < count ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, v + stride + e))
                                         : _mm512_setzero_si512();
      const __m512i pairs = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
      wrong |= _mm512_cmpge_epu16_mask(_mm512_and_si512(pairs, magnitude), infinity);
      _mm512_store_si512(to, pairs);
    }
  }
  return wrong == 0;
}
#endif

inline bool all_finite(const float* v, Index stride, Index count, Index size) {
  Finite finite;
  for (Index j = 0; j < count; ++j, v += stride) {
    Index e = 0;
    for (; e + lanes <= size; e += lanes) finite.add(load(v + e));
    if (e < size) finite.add(load(v + e, size - e, splat(0.0f)));
  }
  return finite.all();
}

// --- the fourth operand ---

template <class V>
inline void limit_integers(const V* p, Index stride, Index count, float* to) {
  for (Index j = 0; j < count; ++j) to[j] = p[j * stride] != 0 ? inf : -inf;
}
template <class V>
inline void limit_floats(const V* p, Index stride, Index count, float* to) {
  for (Index j = 0; j < count; ++j) to[j] = widen(p[j * stride]) >= 0.5f ? inf : -inf;
}

/// Whether the fourth operand is the same for all rows of an item.
inline bool shared_limits(const AttentionCall& c) { return c.extra_head == 0 && c.extra_query == 0; }
inline bool hides(const AttentionCall& c) { return c.operand > AttentionOperand::bias; }
/// Whether anything may hide keys or count as hidden.
inline bool masked(const AttentionCall& c) { return c.by_position || c.operand != AttentionOperand::none; }

inline Index extra_at(const AttentionCall& c, Index batch, Index head, Index query, Index key) {
  return batch * c.extra_batch + head * c.extra_head + query * c.extra_query + key * c.extra_key;
}

/// Limits of `count` keys from element `at` of the fourth operand on.
inline void read_limits(const AttentionCall& c, Index at, Index count, float* to) {
  const auto from = [&](auto* type) { return static_cast<decltype(type)>(c.extra) + at; };
  const Index step = c.extra_key;
  switch (c.operand) {
    case AttentionOperand::none:
    case AttentionOperand::bias:
      return;
    case AttentionOperand::int8:
      return limit_integers(from(static_cast<const char*>(nullptr)), step, count, to);
    case AttentionOperand::int16:
      return limit_integers(from(static_cast<const short*>(nullptr)), step, count, to);
    case AttentionOperand::int32:
      return limit_integers(from(static_cast<const int*>(nullptr)), step, count, to);
    case AttentionOperand::int64:
      return limit_integers(from(static_cast<const long*>(nullptr)), step, count, to);
    case AttentionOperand::f16:
      return limit_floats(from(static_cast<const StoredF16*>(nullptr)), step, count, to);
    case AttentionOperand::bf16:
      return limit_floats(from(static_cast<const StoredBF16*>(nullptr)), step, count, to);
    case AttentionOperand::f32:
      return limit_floats(from(static_cast<const float*>(nullptr)), step, count, to);
    case AttentionOperand::f64: {
      const double* p = from(static_cast<const double*>(nullptr));
      for (Index j = 0; j < count; ++j) to[j] = p[j * step] >= 0.5 ? inf : -inf;
    }
  }
}

// --- scores ---

/// Hyperbolic tangent within 1e-7 of |x| or of 1: a polynomial near 0, else from e^(-2|x|).
inline F32 tanh_of(F32 x) {
  const F32 size = abs(x), e = exp(size * splat(-2.0f));
  const F32 far = (splat(1.0f) - e) / (splat(1.0f) + e);
  const F32 s = x * x;
  F32 p = splat(-0.00145583438f);
  const float series[] = {0.00359212803f, -0.00886323552f, 0.0218694885f, -0.0539682540f, 0.133333333f, -0.333333333f};
  for (const float f : series) p = fma(p, s, splat(f));
  const F32 near = fma(p * s, x, x);
  return select(less(size, splat(0.55f)), near, copysign(far, x));
}

// Loaded from 16 - n on, the first n lanes show their keys, or hide them.
alignas(64) inline constexpr float first_seen[32] = {inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,
                                                     inf,  inf,  inf,  inf,  inf,  -inf, -inf, -inf, -inf, -inf, -inf,
                                                     -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf};
alignas(64) inline constexpr float first_hidden[32] = {-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf,
                                                       -inf, -inf, -inf, -inf, -inf, inf,  inf,  inf,  inf,  inf,  inf,
                                                       inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf};

/// What changes the scores of one row of a tile.
template <class T>
struct Edits {
  const float* limits = nullptr;  // of the tile's keys
  const T* bias = nullptr;        // of the tile's keys
  Index bias_step = 0;
  Index keys = 0;  // in the tile
  float scale = 1, soft_cap = 0;
  Keys visible{0, 0};

  F32 bias_at(Index j) const {
    const Index n = least(lanes, keys - j);
    if (bias_step == 1) return n == lanes ? load(bias + j) : load(bias + j, n, splat(0.0f));
    return splat(widen(bias[0]));
  }
  F32 apply(F32 s, Index j) const {
    s = s * splat(scale);
    if (soft_cap > 0) s = splat(soft_cap) * tanh_of(s / splat(soft_cap));
    if (bias) s = s + bias_at(j);
    // The smaller of a NaN and a limit is the limit: hidden keys are -inf whatever they hold.
    if (limits) s = min_or_second(s, load(limits + j));
    if (j < visible.begin) s = min_or_second(s, load(first_hidden + 16 - least(visible.begin - j, lanes)));
    if (j + lanes > visible.end) s = min_or_second(s, load(first_seen + 16 - least(most(visible.end - j, 0), lanes)));
    return s;
  }
};

inline float largest(F32 a) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(a.v);
#else
  return fold(a, [](float x, float y) { return x < y ? y : x; });
#endif
}

/// Edits the scores of packs [begin, end) of keys in place; returns the largest, NaN left out.
template <class T>
inline float edit_scores(const Edits<T>& edits, float* scores, Keys packs) {
  F32 top = splat(-inf);
  for (Index j = packs.begin; j < packs.end; j += lanes) {
    const F32 s = edits.apply(load(scores + j), j);
    store(scores + j, s);
    top = max_or_second(s, top);
  }
  return largest(top);
}

/// Whether scores stay as the product gives them, to be scaled where weights are taken; else they are edited first.
inline bool scales_late(const AttentionCall& c) {
  return c.soft_cap == 0 && c.operand != AttentionOperand::bias && c.scale > 0x1p-60f && c.scale < 0x1p60f;
}
/// The scale of scores that are powers of two.
inline float late_scale(const AttentionCall& c) { return static_cast<float>(c.scale * 1.4426950408889634); }

/// 2^x within 1 ulp for x up to 1 and NaN: 2^n times 2^r, |r| <= 1/2, the error of the minimax polynomial 2^-28.
inline F32 power_of_two_at(F32 x) {
  // Below this bound the result is 0.
  x = max_or_second(splat(-150.0f), x);
  const F32 n = round(x), r = x - n;
  F32 p = splat(0.00015353362f);
  const float series[] = {0.0013398875f, 0.009618438f, 0.055503324f, 0.24022648f, 0.6931472f, 1.0f};
#pragma GCC unroll 6
  for (const float f : series) p = fma(p, r, splat(f));
  return times_power_of_two(p, n);
}

/// to = e^(scores - top), or 2^(scale * scores - top) where late; adds the sum to the lanes of `weights`, which were
/// scaled before. Where T is bf16 and taken in pairs, `to` has bf16, whose sum is meant; it may be where the scores
/// are.
template <class T, bool late>
inline void weigh(const float* scores, float* to, Keys packs, float scale, float top, float* weights) {
  F32 sum = load(weights);
  for (Index j = packs.begin; j < packs.end; j += lanes) {
    const F32 s = load(scores + j);
    const F32 e = late ? power_of_two_at(fma(s, splat(scale), splat(-top))) : exp(s - splat(top));
    if constexpr (in_pairs<T>) {
      T* const rounded = reinterpret_cast<T*>(to) + j;
      store(rounded, e);
      sum = sum + load(rounded);
    } else {
      store(to + j, e);
      sum = sum + e;
    }
  }
  store(weights, sum);
}

}  // namespace rlx::RLX_LEVEL::attention_tiles
