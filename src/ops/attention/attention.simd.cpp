// Kernels of attention, compiled once per level: tiles of keys anchored at key 0, softmax carried from tile to tile.
#include "core/simd_float.h"
#include "ops/attention/attention.kernel.h"

namespace rlx::RLX_LEVEL {

namespace {

constexpr Index lanes = F32::lanes;
constexpr Index tile = 128;   // keys; the order of all sums depends on it
constexpr Index abreast = 6;  // rows that share every load of keys and values
#if defined(__AVX512F__)
constexpr int packs_abreast = 4;
#else
constexpr int packs_abreast = 2;
#endif
constexpr float inf = __builtin_inff();

template <class T>
constexpr bool is_f32 = false;
template <>
constexpr bool is_f32<float> = true;

/// Memory of one item.
template <class T>
struct Work {
  static constexpr Index copied = is_f32<T> ? 1 : AttentionCall::max_size;
  alignas(64) float sums[AttentionCall::block_size];             // of weighted values, a row each
  alignas(64) float weights[AttentionCall::block_rows * lanes];  // sums of weights, in lanes
  alignas(64) float scores[abreast * tile], exponentials[abreast * tile];
  alignas(64) float limits[tile], row_limits[tile];        // -inf for hidden keys, else +inf
  alignas(64) float keys[AttentionCall::max_size * tile];  // the tile of keys, transposed
  alignas(64) float values[copied * tile];                 // the tile of values of a half type
  alignas(64) float queries[abreast * copied];
  float top[AttentionCall::block_rows];                                     // largest scores so far
  Index query[AttentionCall::block_rows], head[AttentionCall::block_rows];  // of every row
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

Index least(Index a, Index b) { return a < b ? a : b; }
Index most(Index a, Index b) { return a < b ? b : a; }
Index up(Index n, Index to) { return (n + to - 1) / to * to; }
Index down(Index n, Index to) { return n / to * to; }

/// The keys that a query's position shows.
Keys seen(const AttentionCall& c, Index query) {
  if (!c.by_position) return {0, c.keys};
  const Index position = c.offset + query;
  return {most(0, position - c.window + 1), least(c.keys, position + 1)};
}
Keys seen_in(const AttentionCall& c, Index query, Index start, Index count) {
  const Keys all = seen(c, query);
  return {most(0, all.begin - start), least(count, all.end - start)};
}
/// What some queries see of a tile: what any of them sees, and whether all see all of it.
struct Seen {
  Keys any;
  bool all;
};
Seen seen_by(const AttentionCall& c, const Index* queries, Index count, Index start, Index keys) {
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

__m128 load_four(const float* p) { return _mm_loadu_ps(p); }
#if defined(__AVX2__)
__m128 load_four(const StoredF16* p) { return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))); }
#else
__m128 load_four(const StoredF16* p) { return _mm_setr_ps(widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])); }
#endif
__m128 load_four(const StoredBF16* p) {
  const __m128i half = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(half), 16));
}
float widen(float x) { return x; }

/// to[e * tile + j] = element e of key j; keys behind the last up to a whole pack are 0.
template <class T>
void transpose_keys(const T* k, Index stride, Index count, Index size, float* to) {
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

template <class T>
void copy_values(const T* v, Index stride, Index count, Index size, float* to) {
  for (Index j = 0; j < count; ++j, v += stride, to += up(size, lanes)) {
    Index e = 0;
    for (; e + lanes <= size; e += lanes) store(to + e, load(v + e));
    if (e < size) store(to + e, load(v + e, size - e, splat(0.0f)));
  }
}

bool all_finite(const float* v, Index stride, Index count, Index size) {
  F32 found = splat(0.0f);
  for (Index j = 0; j < count; ++j, v += stride) {
    Index e = 0;
    for (; e + lanes <= size; e += lanes) found = fma(load(v + e), splat(0.0f), found);
    if (e < size) found = fma(load(v + e, size - e, splat(0.0f)), splat(0.0f), found);
  }
  const float sum = fold(found, [](float a, float b) { return a + b; });
  return sum == sum;
}

// --- the fourth operand ---

template <class V>
void limit_integers(const V* p, Index stride, Index count, float* to) {
  for (Index j = 0; j < count; ++j) to[j] = p[j * stride] != 0 ? inf : -inf;
}
template <class V>
void limit_floats(const V* p, Index stride, Index count, float* to) {
  for (Index j = 0; j < count; ++j) to[j] = widen(p[j * stride]) >= 0.5f ? inf : -inf;
}

/// Whether the fourth operand is the same for all rows of an item.
bool shared_limits(const AttentionCall& c) { return c.extra_head == 0 && c.extra_query == 0; }
bool hides(const AttentionCall& c) { return c.operand > AttentionOperand::bias; }
/// Whether anything may hide keys or count as hidden.
bool masked(const AttentionCall& c) { return c.by_position || c.operand != AttentionOperand::none; }

Index extra_at(const AttentionCall& c, Index batch, Index head, Index query, Index key) {
  return batch * c.extra_batch + head * c.extra_head + query * c.extra_query + key * c.extra_key;
}

/// Limits of `count` keys from element `at` of the fourth operand on.
void read_limits(const AttentionCall& c, Index at, Index count, float* to) {
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
F32 tanh_of(F32 x) {
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
alignas(64) constexpr float first_seen[32] = {inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,
                                              inf,  inf,  inf,  inf,  inf,  -inf, -inf, -inf, -inf, -inf, -inf,
                                              -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf};
alignas(64) constexpr float first_hidden[32] = {-inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf, -inf,
                                                -inf, -inf, -inf, -inf, -inf, inf,  inf,  inf,  inf,  inf,  inf,
                                                inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf,  inf};

/// What changes the scores of one row of a tile.
template <class T>
struct Edits {
  const float* limits = nullptr;  // of the tile's keys
  const T* bias = nullptr;        // of the tile's keys
  Index bias_step = 0;
  Index keys = 0;  // in the tile
  float soft_cap = 0;
  Keys visible{0, 0};

  F32 bias_at(Index j) const {
    const Index n = least(lanes, keys - j);
    if (bias_step == 1) return n == lanes ? load(bias + j) : load(bias + j, n, splat(0.0f));
    return splat(widen(bias[0]));
  }
  F32 apply(F32 s, Index j) const {
    if (soft_cap > 0) s = splat(soft_cap) * tanh_of(s / splat(soft_cap));
    if (bias) s = s + bias_at(j);
    // The smaller of a NaN and a limit is the limit: hidden keys are -inf whatever they hold.
    if (limits) s = min_or_second(s, load(limits + j));
    if (j < visible.begin) s = min_or_second(s, load(first_hidden + 16 - least(visible.begin - j, lanes)));
    if (j + lanes > visible.end) s = min_or_second(s, load(first_seen + 16 - least(most(visible.end - j, 0), lanes)));
    return s;
  }
};

float largest(F32 a) {
#if defined(__AVX512F__)
  return _mm512_reduce_max_ps(a.v);
#else
  return fold(a, [](float x, float y) { return x < y ? y : x; });
#endif
}

/// Edits the scores of packs [begin, end) of keys in place; returns the largest, NaN left out.
template <class T>
float edit_scores(const Edits<T>& edits, float* scores, Keys packs) {
  F32 top = splat(-inf);
  for (Index j = packs.begin; j < packs.end; j += lanes) {
    const F32 s = edits.apply(load(scores + j), j);
    store(scores + j, s);
    top = max_or_second(s, top);
  }
  return largest(top);
}

/// to = e^(scores - top); adds the sum to the lanes of `weights`, which were scaled before.
void weigh(const float* scores, float* to, Keys packs, float top, float* weights) {
  F32 sum = load(weights);
  for (Index j = packs.begin; j < packs.end; j += lanes) {
    const F32 e = exp(load(scores + j) - splat(top));
    store(to + j, e);
    sum = sum + e;
  }
  store(weights, sum);
}

// --- products ---

/// c[i][..] = factor[i] * c[i][..] + sum over e of a[i][e] * b[e][..], or without the first term, then scaled, and
/// tops[i], one pack a row, takes what is larger, NaN left out; one chain of fma in ascending e. `tail` lanes of the
/// last pack of b exist.
template <int rows, int packs, bool whole, bool keep>
void product(const float* const* a, const float* b, Index stride, Index depth, float* const* c, const float* factor,
             Index tail, [[maybe_unused]] float* tops) {
  F32 sum[rows][packs];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) sum[i][p] = keep ? load(c[i] + p * lanes) * splat(factor[i]) : splat(0.0f);
  }
  const float* at[rows];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) at[i] = a[i];
  for (Index e = 0; e < depth; ++e, b += stride) {
    F32 x[packs];
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) {
      x[p] = whole || p + 1 < packs ? load(b + p * lanes) : load(b + p * lanes, tail, splat(0.0f));
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const F32 y = splat(at[i][e]);
#pragma GCC unroll 4
      for (int p = 0; p < packs; ++p) sum[i][p] = fma(y, x[p], sum[i][p]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
    F32 top = keep ? splat(0.0f) : load(tops + i * lanes);
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) {
      const F32 s = keep ? sum[i][p] : sum[i][p] * splat(factor[i]);
      store(c[i] + p * lanes, s);
      if constexpr (!keep) top = max_or_second(s, top);
    }
    if constexpr (!keep) store(tops + i * lanes, top);
  }
}

/// product() over `width` columns, a multiple of lanes but for keep, where the rest of b's last pack is absent.
template <int rows, bool keep>
void products(const float* const* a, const float* b, Index stride, Index depth, float* const* c, const float* factor,
              Index width, float* tops = nullptr) {
  float* to[rows];
  for (Index w = 0; w < width; w += packs_abreast * lanes) {
    for (int i = 0; i < rows; ++i) to[i] = c[i] + w;
    const Index rest = least(width - w, packs_abreast * lanes), packs = (rest + lanes - 1) / lanes;
    const Index tail = rest - (packs - 1) * lanes;
    const auto run = [&]<int n>() {
      if (tail == lanes) return product<rows, n, true, keep>(a, b + w, stride, depth, to, factor, tail, tops);
      if constexpr (keep) product<rows, n, false, keep>(a, b + w, stride, depth, to, factor, tail, tops);
    };
    if (packs == 1) run.template operator()<1>();
    if (packs == 2) run.template operator()<2>();
    if constexpr (packs_abreast == 4) {
      if (packs == 3) run.template operator()<3>();
      if (packs == 4) run.template operator()<4>();
    }
  }
}

/// The same sums as products<1, true>, leaving out hidden keys, whose values may be anything.
void visible_product(const float* weights, const float* scores, const float* b, Index stride, Index depth, float* c,
                     float factor, Index width) {
  for (Index w = 0; w < width; w += lanes) {
    const Index n = least(lanes, width - w);
    F32 sum = load(c + w) * splat(factor);
    for (Index e = 0; e < depth; ++e) {
      if (scores[e] == -inf) continue;
      const float* p = b + e * stride + w;
      sum = fma(splat(weights[e]), n == lanes ? load(p) : load(p, n, splat(0.0f)), sum);
    }
    store(c + w, sum);
  }
}

// --- one tile for some rows ---

/// A tile in memory.
struct Tile {
  Index start = 0, count = 0;  // keys
  const float* values = nullptr;
  Index value_stride = 0;
  Index width = 0;     // elements of a value, padding included
  bool finite = true;  // else hidden values must not be read
};

/// `row` counts from the item's first.
template <class T>
Edits<T> edits_of(const AttentionCall& c, const Item& item, const Tile& t, Index row, Work<T>& w) {
  const Index query = w.query[row], at = extra_at(c, item.batch, w.head[row], query, t.start);
  Edits<T> e{.keys = t.count, .soft_cap = c.soft_cap, .visible = seen_in(c, query, t.start, t.count)};
  if (c.operand == AttentionOperand::bias) {
    e.bias = static_cast<const T*>(c.extra) + at;
    e.bias_step = c.extra_key;
  } else if (hides(c)) {
    e.limits = shared_limits(c) ? w.limits : w.row_limits;
    if (!shared_limits(c)) read_limits(c, at, t.count, w.row_limits);
  }
  return e;
}

/// Pointers to `rows` queries as f32.
template <class T, int rows>
void queries_of(const AttentionCall& c, const Item& item, Index first, Work<T>& w, const float** to) {
  for (int i = 0; i < rows; ++i) {
    const T* q = static_cast<const T*>(c.q) + item.batch * c.q_at.batch + w.head[first + i] * c.q_at.head +
                 w.query[first + i] * c.q_at.position;
    if constexpr (is_f32<T>) {
      to[i] = q;
    } else {
      float* copy = w.queries + i * AttentionCall::max_size;
      for (Index e = 0; e < c.size; ++e) copy[e] = widen(q[e]);
      to[i] = copy;
    }
  }
}

/// Adds the values of a tile, weighted, to the sums of `rows` rows from the item's row `first` on.
template <class T, int rows>
void tile_rows(const AttentionCall& c, const Item& item, const Tile& t, Index first, Work<T>& w) {
  const auto [any, all] = seen_by(c, w.query + first, rows, t.start, t.count);
  if (any.empty()) return;
  const Keys packs{down(any.begin, lanes), up(any.end, lanes)};
  const Index width = up(c.value_size, lanes);
  const float *from[rows], *values = t.values + any.begin * t.value_stride;
  float *to[rows], factor[2 * lanes], tops[rows * lanes];
  for (int i = 0; i < rows; ++i) {
    to[i] = w.scores + i * tile + packs.begin;
    factor[i] = c.scale;
    store(tops + i * lanes, splat(-inf));
  }
  queries_of<T, rows>(c, item, first, w, from);
  products<rows, false>(from, w.keys + packs.begin, tile, c.size, to, factor, packs.end - packs.begin, tops);

  const bool plain = all && c.soft_cap == 0 && c.operand == AttentionOperand::none && packs.end == t.count;
  float top[rows];
  for (int i = 0; i < rows; ++i) {
    const float now = plain ? largest(load(tops + i * lanes))
                            : edit_scores(edits_of(c, item, t, first + i, w), w.scores + i * tile, packs);
    const float before = w.top[first + i], joined = now > before ? now : before;
    w.top[first + i] = joined;
    // Nothing is visible yet: any finite number keeps the weights 0.
    top[i] = masked(c) && joined == -inf ? 0 : joined;
    factor[i] = before - top[i];
  }
  for (Index i = 0; i < rows; i += lanes) store(factor + i, exp(load(factor + i)));
  for (int i = 0; i < rows; ++i) {
    float* weights = w.weights + (first + i) * lanes;
    store(weights, load(weights) * splat(factor[i]));
    weigh(w.scores + i * tile, w.exponentials + i * tile, packs, top[i], weights);
    from[i] = w.exponentials + i * tile + any.begin;
    to[i] = w.sums + (first + i) * width;
  }
  if (t.finite) return products<rows, true>(from, values, t.value_stride, any.end - any.begin, to, factor, t.width);
  for (int i = 0; i < rows; ++i) {
    visible_product(from[i], w.scores + i * tile + any.begin, values, t.value_stride, any.end - any.begin, to[i],
                    factor[i], t.width);
  }
}

// --- items ---

template <class T>
Tile make_tile(const AttentionCall& c, const Item& item, Index start, Work<T>& w) {
  Tile t{.start = start, .count = least(tile, c.keys - start)};
  const T* k = static_cast<const T*>(c.k) + item.batch * c.k_at.batch + item.kv_head * c.k_at.head;
  const T* v = static_cast<const T*>(c.v) + item.batch * c.v_at.batch + item.kv_head * c.v_at.head;
  transpose_keys(k + start * c.k_at.position, c.k_at.position, t.count, c.size, w.keys);
  v += start * c.v_at.position;
  if constexpr (is_f32<T>) {
    t.values = v;
    t.value_stride = c.v_at.position;
    t.width = c.value_size;
  } else {
    copy_values(v, c.v_at.position, t.count, c.value_size, w.values);
    t.values = w.values;
    t.value_stride = t.width = up(c.value_size, lanes);
  }
  t.finite = !masked(c) || all_finite(t.values, t.value_stride, t.count, t.width);
  if (hides(c) && shared_limits(c)) read_limits(c, extra_at(c, item.batch, 0, 0, start), t.count, w.limits);
  return t;
}

template <class T>
void write_rows(const AttentionCall& c, const Item& item, Work<T>& w) {
  for (Index r = 0; r < item.count; ++r) {
    const float* from = w.sums + r * up(c.value_size, lanes);
    T* to = static_cast<T*>(c.out) + item.batch * c.out_at.batch + w.head[r] * c.out_at.head +
            w.query[r] * c.out_at.position;
    const float total = fold(load(w.weights + r * lanes), [](float a, float b) { return a + b; });
    // A sum of 0: no key is visible.
    const F32 one = splat(total == 0 ? 1.0f : total);
    Index e = 0;
    for (; e + lanes <= c.value_size; e += lanes) store(to + e, load(from + e) / one);
    if (e < c.value_size) store(to + e, load(from + e) / one, c.value_size - e);
  }
}

template <class T>
void run_item(const AttentionCall& c, const Item& item, Work<T>& w) {
  const Index width = up(c.value_size, lanes);
  Keys any{c.keys, 0};
  for (Index r = 0; r < item.count; ++r) {
    w.query[r] = (item.first + r) % c.queries;
    w.head[r] = item.kv_head * c.group() + (item.first + r) / c.queries;
    w.top[r] = -inf;
    const Keys one = seen(c, w.query[r]);
    if (!one.empty()) any = {least(any.begin, one.begin), most(any.end, one.end)};
  }
  for (Index i = 0; i < item.count * lanes; i += lanes) store(w.weights + i, splat(0.0f));
  for (Index i = 0; i < item.count * width; i += lanes) store(w.sums + i, splat(0.0f));
  for (Index start = down(any.begin, tile); start < any.end; start += tile) {
    const Tile t = make_tile(c, item, start, w);
    Index r = 0;
    for (; r + 6 <= item.count; r += 6) tile_rows<T, 6>(c, item, t, r, w);
    if (r + 4 <= item.count) tile_rows<T, 4>(c, item, t, r, w), r += 4;
    if (r + 2 <= item.count) tile_rows<T, 2>(c, item, t, r, w), r += 2;
    if (r < item.count) tile_rows<T, 1>(c, item, t, r, w);
  }
  write_rows(c, item, w);
}

template <class T>
void items(const AttentionCall& c, Index begin, Index end) {
  Work<T> w;
  const Index blocks = c.blocks(), rows = c.group() * c.queries;
  for (Index i = begin; i < end; ++i) {
    const Index first = i % blocks * c.rows, head = i / blocks;
    run_item(c, {head / c.kv_heads, head % c.kv_heads, first, least(c.rows, rows - first)}, w);
  }
}

}  // namespace

const AttentionKernels attention_kernels{.f32 = items<float>, .f16 = items<StoredF16>, .bf16 = items<StoredBF16>};

}  // namespace rlx::RLX_LEVEL
