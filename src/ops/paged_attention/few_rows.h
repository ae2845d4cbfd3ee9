// Few queries against a tile of pooled keys and values: each is read once, where it lies, and goes no further than
// registers. The sums are those of attention_rows.h, in the same order.
#pragma once

#include "core/simd_turn.h"
#include "ops/attention/attention_rows.h"

namespace rlx::RLX_LEVEL::attention_tiles {

/// Where the keys or values of a tile lie.
template <class P>
struct Rows {
  const P* at[tile];
};

/// Rows of an item that are worth it: beyond, tiles that are brought into another form once pay.
inline constexpr Index few_rows = 8;
/// Rows that share every load.
inline constexpr int few_together = 4;

/// Whether head sizes are whole packs.
inline bool takes_few_rows(const AttentionCall& c, Index rows) {
  return rows <= few_rows && c.size % lanes == 0 && c.value_size % lanes == 0;
}

/// Scores of the pack of keys from number j on, of which `count` exist, and what is largest of each row; q[i] is the
/// query of row i.
template <class P, int rows>
void score_pack(const P* const* keys, Index count, Index size, const float* const* q, float* const* scores, Index j,
                float* tops) {
  alignas(64) static constexpr P none[AttentionCall::max_size] = {};
  const P* at[lanes];
#pragma GCC unroll 16
  for (Index k = 0; k < lanes; ++k) at[k] = k < count ? keys[k] : none;
  F32 sum[rows];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) sum[i] = splat(0.0f);
  for (Index e = 0; e < size; e += lanes) {
    F32 v[lanes];
#pragma GCC unroll 16
    for (Index k = 0; k < lanes; ++k) v[k] = load(at[k] + e);
    turn(v);
#pragma GCC unroll 16
    for (Index k = 0; k < lanes; ++k) {
#pragma GCC unroll 4
      for (int i = 0; i < rows; ++i) sum[i] = fma(splat(q[i][e + k]), v[k], sum[i]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
    store(scores[i] + j, sum[i]);
    store(tops + i * lanes, max_or_second(sum[i], load(tops + i * lanes)));
  }
}

/// sums[i] = factor[i] * sums[i] + sum over the keys of weights[i] times values, for `packs` packs of elements from e
/// on.
template <class P, int rows, int packs>
void sum_packs(const P* const* values, Index e, Keys k, const float* const* weights, const float* factor,
               float* const* sums) {
  F32 sum[rows][packs];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) sum[i][p] = load(sums[i] + e + p * lanes) * splat(factor[i]);
  }
  for (Index j = k.begin; j < k.end; ++j) {
    F32 v[packs];
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) v[p] = load(values[j] + e + p * lanes);
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
      const F32 by = splat(weights[i][j]);
#pragma GCC unroll 4
      for (int p = 0; p < packs; ++p) sum[i][p] = fma(by, v[p], sum[i][p]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int p = 0; p < packs; ++p) store(sums[i] + e + p * lanes, sum[i][p]);
  }
}

/// f.operator()<n>() for the number of rows, 1 to few_together.
template <class F>
void with_rows(Index rows, F f) {
  if (rows == 4) return f.template operator()<4>();
  if (rows == 3) return f.template operator()<3>();
  if (rows == 2) return f.template operator()<2>();
  f.template operator()<1>();
}

template <class P>
bool values_are_finite(const Rows<P>& values, Index count, Index size) {
  Finite finite[4];
  for (Index j = 0; j < count; ++j) {
    for (Index e = 0; e < size; e += lanes) finite[e / lanes % 4].add(load(values.at[j] + e));
  }
  return finite[0].all() && finite[1].all() && finite[2].all() && finite[3].all();
}

/// tile_rows() of the first `rows` rows; false, and nothing done, where a value of the tile is not finite.
template <class P>
bool few_tile_rows(const AttentionCall& c, const Item& item, const Rows<P>& keys, const Rows<P>& values, Index start,
                   Index count, Index rows, Work<float>& w) {
  if (!values_are_finite(values, count, c.value_size)) return false;
  const Tile<float> t{.start = start, .count = count};
  const Parts parts = parts_of(c, t, w.query, rows);
  const Index width = c.value_size;
  float factor[strip];
  // Scores of all rows at once, for what any of them sees: keys are turned once. Those that a part does not see, it
  // does not read.
  Keys packs{count, 0};
  for (const Part& p : parts) packs = {least(packs.begin, p.packs.begin), most(packs.end, p.packs.end)};
  for (Index r = 0; r < rows; ++r) store(w.tops + r * lanes, splat(-inf));
  for (Index r = 0; r < rows; r += few_together) {
    const Index n = least(few_together, rows - r);
    const float* q[few_together];
    float* to[few_together];
    for (Index i = 0; i < n; ++i) {
      q[i] = static_cast<const float*>(w.from[r + i]);
      to[i] = w.scores + (r + i) * tile;
    }
    with_rows(n, [&]<int m>() {
      for (Index j = packs.begin; j < packs.end; j += lanes) {
        score_pack<P, m>(keys.at + j, count - j, c.size, q, to, j, w.tops + r * lanes);
      }
    });
  }
  for (const Part& p : parts) {
    scales_late(c) ? weigh_part<float, true>(c, item, t, p, 0, factor + p.first, w)
                   : weigh_part<float, false>(c, item, t, p, 0, factor + p.first, w);
    for (Index r = p.first; r < p.first + p.rows; r += few_together) {
      const Index n = least(few_together, p.first + p.rows - r);
      const float* weights[few_together];
      float* to[few_together];
      for (Index i = 0; i < n; ++i) {
        weights[i] = w.scores + (r + i) * tile;
        to[i] = w.sums + (r + i) * width;
      }
      with_rows(n, [&]<int m>() {
        Index e = 0;
        for (; e + 4 * lanes <= width; e += 4 * lanes) {
          sum_packs<P, m, 4>(values.at, e, p.any, weights, factor + r, to);
        }
        for (; e < width; e += lanes) sum_packs<P, m, 1>(values.at, e, p.any, weights, factor + r, to);
      });
    }
  }
  return true;
}

}  // namespace rlx::RLX_LEVEL::attention_tiles
