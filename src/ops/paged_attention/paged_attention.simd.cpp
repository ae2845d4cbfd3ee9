// Kernels of paged_attention, compiled once per level: the tiles of attention, filled from pages.
#include "ops/paged_attention/few_rows.h"
#include "ops/paged_attention/paged_attention.kernel.h"

namespace rlx::RLX_LEVEL {

namespace {

using namespace attention_tiles;

/// Memory of one item: queries and sums as f32, tiles widened from the pools.
struct PagedWork : Work<float> {
  alignas(64) float widened[AttentionCall::max_size * tile];  // values of a tile
};

/// Some tokens of an item that follow each other and are of one sequence, and one head of the pools.
struct Piece {
  Index first, count;  // tokens
  Index kv_head;
  const int* table;
  Index fetched;  // heads before this one that the same call has read, with those behind them
};

template <class P>
void find_rows(const PagedCall& c, const Piece& piece, const P* pool, Index size, Index start, Index count,
               Rows<P>& rows) {
  const Index stride = c.shape.kv_heads * size;
  pool += piece.kv_head * size;
  for (Index j = 0; j < count;) {
    const Index position = start + j, in_page = position % c.page;
    const P* p = pool + (piece.table[position / c.page] * c.page + in_page) * stride;
    for (Index n = least(c.page - in_page, count - j); n > 0; --n, ++j, p += stride) rows.at[j] = p;
  }
}

/// to[e * tile + j] = element e of key j; keys behind the last up to a whole pack are 0.
template <class P>
void transpose_rows(const Rows<P>& rows, Index count, Index size, float* to) {
  Index j = 0;
  for (; j + 4 <= count; j += 4) {
    const P *const p0 = rows.at[j], *const p1 = rows.at[j + 1], *const p2 = rows.at[j + 2], *const p3 = rows.at[j + 3];
    Index e = 0;
    for (; e + 4 <= size; e += 4) {
      __m128 a = load_four(p0 + e), b = load_four(p1 + e), x = load_four(p2 + e), y = load_four(p3 + e);
      _MM_TRANSPOSE4_PS(a, b, x, y);
      _mm_store_ps(to + e * tile + j, a);
      _mm_store_ps(to + (e + 1) * tile + j, b);
      _mm_store_ps(to + (e + 2) * tile + j, x);
      _mm_store_ps(to + (e + 3) * tile + j, y);
    }
    for (; e < size; ++e) {
      for (Index i = 0; i < 4; ++i) to[e * tile + j + i] = widen(rows.at[j + i][e]);
    }
  }
  for (; j < count; ++j) {
    for (Index e = 0; e < size; ++e) to[e * tile + j] = widen(rows.at[j][e]);
  }
  for (; j < up(count, lanes); ++j) {
    for (Index e = 0; e < size; ++e) to[e * tile + j] = 0;
  }
}

/// Values as f32, in whole packs. Whether all are finite.
template <class P>
bool widen_rows(const Rows<P>& rows, Index count, Index size, float* to) {
  Finite finite;
  for (Index j = 0; j < count; ++j, to += up(size, lanes)) {
    const P* const v = rows.at[j];
    Index e = 0;
    for (; e + lanes <= size; e += lanes) store(to + e, finite.add(load(v + e)));
    if (e < size) store(to + e, finite.add(load(v + e, size - e, splat(0.0f))));
  }
  return finite.all();
}

template <class P>
void fetch_rows(const Rows<P>& rows, Index count, Index size) {
  for (Index j = 0; j < count; ++j) {
    const char* const p = reinterpret_cast<const char*>(rows.at[j]);
    for (Index byte = 0; byte < size * Index{sizeof(P)}; byte += 64) __builtin_prefetch(p + byte, 0, 2);
  }
}

/// Adds keys [start, start + count) of a piece to the sums of its rows.
template <class P>
void run_tile(const PagedCall& c, const Piece& piece, const Item& item, Index start, Index count, PagedWork& w) {
  const AttentionCall& s = c.shape;
  Rows<P> keys, values;
  find_rows(c, piece, static_cast<const P*>(s.k), s.size, start, count, keys);
  find_rows(c, piece, static_cast<const P*>(s.v), s.value_size, start, count, values);
  // The heads of a slot lie side by side: the first that is read fetches all for those that follow.
  const Index heads = !takes_few_rows(s, item.count) ? 1 : item.first > 0 ? 0 : least(s.kv_heads - piece.kv_head, 4);
  fetch_rows(keys, count, heads * s.size);
  fetch_rows(values, count, heads * s.value_size);
  if (takes_few_rows(s, item.count) && few_tile_rows(s, item, keys, values, start, count, item.count, w)) return;
  Tile<float> t{.start = start, .count = count};
  transpose_rows(keys, count, s.size, w.keys);
  t.finite = widen_rows(values, count, s.value_size, w.widened);
  t.values = w.widened;
  t.value_stride = t.width = up(s.value_size, lanes);
  for (Index r = 0; r < item.count; r += strip) tile_rows(s, item, t, r, least(strip, item.count - r), w);
}

void write_rows(const AttentionCall& c, const Piece& piece, Index rows, PagedWork& w) {
  for (Index r = 0; r < rows; ++r) {
    const float* from = w.sums + r * up(c.value_size, lanes);
    float* to =
        static_cast<float*>(c.out) + (piece.first + r % piece.count) * c.out_at.position + w.head[r] * c.out_at.head;
    const F32 total = splat(fold(load(w.weights + r * lanes), [](float a, float b) { return a + b; }));
    Index e = 0;
    for (; e + lanes <= c.value_size; e += lanes) store(to + e, load(from + e) / total);
    if (e < c.value_size) store(to + e, load(from + e) / total, c.value_size - e);
  }
}

template <class P>
void run_piece(const PagedCall& c, const Piece& piece, PagedWork& w) {
  const AttentionCall& s = c.shape;
  const Index width = up(s.value_size, lanes), rows = piece.count * s.group();
  Keys any{s.keys, 0};
  for (Index r = 0; r < rows; ++r) {
    const Index token = piece.first + r % piece.count;
    w.query[r] = c.positions[token];
    w.head[r] = piece.kv_head * s.group() + r / piece.count;
    w.from[r] = static_cast<const float*>(s.q) + token * s.q_at.position + w.head[r] * s.q_at.head;
    w.top[r] = -inf;
    const Keys one = seen(s, w.query[r]);
    any = {least(any.begin, one.begin), most(any.end, one.end)};
  }
  for (Index i = 0; i < rows * lanes; i += lanes) store(w.weights + i, splat(0.0f));
  for (Index i = 0; i < rows * width; i += lanes) store(w.sums + i, splat(0.0f));
  const Item item{0, piece.kv_head, piece.fetched, rows};
  for (Index start = down(any.begin, tile); start < any.end; start += tile) {
    run_tile<P>(c, piece, item, start, least(tile, any.end - start), w);
  }
  write_rows(s, piece, rows, w);
}

template <class P>
void items(const PagedCall& c, Index begin, Index end) {
  PagedWork w;
  const Index blocks = (c.tokens + c.block - 1) / c.block;
  for (Index i = begin; i < end; ++i) {
    const Index last = least(c.tokens, (i % blocks + 1) * c.block);
    for (Index token = i % blocks * c.block; token < last;) {
      const int sequence = c.sequences[token];
      Index count = 1;
      while (token + count < last && c.sequences[token + count] == sequence) ++count;
      run_piece<P>(c, {token, count, i / blocks, c.tables + sequence * c.pages, blocks == 1 ? i - begin : 0}, w);
      token += count;
    }
  }
}

}  // namespace

const PagedAttentionKernels paged_attention_kernels{
    .f32 = items<float>, .f16 = items<StoredF16>, .bf16 = items<StoredBF16>};

}  // namespace rlx::RLX_LEVEL
