// Rows of queries against one tile of keys and values: scores, weights, sums. The kernels of attention and of
// paged_attention include this.
#pragma once

#include "ops/attention/attention_tile.h"

namespace rlx::RLX_LEVEL::attention_tiles {

// --- products ---

/// c[i][..] = factor[i] * c[i][..] + sum over e of a[i][e] * b[e][..], or without the first term, and
/// tops[i], one pack a row, takes what is larger, NaN left out; one chain of multiply-adds in ascending e, `depth`
/// steps of a form D. `tail` lanes of the last pack of b exist.
template <class D, int rows, int packs, bool whole, bool keep>
void product(const typename D::Element* const* a, const typename D::Element* b, Index stride, Index depth,
             float* const* c, [[maybe_unused]] const float* factor, Index tail, [[maybe_unused]] float* tops) {
  F32 sum[rows][packs];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) sum[i][p] = keep ? load(c[i] + p * lanes) * splat(factor[i]) : splat(0.0f);
  }
  const typename D::Element* at[rows];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) at[i] = a[i];
  for (Index e = 0; e < depth; ++e, b += stride) {
    decltype(D::load(b)) x[packs];
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) {
      x[p] = whole || p + 1 < packs ? D::load(b + p * lanes) : D::load(b + p * lanes, tail);
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const auto y = D::splat(at[i] + e);
#pragma GCC unroll 4
      for (int p = 0; p < packs; ++p) sum[i][p] = D::multiply_add(y, x[p], sum[i][p]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
    F32 top = keep ? splat(0.0f) : load(tops + i * lanes);
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) {
      store(c[i] + p * lanes, sum[i][p]);
      if constexpr (!keep) top = max_or_second(sum[i][p], top);
    }
    if constexpr (!keep) store(tops + i * lanes, top);
  }
}

/// product() over at most packs_abreast packs of columns, whole ones but for keep, where the rest of b's last pack is
/// absent.
template <class D, int rows, bool keep>
void panel(const typename D::Element* const* a, const typename D::Element* b, Index stride, Index depth,
           float* const* c, const float* factor, Index width, float* tops) {
  const Index packs = (width + lanes - 1) / lanes, tail = width - (packs - 1) * lanes;
  const auto run = [&]<int n>() {
    if (tail == lanes) return product<D, rows, n, true, keep>(a, b, stride, depth, c, factor, tail, tops);
    if constexpr (keep) product<D, rows, n, false, keep>(a, b, stride, depth, c, factor, tail, tops);
  };
  if (packs == 1) run.template operator()<1>();
  if (packs == 2) run.template operator()<2>();
  if constexpr (packs_abreast == 4) {
    if (packs == 3) run.template operator()<3>();
    if (packs == 4) run.template operator()<4>();
  }
}

/// panel() of 1, 2, 4 or 6 rows.
template <class D, bool keep>
void panel(Index rows, const typename D::Element* const* a, const typename D::Element* b, Index stride, Index depth,
           float* const* c, const float* factor, Index width, float* tops = nullptr) {
  if (rows == 6) return panel<D, 6, keep>(a, b, stride, depth, c, factor, width, tops);
  if (rows == 4) return panel<D, 4, keep>(a, b, stride, depth, c, factor, width, tops);
  if (rows == 2) return panel<D, 2, keep>(a, b, stride, depth, c, factor, width, tops);
  panel<D, 1, keep>(a, b, stride, depth, c, factor, width, tops);
}

/// The same sums as panel<D, true> for one row and any width, leaving out hidden keys, whose values may be anything.
template <class D>
void visible_product(const typename D::Element* weights, const float* scores, const typename D::Element* b,
                     Index stride, Index depth, float* c, float factor, Index width) {
  for (Index w = 0; w < width; w += lanes) {
    const Index n = least(lanes, width - w);
    F32 sum = load(c + w) * splat(factor);
    for (Index e = 0; e < depth; ++e) {
      if constexpr (D::step == 1) {
        if (scores[e] == -inf) continue;
        sum = D::multiply_add(D::splat(weights + e), D::load(b + e * stride + w, n), sum);
      } else {
        typename D::Element pairs[lanes];
        for (Index i = 0; i < lanes; ++i) {
          pairs[i] = i < n ? b[e * stride + w + i] : 0;
          if (scores[2 * e] == -inf) pairs[i] &= 0xFFFF0000u;
          if (scores[2 * e + 1] == -inf) pairs[i] &= 0xFFFFu;
        }
        sum = D::multiply_add(D::splat(weights + e), D::load(pairs), sum);
      }
    }
    store(c + w, sum);
  }
}

// --- one tile for some rows ---

/// A tile in memory.
template <class T>
struct Tile {
  Index start = 0, count = 0;  // keys
  const typename Form<T>::Element* values = nullptr;
  Index value_stride = 0;
  Index width = 0;     // elements of a value, padding included
  bool finite = true;  // else hidden values must not be read
  bool open = true;    // the fourth operand changes no score
};

/// `row` counts from the item's first.
template <class T>
Edits<T> edits_of(const AttentionCall& c, const Item& item, const Tile<T>& t, Index row, Work<T>& w) {
  const Index query = w.query[row], at = extra_at(c, item.batch, w.head[row], query, t.start);
  Edits<T> e{.keys = t.count,
             .scale = scales_late(c) ? 1 : c.scale,
             .soft_cap = c.soft_cap,
             .visible = seen_in(c, query, t.start, t.count)};
  if (c.operand == AttentionOperand::bias) {
    e.bias = static_cast<const T*>(c.extra) + at;
    e.bias_step = c.extra_key;
  } else if (hides(c)) {
    e.limits = shared_limits(c) ? w.limits : w.row_limits;
    if (!shared_limits(c)) read_limits(c, at, t.count, w.row_limits);
  }
  return e;
}

/// A query as products take it, in place or copied to `copy`.
template <class T>
const typename Form<T>::Element* query_of(const AttentionCall& c, Index row, Work<T>& w,
                                          [[maybe_unused]] typename Form<T>::Element* copy) {
  const T* q = static_cast<const T*>(w.from[row]);
  if constexpr (is_f32<T>) {
    return q;
  } else if constexpr (in_pairs<T>) {
    if (c.size % 2 == 0) return reinterpret_cast<const Bits32*>(q);
    copy[c.size / 2] = 0;
    __builtin_memcpy(copy, q, static_cast<unsigned long>(c.size) * sizeof *q);
    return copy;
  } else {
    Index e = 0;
    for (; e + lanes <= c.size; e += lanes) store(copy + e, load(q + e));
    for (; e < c.size; ++e) copy[e] = widen(q[e]);
    return copy;
  }
}

/// Some rows of a strip, at most `abreast`, that share what they see of a tile.
struct Part {
  Index first, rows;  // counted from the strip's first
  Keys any, packs;    // what any of them sees, and whole packs of that
  bool all;           // all see all of the tile
};
struct Parts {
  Part part[strip / abreast + 2];
  Index count = 0;
  const Part* begin() const { return part; }
  const Part* end() const { return part + count; }
};

/// The parts of a strip that see anything of the tile.
template <class T>
Parts parts_of(const AttentionCall& c, const Tile<T>& t, const Index* queries, Index rows) {
  Parts p;
  for (Index r = 0; r < rows;) {
    const Index left = rows - r, n = left >= abreast ? abreast : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    const auto [any, all] = seen_by(c, queries + r, n, t.start, t.count);
    if (!any.empty()) p.part[p.count++] = {r, n, any, {down(any.begin, lanes), up(any.end, lanes)}, all};
    r += n;
  }
  return p;
}

/// Products of the strip's queries and the tile's keys, and the largest of every row.
template <class T>
void score(const AttentionCall& c, const Parts& parts, Index first, Work<T>& w) {
  using D = Form<T>;
  const typename D::Element* from[strip];
  for (const Part& p : parts) {
    for (Index r = p.first; r < p.first + p.rows; ++r) {
      from[r] = query_of(c, first + r, w, w.queries + (is_f32<T> ? 0 : r * AttentionCall::max_size));
      store(w.tops + r * lanes, splat(-inf));
    }
  }
  constexpr Index width = packs_abreast * lanes;
  for (Index j = 0; j < tile; j += width) {
    for (const Part& p : parts) {
      const Keys k{most(j, p.packs.begin), least(j + width, p.packs.end)};
      if (k.empty()) continue;
      float* to[abreast];
      for (Index i = 0; i < p.rows; ++i) to[i] = w.scores + (p.first + i) * tile + k.begin;
      panel<D, false>(p.rows, from + p.first, w.keys + k.begin, tile, (c.size + D::step - 1) / D::step, to, nullptr,
                      k.end - k.begin, w.tops + p.first * lanes);
    }
  }
}

/// Turns the scores of a part into weights against the largest score so far; factor[i] is what the sums before count.
template <class T, bool late>
void weigh_part(const AttentionCall& c, const Item& item, const Tile<T>& t, const Part& p, Index first, float* factor,
                Work<T>& w) {
  const bool plain = late && p.all && t.open && p.packs.end == t.count;
  const float scale = late ? late_scale(c) : 1;
  float top[abreast], change[2 * lanes];
  for (Index i = 0; i < p.rows; ++i) {
    const Index r = p.first + i, row = first + r;
    const float now = plain ? largest(load(w.tops + r * lanes))
                            : edit_scores(edits_of(c, item, t, row, w), w.scores + r * tile, p.packs);
    const float before = w.top[row], joined = now > before ? now : before;
    w.top[row] = joined;
    // Nothing is visible yet: any finite number keeps the weights 0.
    top[i] = masked(c) && joined == -inf ? 0 : scale * joined;
    change[i] = scale * before - top[i];
  }
  for (Index i = 0; i < p.rows; i += lanes) {
    const F32 x = load(change + i);
    store(change + i, late ? power_of_two_at(x) : exp(x));
  }
  for (Index i = 0; i < p.rows; ++i) {
    const Index r = p.first + i;
    float *weights = w.weights + (first + r) * lanes, *scores = w.scores + r * tile;
    factor[i] = change[i];
    store(weights, load(weights) * splat(factor[i]));
    // Where hidden values must not be read, the scores still say which those are.
    weigh<T, late>(scores, t.finite ? scores : w.exponentials + r * tile, p.packs, scale, top[i], weights);
  }
}

/// Adds the values of a tile, weighted, to the sums of `rows` rows from the item's row `first` on.
template <class T>
void tile_rows(const AttentionCall& c, const Item& item, const Tile<T>& t, Index first, Index rows, Work<T>& w) {
  const Parts parts = parts_of(c, t, w.query + first, rows);
  const Index width = up(c.value_size, lanes), stride = t.value_stride;
  float factor[strip];
  score(c, parts, first, w);
  for (const Part& p : parts) {
    scales_late(c) ? weigh_part<T, true>(c, item, t, p, first, factor + p.first, w)
                   : weigh_part<T, false>(c, item, t, p, first, factor + p.first, w);
  }
  using D = Form<T>;
  // Steps over the keys that a part sees; keys beside them have weight 0, or are left out.
  const auto steps = [](const Part& p) { return Keys{p.any.begin / D::step, (p.any.end + D::step - 1) / D::step}; };
  const auto weights = [](const float* row) { return reinterpret_cast<const typename D::Element*>(row); };
  if (!t.finite) {
    for (const Part& p : parts) {
      const Keys k = steps(p);
      for (Index r = p.first; r < p.first + p.rows; ++r) {
        visible_product<D>(weights(w.exponentials + r * tile) + k.begin, w.scores + r * tile + k.begin * D::step,
                           t.values + k.begin * stride, stride, k.end - k.begin, w.sums + (first + r) * width,
                           factor[r], t.width);
      }
    }
    return;
  }
  for (Index e = 0; e < t.width; e += packs_abreast * lanes) {
    for (const Part& p : parts) {
      const Keys k = steps(p);
      const typename D::Element* from[abreast];
      float* to[abreast];
      for (Index i = 0; i < p.rows; ++i) {
        from[i] = weights(w.scores + (p.first + i) * tile) + k.begin;
        to[i] = w.sums + (first + p.first + i) * width + e;
      }
      panel<D, true>(p.rows, from, t.values + k.begin * stride + e, stride, k.end - k.begin, to, factor + p.first,
                     least(packs_abreast * lanes, t.width - e));
    }
  }
}

}  // namespace rlx::RLX_LEVEL::attention_tiles
