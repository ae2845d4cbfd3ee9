// Attention and rotary embedding, as operators of their own from version 23 on.
#include "ops/attention/attention.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "io/onnx/attention_parts.h"
#include "io/onnx/casts.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

Value split_heads(Value x, Index heads) {
  const Dim& last = x.dim(-1);
  require(x.rank() == 3 && heads > 0 && last.is_constant() && last.constant() % heads == 0,
          "{} is not {} heads of one size along its last axis", x.type().text(), heads);
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, last.constant() / heads}), {0, 2, 1, 3});
}

Value join_heads(Value x) { return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)}); }

std::optional<Value> both(std::optional<Value> a, std::optional<Value> b) {
  if (!a || !b) return a ? a : b;
  return bitwise_and(*a, *b);
}

namespace {

Value lowest(Value like_this) { return like(like_this, -std::numeric_limits<double>::infinity()); }

// The mask with four axes, its last one as long as there are keys: what is missing at its end hides.
Value full_mask(Value mask, const Dim& keys) {
  require(mask.rank() >= 1 && mask.rank() <= 4, "the mask is {}, expected rank 1 to 4", mask.type().text());
  std::vector<Dim> dims(static_cast<std::size_t>(4 - mask.rank()), Dim(1));
  dims.insert(dims.end(), mask.type().dims.begin(), mask.type().dims.end());
  mask = reshape(mask, dims);
  const Dim missing = keys - dims.back();
  if (missing == Dim(0) || missing.bounds().lo < 0) return mask;
  dims.back() = missing;
  const Value hides = mask.dtype() == DType::boolean ? like(mask, 0) : lowest(mask);
  return concat({mask, broadcast(hides, dims)}, 3);
}

}  // namespace

AttentionOutputs attention_by_operators(Value q, Value k, Value v, const AttentionRules& r) {
  const Dim &batch = q.dim(0), &queries = q.dim(2), &keys = k.dim(2);
  require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.dim(1).is_constant() && k.dim(1).is_constant(),
          "q is {} and k is {}, expected a known number of heads", q.type().text(), k.type().text());
  const Index heads = q.dim(1).constant(), shared = k.dim(1).constant();
  require(shared > 0 && heads % shared == 0 && v.dim(1) == k.dim(1), "{} heads of q share those of k and v, {} and {}",
          heads, k.type().text(), v.type().text());
  require(r.scale >= 0, "scale is {}, expected 0 or more", r.scale);
  const Index group = heads / shared;
  const auto grouped = [&](Value x) { return reshape(x, {batch, shared, group, x.dim(2), x.dim(3)}); };
  const Value root = like(q, std::sqrt(r.scale));
  const Value left = grouped(q * root), right = reshape(k * root, {batch, shared, 1, keys, k.dim(3)});
  AttentionOutputs out;
  Value scores = reshape(matmul(left, right, {false, true}), {batch, heads, queries, keys});
  out.scores = scores;
  if (r.soft_cap > 0) scores = tanh(scores / like(q, r.soft_cap)) * like(q, r.soft_cap);
  out.capped = scores;
  std::optional<Value> bias = r.bias;
  if (r.visible) {
    const Value shown = bias ? *bias : like(q, 0);
    bias = select(*r.visible, shown, lowest(q));
  }
  if (bias) scores = scores + *bias;
  out.biased = scores;
  scores = cast(scores, r.precision);
  if (r.change_scores) scores = r.change_scores(scores);
  Value weights = softmax_of(scores, -1);
  if (bias) {  // rows without a visible key
    const Value nothing = equal(max(*bias, {-1}, true), lowest(*bias));
    weights = select(nothing, like(weights, 0), weights);
  }
  if (r.change_weights) weights = r.change_weights(weights);
  if (!r.wide_product) weights = cast(weights, q.dtype());
  out.weights = weights;
  const Value values = reshape(cast(v, weights.dtype()), {batch, shared, 1, keys, v.dim(3)});
  const Value mixed = matmul(grouped(weights), values);
  out.y = cast(reshape(mixed, {batch, heads, queries, v.dim(3)}), v.dtype());
  return out;
}

namespace {

// What an Attention node says, with past keys and values in front of the others.
struct AttentionNode {
  Value q, k, v;          // in four axes, or three where they are packed
  bool packed = false;    // in three axes
  bool unpacked = false;  // the result goes back to three axes
  Index heads = 0;
  Dim past = 0, queries = 0, keys = 0;
};

AttentionNode operands(NodeArgs& n) {
  n.expect(3, 7);
  AttentionNode a{n[0], n[1], n[2]};
  const Index heads = n.integer("q_num_heads", 0), kv_heads = n.integer("kv_num_heads", 0);
  require(a.q.rank() == 3 || a.q.rank() == 4, "q is {}, expected rank 3 or 4", a.q.type().text());
  require(a.k.rank() == a.q.rank() && a.v.rank() == a.q.rank(), "k is {} and v is {}, expected rank {}",
          a.k.type().text(), a.v.type().text(), a.q.rank());
  require(a.v.dtype() == a.q.dtype(), "v is {}, expected element type {} as q", a.v.type().text(), name(a.q.dtype()));
  require(n.has(4) == n.has(5), "past_key and past_value are not given together");
  require(!n.has(6) || !n.has(4), "nonpad_kv_seqlen is given together with past keys");
  if (a.q.rank() == 3) {
    require(heads > 0 && kv_heads > 0, "q_num_heads is {} and kv_num_heads is {}, expected more than 0", heads,
            kv_heads);
    const Dim head = floordiv(a.q.dim(-1), heads);
    require(a.k.dim(-1) == head * kv_heads, "k is {}, expected {} heads of {} elements", a.k.type().text(), kv_heads,
            head.text());
    a.packed = !n.wants(1) && !n.wants(2) && !n.wants(3) && !n.has(4);
    a.unpacked = !a.packed;
    a.heads = heads;
    if (a.unpacked) {
      a.q = split_heads(a.q, heads);
      a.k = split_heads(a.k, kv_heads);
      a.v = split_heads(a.v, kv_heads);
    }
  } else {
    require((heads == 0 || Dim(heads) == a.q.dim(1)) && (kv_heads == 0 || Dim(kv_heads) == a.k.dim(1)),
            "q is {} and k is {}, which have not {} and {} heads", a.q.type().text(), a.k.type().text(), heads,
            kv_heads);
  }
  if (n.has(4)) {
    a.past = n[4].dim(2);
    a.k = concat({n[4], a.k}, 2);
    a.v = concat({n[5], a.v}, 2);
  }
  a.queries = a.q.dim(a.packed ? 1 : 2);
  a.keys = a.k.dim(a.packed ? 1 : 2);
  return a;
}

struct Positions {
  bool causal = false;
  Index left = -1, right = -1;  // sizes of the window, -1: without bound
};

// Which keys each query sees by position, from [S_q,S_k] to [B,1,S_q,S_k].
std::optional<Value> visible_keys(NodeArgs& n, const AttentionNode& a, const Positions& p) {
  Builder& b = n.builder();
  const Value key = iota(b, DType::i64, {1, 1, 1, a.keys}, 3);
  std::optional<Value> visible, length;
  if (n.has(6)) {
    require(n[6].rank() == 1, "nonpad_kv_seqlen is {}, expected rank 1", n[6].type().text());
    length = reshape(cast(n[6], DType::i64), {n[6].dim(0), 1, 1, 1});
    visible = less(key, *length);
  }
  if (!p.causal && p.left < 0 && p.right < 0) return visible;
  const Value before =
      length ? *length - n.known(DType::i64, {a.queries}, false) : n.known(DType::i64, {a.past}, false);
  const Value query = iota(b, DType::i64, {1, 1, a.queries, 1}, 2) + before;
  const auto distance = [&](Index d) { return constant(b, DType::i64, static_cast<double>(d)); };
  if (p.causal) visible = both(visible, less_equal(key, query));
  if (p.left >= 0) visible = both(visible, less_equal(query - distance(p.left), key));
  if (p.right >= 0) visible = both(visible, less_equal(key, query + distance(p.right)));
  return visible;
}

// Position masks that the op has itself become its attributes.
std::optional<Value> masks(NodeArgs& n, const AttentionNode& a, const Positions& p, bool by_op, AttentionAttrs& attrs) {
  if (!by_op || !p.causal || p.right >= 0 || n.has(6)) return visible_keys(n, a, p);
  attrs.mask = p.left < 0 ? AttentionMask::causal : AttentionMask::window;
  attrs.window = p.left < 0 ? 0 : p.left + 1;
  attrs.offset = a.past;
  return std::nullopt;
}

// Whether the op, which computes in f32 or f64, is what the attributes ask for.
bool op_suits(NodeArgs& n, const AttentionNode& a, DType precision) {
  const DType type = a.q.dtype();
  if (n.wants(3) || !(n.wants(0))) return false;
  if (type == DType::bf16 && is_short(a.keys)) return false;
  if (type == DType::f64 || type == DType::f32) return precision == type;
  return precision != DType::f64 && (precision == type || precision == DType::f32);
}

Value run_op(const AttentionNode& a, AttentionAttrs attrs, std::optional<Value> visible, std::optional<Value> bias) {
  attrs.layout = a.packed ? AttentionLayout::packed : AttentionLayout::bhsd;
  if (a.packed) attrs.heads = a.heads;
  if (visible && bias) bias = select(*visible, *bias, lowest(*bias));
  attrs.extra = bias ? AttentionExtra::bias : visible ? AttentionExtra::pairs : AttentionExtra::none;
  if (!bias && !visible) return attention(a.q, a.k, a.v, attrs);
  return attention(a.q, a.k, a.v, bias ? *bias : *visible, attrs);
}

Values attention_operator(NodeArgs& n) {
  AttentionNode a = operands(n);
  AttentionAttrs attrs;
  if (n.given("scale")) attrs.scale = n.real("scale", 1);
  attrs.soft_cap = n.real("softcap", 0);
  const Index wanted = n.integer("softmax_precision", 0), mode = n.integer("qk_matmul_output_mode", 0);
  const DType precision = wanted == 0 ? a.q.dtype() : element_type(wanted);
  require(is_arithmetic_float(precision), "softmax_precision is {}, expected a float type", name(precision));
  require(mode >= 0 && mode <= 3, "qk_matmul_output_mode is {}, expected 0 to 3", mode);
  const Positions p{n.integer("is_causal", 0) != 0, n.integer("left_window_size", -1),
                    n.integer("right_window_size", -1)};
  require(p.left >= -1 && p.right >= -1, "window sizes are {} and {}, expected -1 or more", p.left, p.right);
  const bool by_op = op_suits(n, a, precision);
  std::optional<Value> visible = masks(n, a, p, by_op, attrs), bias;
  if (n.has(3)) {
    const Value mask = full_mask(n[3], a.keys);
    require(mask.dtype() == DType::boolean || is_arithmetic_float(mask.dtype()),
            "the mask is {}, expected bool or floats", n[3].type().text());
    if (mask.dtype() == DType::boolean) visible = both(visible, mask);
    if (mask.dtype() != DType::boolean) bias = cast(mask, a.q.dtype());
  }
  if (by_op) {
    const Value y = run_op(a, attrs, visible, bias);
    return {a.unpacked ? join_heads(y) : y, a.k, a.v};
  }
  if (a.packed) {
    const Index kv_heads = n.integer("kv_num_heads");
    a = {split_heads(a.q, a.heads), split_heads(a.k, kv_heads), split_heads(a.v, kv_heads), false, true};
  }
  require(a.q.dim(-1).is_constant(), "q is {}, expected heads of a known size", a.q.type().text());
  const double scale = attrs.scale.value_or(1 / std::sqrt(static_cast<double>(a.q.dim(-1).constant())));
  const AttentionOutputs out = attention_by_operators(a.q, a.k, a.v, {scale, attrs.soft_cap, precision, visible, bias});
  const Value products[] = {out.scores, out.capped, out.biased, out.weights};
  return {a.unpacked ? join_heads(out.y) : out.y, a.k, a.v, products[mode]};
}

Values rotary_embedding(NodeArgs& n) {
  n.expect(3, 4);
  const Value x = n[0];
  const Index heads = n.integer("num_heads", 0);
  RopeAttrs a;
  a.pairing = n.integer("interleaved", 0) != 0 ? RopePairing::gptj : RopePairing::neox;
  a.rotary = n.integer("rotary_embedding_dim", 0);
  require(x.rank() == 3 || x.rank() == 4, "x is {}, expected rank 3 or 4", x.type().text());
  if (x.rank() == 3) {
    const Dim& last = x.dim(-1);
    require(heads > 0 && last.is_constant() && last.constant() % heads == 0, "x is {}, expected {} heads of one size",
            x.type().text(), heads);
    a.head_size = last.constant() / heads;
  }
  Value cos = n[1], sin = n[2];
  if (n.has(3)) {
    cos = gather(cos, n[3], 0);
    sin = gather(sin, n[3], 0);
  }
  require(cos.rank() == 3, "cos is {}, expected one row for every position", cos.type().text());
  return {rope(x, cos, sin, a)};
}

}  // namespace

OperatorRows attention_rows() {
  static constexpr OperatorRow rows[] = {
      {"Attention", 23, attention_operator},
      {"RotaryEmbedding", 23, rotary_embedding},
  };
  return rows;
}

}  // namespace rlx::onnx
