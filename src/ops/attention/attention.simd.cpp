// Kernels of attention, compiled once per level: tiles of keys anchored at key 0, softmax carried from tile to tile.
#include "ops/attention/attention_rows.h"

namespace rlx::RLX_LEVEL {

namespace {

using namespace attention_tiles;

// --- items ---

/// Reads limits that all rows share, and says whether they hide nothing.
template <class T>
bool open_limits(const AttentionCall& c, const Item& item, const Tile<T>& t, Work<T>& w) {
  if (c.operand == AttentionOperand::none) return true;
  if (!hides(c) || !shared_limits(c)) return false;
  read_limits(c, extra_at(c, item.batch, 0, 0, t.start), t.count, w.limits);
  float least = inf;
  for (Index j = 0; j < t.count; ++j) least = w.limits[j] < least ? w.limits[j] : least;
  return least == inf;
}

template <class T>
Tile<T> make_tile(const AttentionCall& c, const Item& item, Index start, Work<T>& w) {
  Tile<T> t{.start = start, .count = least(tile, c.keys - start)};
  const T* k = static_cast<const T*>(c.k) + item.batch * c.k_at.batch + item.kv_head * c.k_at.head;
  const T* v = static_cast<const T*>(c.v) + item.batch * c.v_at.batch + item.kv_head * c.v_at.head;
  transpose_keys(k + start * c.k_at.position, c.k_at.position, t.count, c.size, w.keys);
  v += start * c.v_at.position;
  t.open = open_limits(c, item, t, w);
  const bool hidden = c.by_position || !t.open;
  if constexpr (is_f32<T>) {
    t.values = v;
    t.value_stride = c.v_at.position;
    t.width = c.value_size;
    t.finite = !hidden || all_finite(t.values, t.value_stride, t.count, t.width);
  } else {
    t.finite = copy_values(v, c.v_at.position, t.count, c.value_size, w.values) || !hidden;
    t.values = w.values;
    t.value_stride = t.width = up(c.value_size, lanes);
  }
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
void run_item(const AttentionCall& c, const Item& item, Ahead& ahead, Work<T>& w) {
  const Index width = up(c.value_size, lanes);
  Keys any{c.keys, 0};
  for (Index r = 0; r < item.count; ++r) {
    w.query[r] = (item.first + r) % c.queries;
    w.head[r] = item.kv_head * c.group() + (item.first + r) / c.queries;
    w.from[r] =
        static_cast<const T*>(c.q) + item.batch * c.q_at.batch + w.head[r] * c.q_at.head + w.query[r] * c.q_at.position;
    w.top[r] = -inf;
    const Keys one = seen(c, w.query[r]);
    if (!one.empty()) any = {least(any.begin, one.begin), most(any.end, one.end)};
  }
  for (Index i = 0; i < item.count * lanes; i += lanes) store(w.weights + i, splat(0.0f));
  for (Index i = 0; i < item.count * width; i += lanes) store(w.sums + i, splat(0.0f));
  for (Index start = down(any.begin, tile); start < any.end; start += tile) {
    const Tile<T> t = make_tile(c, item, start, w);
    for (Index r = 0; r < item.count; r += strip) {
      ahead.fetch(strip);
      tile_rows(c, item, t, r, least(strip, item.count - r), w);
    }
  }
  write_rows(c, item, w);
}

/// What an item reads first.
template <class T>
Ahead first_rows(const AttentionCall& c, const Item& item) {
  Ahead ahead;
  const Index head = item.kv_head * c.group() + item.first / c.queries, keys = least(tile, c.keys);
  ahead.add(static_cast<const T*>(c.k) + item.batch * c.k_at.batch + item.kv_head * c.k_at.head, c.k_at.position, keys,
            c.size);
  ahead.add(static_cast<const T*>(c.v) + item.batch * c.v_at.batch + item.kv_head * c.v_at.head, c.v_at.position, keys,
            c.value_size);
  const Index query = item.first % c.queries;
  ahead.add(static_cast<const T*>(c.q) + item.batch * c.q_at.batch + head * c.q_at.head + query * c.q_at.position,
            c.q_at.position, least(item.count, c.queries - query), c.size);
  return ahead;
}

template <class T>
void items(const AttentionCall& c, Index begin, Index end) {
  Work<T> w;
  const Index blocks = c.blocks(), rows = c.group() * c.queries;
  const auto item = [&](Index i) {
    const Index first = i % blocks * c.rows, head = i / blocks;
    return Item{head / c.kv_heads, head % c.kv_heads, first, least(c.rows, rows - first)};
  };
  for (Index i = begin; i < end; ++i) {
    Ahead ahead;
    if (c.far && i + 1 < end) ahead = first_rows<T>(c, item(i + 1));
    run_item(c, item(i), ahead, w);
  }
}

}  // namespace

const AttentionKernels attention_kernels{.f32 = items<float>, .f16 = items<StoredF16>, .bf16 = items<StoredBF16>};

}  // namespace rlx::RLX_LEVEL
