// Attention operators of the domain com.microsoft, rotary embedding, and the embedding layer of BERT.
#include "core/error.h"
#include "io/onnx/attention_parts.h"
#include "io/onnx/importer.h"
#include "io/onnx/norms.h"
#include "io/onnx/quantized.h"
#include "ops/attention/attention.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/take_along/take_along.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

void refuse(NodeArgs& n, std::initializer_list<std::size_t> operands) {
  for (const std::size_t i : operands) require(!n.has(i), "operand {} is not supported", i);
}

// Heads in four axes, past ones before them.
struct Heads {
  Value q, k, v;
  Dim past = 0;

  void add_past(Value key, Value value) {
    past = key.dim(2);
    k = concat({key, k}, 2);
    v = concat({value, v}, 2);
  }
  Dim keys() const { return k.dim(2); }
};

// What is added to the scores of masked keys is a finite number.
Value finite_mask(NodeArgs& n, Value visible, DType type) {
  const Value shown = constant(n.builder(), type, 0);
  return select(visible, shown, like(shown, n.real("mask_filter_value", -10000.0)));
}

// Which keys a padding mask shows: [B,1,1,T] or [B,1,S,T]. Masks are 0 or not; of rank 1: where the keys end, and,
// behind the ends, where they begin.
Value padding_mask(Value mask, const Heads& h) {
  const Dim batch = h.q.dim(0), keys = h.keys();
  if (mask.rank() == 2) return reshape(not_equal(mask, like(mask, 0)), {mask.dim(0), 1, 1, mask.dim(1)});
  if (mask.rank() == 3) return reshape(not_equal(mask, like(mask, 0)), {mask.dim(0), 1, mask.dim(1), mask.dim(2)});
  require(mask.rank() == 1, "the mask is {}, expected rank 1 to 3", mask.type().text());
  const Value key = iota(*mask.builder, DType::i64, {1, 1, 1, keys}, 3), bounds = cast(mask, DType::i64);
  const bool starts = mask.dim(0) == batch * 2;
  require(starts || mask.dim(0) == batch, "the mask is {} for a batch of {}", mask.type().text(), batch.text());
  const auto part = [&](const Dim& from) { return reshape(slice(bounds, 0, from, from + batch), {batch, 1, 1, 1}); };
  const Value visible = less(key, part(0));
  return starts ? bitwise_and(visible, less_equal(part(batch), key)) : visible;
}

// The result, [B,S,H*Dv].
Value attend(NodeArgs& n, const Heads& h, std::optional<Value> mask, std::optional<Value> bias, bool causal) {
  AttentionAttrs a;
  if (n.given("scale") && n.real("scale", 0) != 0) a.scale = n.real("scale", 0);
  if (causal) {
    a.mask = AttentionMask::causal;
    a.offset = h.past;
  }
  if (mask) {
    const Value hidden = finite_mask(n, padding_mask(*mask, h), h.q.dtype());
    bias = bias ? *bias + hidden : hidden;
  }
  if (!bias) return join_heads(attention(h.q, h.k, h.v, a));
  a.extra = AttentionExtra::bias;
  return join_heads(attention(h.q, h.k, h.v, *bias, a));
}

// A part of an axis-0 vector, or of the last axis.
Value part(Value x, const Dim& from, const Dim& count) { return slice(x, x.rank() - 1, from, from + count); }

// One of `count` tensors that [B,S,H,count,D] holds, as [B,H,S,D].
Value unpacked(Value x, Index which, Index count) {
  require(x.rank() == 5 && x.dim(3) == Dim(count), "{} is not packed as [B,S,H,{},D]", x.type().text(), count);
  return transpose(reshape(slice(x, 3, which, which + 1), {x.dim(0), x.dim(1), x.dim(2), x.dim(4)}), {0, 2, 1, 3});
}

Heads multi_head_operands(NodeArgs& n, Index heads) {
  const Value q = n[0];
  if (q.rank() == 5) {
    require(!n.has(1) && !n.has(2) && !n.has(3), "keys, values or a bias beside a packed query are not supported");
    return {unpacked(q, 0, 3), unpacked(q, 1, 3), unpacked(q, 2, 3)};
  }
  const auto biased = [&](Value x, const Dim& from) { return n.has(3) ? x + part(n[3], from, x.dim(-1)) : x; };
  Heads h{split_heads(biased(q, 0), heads), n[1], n[1]};
  if (h.k.rank() == 5) {
    require(!n.has(2) && !n.has(3), "values or a bias beside packed keys are not supported");
    return {h.q, unpacked(n[1], 0, 2), unpacked(n[1], 1, 2)};
  }
  h.v = n[2];
  if (h.k.rank() == 4) return h;  // keys of another layer's cache, which have their bias
  h.k = split_heads(biased(n[1], q.dim(-1)), heads);
  h.v = split_heads(biased(n[2], q.dim(-1) + n[1].dim(-1)), heads);
  return h;
}

Values multi_head_attention(NodeArgs& n) {
  n.expect(1, 10);
  refuse(n, {8, 9});
  require(!n.wants(3), "result 3 is not supported");
  Heads h = multi_head_operands(n, n.integer("num_heads"));
  require(n.has(6) == n.has(7), "past_key and past_value are not given together");
  if (n.has(6)) h.add_past(n[6], n[7]);
  n.ignore("mask_filter_value");
  const Value y = attend(n, h, n.optional(4), n.optional(5), n.integer("unidirectional", 0) != 0);
  return {y, h.k, h.v};
}

// Attention of the projections [B,S,hq+hk+hv], with what Attention and QAttention share.
Values self_attention(NodeArgs& n, Value all, std::optional<Value> mask, std::optional<Value> past,
                      std::optional<Value> bias, std::vector<Index> sizes) {
  const Index heads = n.integer("num_heads");
  n.ignore("mask_filter_value");
  require(n.integer("do_rotary", 0) == 0, "do_rotary is not 0");
  require(n.integer("past_present_share_buffer", 0) == 0, "past_present_share_buffer is not 0");
  if (sizes.empty()) {
    require(all.dim(-1).is_constant() && all.dim(-1).constant() % 3 == 0, "weights for {} are not three of one size",
            all.dim(-1).text());
    sizes.assign(3, all.dim(-1).constant() / 3);
  }
  require(sizes.size() == 3, "qkv_hidden_sizes has {} elements, expected 3", sizes.size());
  Heads h{split_heads(part(all, 0, sizes[0]), heads), split_heads(part(all, sizes[0], sizes[1]), heads),
          split_heads(part(all, sizes[0] + sizes[1], sizes[2]), heads)};
  if (past) {
    require(past->rank() == 5, "past is {}, expected rank 5", past->type().text());
    const auto half = [&](Index i) {
      return reshape(slice(*past, 0, i, i + 1), {past->dim(1), past->dim(2), past->dim(3), past->dim(4)});
    };
    h.add_past(half(0), half(1));
  }
  const Value y = attend(n, h, mask, bias, n.integer("unidirectional", 0) != 0);
  if (!n.wants(1)) return {y};
  return {y, concat({unsqueeze(h.k, {0}), unsqueeze(h.v, {0})}, 0)};
}

Values packed_attention(NodeArgs& n) {
  n.expect(2, 7);
  refuse(n, {6});
  n.ignore("rotary_embedding_dim");
  Value all = matmul(n[0], n[1]);
  if (n.has(2)) all = all + n[2];
  return self_attention(n, all, n.optional(3), n.optional(4), n.optional(5),
                        n.integers("qkv_hidden_sizes").value_or(std::vector<Index>{}));
}

Values quantized_attention(NodeArgs& n) {
  n.expect(5, 9);
  const Value sums = matmul_integer(n[0], n[1], n.optional(6), n.optional(7));
  const Value all = cast(sums, DType::f32) * (n[3] * n[4]) + n[2];
  return self_attention(n, all, n.optional(5), n.optional(8), std::nullopt, {});
}

// What GroupQueryAttention says of positions, per batch [B,1,1,1]: tokens with this step, and those before it.
struct CachePositions {
  Value total, before;
};

CachePositions cache_positions(NodeArgs& n, const Dim& length) {
  const Value ends = n[5];
  require(ends.rank() == 1 || (ends.rank() == 2 && ends.dim(1) == Dim(1)), "seqlens_k is {}, expected rank 1",
          ends.type().text());
  const Value last = reshape(cast(ends, DType::i64), {ends.dim(0), 1, 1, 1}), total = last + like(last, 1);
  const Value none = broadcast(like(total, 0), total.type().dims);
  if (!n.has(3) || n[3].dim(2) == Dim(0)) return {total, none};
  return {total, maximum(total - n.known(DType::i64, {length}, false), none)};
}

// Keys or values of `length` positions: those of the cache up to `before`, then the new ones.
Value with_cache(NodeArgs& n, Value past, Value fresh, const CachePositions& at, const Dim& length) {
  if (past.dim(2) == Dim(0)) return fresh;
  const Value joined = concat({past, fresh}, 2);
  const Value key = iota(n.builder(), DType::i64, {1, 1, length, 1}, 2);
  const Value shift = n.known(DType::i64, {past.dim(2)}, false) - at.before;
  const Value last = n.known(DType::i64, {joined.dim(2) - 1}, false);
  // What the cache should hold and does not is out of range.
  const Value known = less(key, n.known(DType::i64, {past.dim(2)}, false));
  const Value kept = select(known, key, last + like(last, 1));
  const Value from = select(less(key, at.before), kept, minimum(key + shift, last));
  const Value all = take_along(joined, broadcast(from, {joined.dim(0), joined.dim(1), length, joined.dim(3)}), 2);
  return select(less(key, at.total), all, like(all, 0));  // nothing stands behind the last token
}

Value rotated(NodeArgs& n, Value x, const CachePositions& at) {
  Value position = n.has(9) ? n[9] : at.before;
  if (!n.has(9)) {
    const Value step = iota(n.builder(), DType::i64, {1, x.dim(2)}, 1);
    position = reshape(at.before, {at.before.dim(0), 1}) + step;
  }
  RopeAttrs a;
  a.pairing = n.integer("rotary_interleaved", 0) != 0 ? RopePairing::gptj : RopePairing::neox;
  const Dim& half = n[7].dim(1);
  require(half.is_constant(), "cos_cache is {}, expected a known number of columns", n[7].type().text());
  a.rotary = Dim(half.constant() * 2) == x.dim(3) ? 0 : half.constant() * 2;
  return rope(x, gather(n[7], position, 0), gather(n[8], position, 0), a);
}

Heads group_query_operands(NodeArgs& n) {
  const Index heads = n.integer("num_heads"), shared = n.integer("kv_num_heads");
  const Value q = n[0];
  if (n.has(1)) {
    require(n.has(2), "keys are given without values");
    return {split_heads(q, heads), split_heads(n[1], shared), split_heads(n[2], shared)};
  }
  require(q.rank() == 3 && q.dim(-1).is_constant() && heads > 0 && shared > 0 &&
              q.dim(-1).constant() % (heads + 2 * shared) == 0,
          "q is {}, expected {} heads of one size", q.type().text(), heads + 2 * shared);
  const Index size = q.dim(-1).constant() / (heads + 2 * shared);
  return {split_heads(part(q, 0, heads * size), heads), split_heads(part(q, heads * size, shared * size), shared),
          split_heads(part(q, (heads + shared) * size, shared * size), shared)};
}

void refuse_group_query_forms(NodeArgs& n) {
  n.expect(7, 17);
  refuse(n, {11, 12, 13, 14, 15, 16});
  require(!n.wants(3) && n.integer("qk_output", 0) == 0, "the product of q and k as a result is not supported");
  require(n.integer("smooth_softmax", 0) <= 0, "smooth_softmax is not supported");
  require(n.integer("sliding_window_cache", 0) == 0, "sliding_window_cache is not supported");
  require(n.integer("causal", 1) == 1, "causal is not 1");
  for (const char* const type : {"k_quant_type", "v_quant_type"})
    require(n.string(type, "NONE") == "NONE", "{} is {}, expected NONE", type, in_quotes(n.string(type, "NONE")));
  for (const char* const unused : {"kv_cache_bit_width", "qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"})
    n.ignore(unused);
  require(n.has(3) == n.has(4), "past_key and past_value are not given together");
}

Values group_query_attention(NodeArgs& n) {
  refuse_group_query_forms(n);
  Heads h = group_query_operands(n);
  const Dim length = h.q.dim(2);
  const CachePositions at = cache_positions(n, length);
  if (n.integer("do_rotary", 0) != 0) {
    require(n.has(7) && n.has(8), "do_rotary is given without tables");
    h.q = rotated(n, h.q, at);
    h.k = rotated(n, h.k, at);
  }
  n.ignore("rotary_interleaved");
  if (n.has(3)) {
    const std::vector<Dim> all = n.sizes(6);
    require(all.size() == 1, "total_sequence_length has {} elements, expected 1", all.size());
    const Dim keys = max(n[3].dim(2), all[0]);
    h.k = with_cache(n, n[3], h.k, at, keys);
    h.v = with_cache(n, n[4], h.v, at, keys);
  }
  AttentionAttrs a;
  if (n.given("scale") && n.real("scale", 0) != 0) a.scale = n.real("scale", 0);
  a.soft_cap = n.real("softcap", 0);
  const Index window = n.integer("local_window_size", -1);
  const Value key = iota(n.builder(), DType::i64, {1, 1, 1, h.keys()}, 3);
  const Value query = iota(n.builder(), DType::i64, {1, 1, length, 1}, 2) + at.before;
  Value visible = less_equal(key, query);
  if (window > 0) visible = bitwise_and(visible, less(query, key + like(key, static_cast<double>(window))));
  Value extra = visible;
  a.extra = AttentionExtra::pairs;
  if (n.has(10)) {
    a.extra = AttentionExtra::bias;
    extra = select(visible, n[10], like(n[10], -std::numeric_limits<double>::infinity()));
  }
  return {join_heads(attention(h.q, h.k, h.v, extra, a)), h.k, h.v};
}

Values rotary_embedding(NodeArgs& n) {
  n.expect(4, 4);
  const Value x = n[0];
  const Index heads = n.integer("num_heads", 0), rotary = n.integer("rotary_embedding_dim", 0);
  require(n.integer("is_packed_batching", 0) == 0, "is_packed_batching is not 0");
  require(n.real("scale", 1) == 1, "scale is not 1");
  require(n[2].rank() == 2 && n[2].dim(1).is_constant(), "cos_cache is {}, expected a known number of columns",
          n[2].type().text());
  RopeAttrs a;
  a.pairing = n.integer("interleaved", 0) != 0 ? RopePairing::gptj : RopePairing::neox;
  a.rotary = rotary;
  const Index rows = x.rank() == 4 ? 2 : 1;
  require(x.rank() == 3 || x.rank() == 4, "x is {}, expected rank 3 or 4", x.type().text());
  if (x.rank() == 3) {
    require(rotary == 0 || heads > 0, "rotary_embedding_dim is given without num_heads");
    require(heads == 0 || x.dim(-1).is_constant(), "x is {}, expected a known last axis", x.type().text());
    a.head_size = heads > 0 ? x.dim(-1).constant() / heads : n[2].dim(1).constant() * 2;
  }
  Value position = cast(n[1], DType::i64);
  if (position.rank() == 1)
    position = broadcast(position + iota(n.builder(), DType::i64, {1, x.dim(rows)}, 1), {x.dim(0), x.dim(rows)});
  return {rope(x, gather(n[2], position, 0), gather(n[3], position, 0), a)};
}

// Result 1 counts the words of every text, result 2 is the sum that is normalised.
Values embed_layer_norm(NodeArgs& n) {
  n.expect(7, 9);
  n.ignore("mask_index_type");
  const Value ids = n[0];
  require(ids.rank() == 2, "input_ids is {}, expected rank 2", ids.type().text());
  const Value words = gather(n[2], ids, 0);
  Value places = n[3];
  if (n.has(8)) {
    places = gather(places, n[8], 0);
  } else {
    places = slice(places, 0, 0, ids.dim(1));
  }
  Value x = words + places;
  require(n.has(1) == n.has(4), "segment_ids and segment_embedding are not given together");
  if (n.has(1)) x = x + gather(n[4], n[1], 0);
  const Value y = layer_norm_of(x, n[5], n[6], 2, n.real("epsilon", 1e-12F));
  if (!n.wants(1) && !n.wants(2)) return {y};
  const Value none = broadcast(constant(n.builder(), DType::i32, 0), {ids.dim(0)});
  const Value count = n.has(7) ? sum(cast(equal(n[7], like(n[7], 1)), DType::i32), {1}) : none;
  return {y, count, x};
}

}  // namespace

OperatorRows microsoft_attention_rows() {
  static constexpr OperatorRow rows[] = {
      {"Attention", 1, packed_attention},
      {"QAttention", 1, quantized_attention},
      {"MultiHeadAttention", 1, multi_head_attention},
      {"GroupQueryAttention", 1, group_query_attention},
      {"RotaryEmbedding", 1, rotary_embedding},
      {"EmbedLayerNormalization", 1, embed_layer_norm},
  };
  return rows;
}

}  // namespace rlx::onnx
