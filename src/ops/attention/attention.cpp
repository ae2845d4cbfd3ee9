// attention: shapes, and the definition by matmul, select and softmax, from which the gradient follows.
#include "ops/attention/attention.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "ops/attention/attention_parts.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace rlx {

std::span<const std::string_view> enum_names(AttentionLayout) {
  static constexpr std::string_view names[] = {"bhsd", "bshd", "packed"};
  return names;
}
std::span<const std::string_view> enum_names(AttentionMask) {
  static constexpr std::string_view names[] = {"none", "causal", "window"};
  return names;
}
std::span<const std::string_view> enum_names(AttentionExtra) {
  static constexpr std::string_view names[] = {"none", "keys", "pairs", "bias"};
  return names;
}

namespace detail {

namespace {

constexpr const char* operand_names[] = {"q", "k", "v"};

Index constant_size(const TensorType& t, Index axis, const char* what) {
  const Dim& d = t.dim(axis);
  require(d.is_constant() && d.constant() > 0, "{} is {}: size {} of axis {} must be a constant of at least 1", what,
          t.text(), d.text(), t.axis(axis));
  return d.constant();
}

// Heads in the packed last axis of an operand, whose heads have `size` elements.
Index packed_heads(const TensorType& t, Index size, const char* what) {
  const Index last = constant_size(t, -1, what);
  require(last % size == 0, "{} is {}: its last axis does not hold heads of {} elements", what, t.text(), size);
  return last / size;
}

void packed_sizes(const AttentionAttrs& a, Types in, AttentionSizes& s) {
  require(a.heads > 0, "heads is {}: the packed layout needs the number of heads of q", a.heads);
  const Index last = constant_size(in[0], -1, "q");
  require(last % a.heads == 0, "q is {}: its last axis does not hold {} heads", in[0].text(), a.heads);
  s.heads = a.heads;
  s.size = last / a.heads;
  s.kv_heads = packed_heads(in[1], s.size, "k");
  const Index values = constant_size(in[2], -1, "v");
  require(values % s.kv_heads == 0, "v is {}: its last axis does not hold the {} heads of k", in[2].text(), s.kv_heads);
  s.value_size = values / s.kv_heads;
}

void separate_sizes(const AttentionAttrs& a, Types in, AttentionSizes& s) {
  const Index axis = a.layout == AttentionLayout::bhsd ? 1 : 2;
  s.heads = constant_size(in[0], axis, "q");
  s.kv_heads = constant_size(in[1], axis, "k");
  s.size = constant_size(in[0], 3, "q");
  s.value_size = constant_size(in[2], 3, "v");
  require(a.heads == 0 || a.heads == s.heads, "q is {} in layout {}: it has {} heads, but heads is {}", in[0].text(),
          enum_names(a.layout)[static_cast<std::size_t>(a.layout)], s.heads, a.heads);
  require(constant_size(in[1], 3, "k") == s.size, "k is {}: its heads have not the {} elements of those of q",
          in[1].text(), s.size);
  require(constant_size(in[2], axis, "v") == s.kv_heads, "v is {}: it has not the {} heads of k", in[2].text(),
          s.kv_heads);
}

}  // namespace

AttentionSizes attention_sizes(const AttentionAttrs& a, Types in) {
  const bool packed = a.layout == AttentionLayout::packed;
  for (std::size_t i = 0; i < 3; ++i) {
    require(in[i].rank() == (packed ? 3 : 4), "{} is {}, expected rank {} in layout {}", operand_names[i], in[i].text(),
            packed ? 3 : 4, enum_names(a.layout)[static_cast<std::size_t>(a.layout)]);
  }
  AttentionSizes s;
  const Index positions = a.layout == AttentionLayout::bhsd ? 2 : 1;
  s.batch = in[0].dim(0);
  s.queries = in[0].dim(positions);
  s.keys = in[1].dim(positions);
  packed ? packed_sizes(a, in, s) : separate_sizes(a, in, s);
  require(s.heads % s.kv_heads == 0, "{} heads of q are not shared evenly by {} heads of k", s.heads, s.kv_heads);
  return s;
}

double attention_scale(const AttentionAttrs& a, const AttentionSizes& s) {
  return a.scale ? *a.scale : 1 / std::sqrt(static_cast<double>(s.size));
}

Dim attention_offset(const AttentionAttrs& a, const AttentionSizes& s) {
  return a.offset ? *a.offset : max(Dim(0), s.keys - s.queries);
}

}  // namespace detail

namespace {

using detail::AttentionSizes;

void check_numbers(const AttentionAttrs& a) {
  require(!a.scale || std::isfinite(*a.scale), "scale is {}, expected a finite number", a.scale.value_or(0));
  require(std::isfinite(a.soft_cap) && a.soft_cap >= 0, "soft_cap is {}, expected 0 for none or a positive number",
          a.soft_cap);
  const bool window = a.mask == AttentionMask::window;
  require(window ? a.window >= 1 : a.window == 0, "window is {} for mask {}, expected {}", a.window,
          enum_names(a.mask)[static_cast<std::size_t>(a.mask)], window ? "1 or more" : "0");
  require(!a.offset || a.mask != AttentionMask::none, "offset is given for mask none, which has no positions");
}

void check_extra(const AttentionAttrs& a, InferContext& c, const AttentionSizes& s) {
  if (a.extra == AttentionExtra::none) return;
  const TensorType& t = c.in[3];
  const std::string_view kind = enum_names(a.extra)[static_cast<std::size_t>(a.extra)];
  const bool keys = a.extra == AttentionExtra::keys, bias = a.extra == AttentionExtra::bias;
  const bool number = is_arithmetic_float(t.dtype) || (is_integer(t.dtype) && bits(t.dtype) >= 8);
  const bool ok = bias ? t.dtype == c.in[0].dtype : t.dtype == DType::boolean || (keys && number);
  require(!t.encoding && ok, "operand {} is {}, expected {}", kind, t.text(),
          bias ? "the element type of q" : (keys ? "bool, integers or floats" : "bool"));
  const std::vector<Dim> full =
      keys ? std::vector<Dim>{s.batch, s.keys} : std::vector<Dim>{s.batch, Dim(s.heads), s.queries, s.keys};
  require(t.dims.size() == full.size(), "operand {} is {}, expected rank {}", kind, t.text(), full.size());
  for (std::size_t i = 0; i < full.size(); ++i) {
    const bool stretches = t.dims[i] == Dim(1) && !(keys && i == 1);
    if (!stretches) c.equal(t.dims[i], full[i], fmt::format("axis {} of operand {}", i, kind));
  }
}

TensorType attention_infer(const AttentionAttrs& a, InferContext& c) {
  const std::size_t operands = a.extra == AttentionExtra::none ? 3 : 4;
  require(c.in.size() == operands, "{} operands are given, expected {} for extra {}", c.in.size(), operands,
          enum_names(a.extra)[static_cast<std::size_t>(a.extra)]);
  const TensorType& q = c.in[0];
  require(!q.encoding && is_arithmetic_float(q.dtype), "q is {}, expected f64, f32, f16 or bf16", q.text());
  for (std::size_t i = 1; i < 3; ++i) {
    require(!c.in[i].encoding && c.in[i].dtype == q.dtype, "{} is {}, expected element type {} as q",
            detail::operand_names[i], c.in[i].text(), name(q.dtype));
  }
  check_numbers(a);
  const AttentionSizes s = detail::attention_sizes(a, c.in.first(3));
  c.equal(c.in[1].dim(0), s.batch, "batch of k and q");
  c.equal(c.in[2].dim(0), s.batch, "batch of v and q");
  c.equal(c.in[2].dim(a.layout == AttentionLayout::bhsd ? 2 : 1), s.keys, "positions of v and k");
  check_extra(a, c, s);
  TensorType out = q;
  out.dims.back() = a.layout == AttentionLayout::packed ? Dim(s.heads * s.value_size) : Dim(s.value_size);
  return out;
}

// --- definition: everything as [B,Hkv,G,S,D], G queries' heads sharing a head of k and v ---

Value by_group(const AttentionAttrs& a, Value x, Index kv_heads, Index group, Index size) {
  if (a.layout == AttentionLayout::packed) x = reshape(x, {x.dim(0), x.dim(1), kv_heads * group, size});
  if (a.layout != AttentionLayout::bhsd) x = transpose(x, {0, 2, 1, 3});
  return reshape(x, {x.dim(0), kv_heads, group, x.dim(2), size});
}

Value from_groups(const AttentionAttrs& a, Value x, const AttentionSizes& s) {
  x = reshape(x, {s.batch, s.heads, s.queries, s.value_size});
  if (a.layout != AttentionLayout::bhsd) x = transpose(x, {0, 2, 1, 3});
  return a.layout == AttentionLayout::packed ? reshape(x, {s.batch, s.queries, s.heads * s.value_size}) : x;
}

// Which keys each query sees by position, as bool [S_q,S_k].
Value visible_by_position(Builder& b, const AttentionAttrs& a, const AttentionSizes& s) {
  const Dim offset = detail::attention_offset(a, s);
  const Value first = offset.is_constant() ? constant(b, DType::i64, static_cast<double>(offset.constant()))
                                           : reshape(sizes(b, {offset}), {});
  const Value query = iota(b, DType::i64, {s.queries, 1}, 0) + first, key = iota(b, DType::i64, {1, s.keys}, 1);
  const Value past = less_equal(key, query);
  if (a.mask == AttentionMask::causal) return past;
  return bitwise_and(past, greater(key, query - constant(b, DType::i64, static_cast<double>(a.window))));
}

// The fourth operand over [B,Hkv,G,S_q,S_k].
Value extra_by_group(const AttentionAttrs& a, Value x, const AttentionSizes& s) {
  if (a.extra == AttentionExtra::keys) {
    if (is_float(x.dtype())) x = greater_equal(x, like(x, 0.5));
    if (is_integer(x.dtype())) x = not_equal(x, like(x, 0));
    return reshape(x, {x.dim(0), 1, 1, 1, s.keys});
  }
  const bool shared = x.dim(1) == Dim(1);
  return reshape(x, {x.dim(0), shared ? 1 : s.kv_heads, shared ? 1 : s.group(), x.dim(2), x.dim(3)});
}

// Softmax over the last axis, where a row of nothing but -inf gives zeros.
Value softmax_or_zero(Value scores) {
  const Value zero = like(scores, 0), lowest = like(scores, -std::numeric_limits<double>::infinity());
  const Value nothing = equal(max(scores, {-1}, true), lowest);
  return select(nothing, zero, softmax(select(nothing, zero, scores)));
}

Value attention_definition(const AttentionAttrs& a, const DefineArgs& d) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < 3; ++i) types.push_back(d[i].type());
  const AttentionSizes s = detail::attention_sizes(a, types);
  const Value q = by_group(a, d[0], s.kv_heads, s.group(), s.size), k = by_group(a, d[1], s.kv_heads, 1, s.size);
  const Value v = by_group(a, d[2], s.kv_heads, 1, s.value_size);
  Value scores = matmul(q, k, {false, true}) * like(q, detail::attention_scale(a, s));
  if (a.soft_cap > 0) scores = like(q, a.soft_cap) * tanh(scores / like(q, a.soft_cap));
  std::vector<Value> visible;
  if (a.mask != AttentionMask::none) visible.push_back(visible_by_position(*q.builder, a, s));
  if (a.extra != AttentionExtra::none) {
    const Value extra = extra_by_group(a, d[3], s);
    if (a.extra == AttentionExtra::bias) {
      scores = scores + extra;
    } else {
      visible.push_back(extra);
    }
  }
  const Value lowest = like(scores, -std::numeric_limits<double>::infinity());
  for (const Value& see : visible) scores = select(see, scores, lowest);
  const bool masked = a.mask != AttentionMask::none || a.extra != AttentionExtra::none;
  return from_groups(a, matmul(masked ? softmax_or_zero(scores) : softmax(scores), v), s);
}

}  // namespace

constinit const Op<AttentionAttrs> attention_op{{
    .name = "attention",
    .doc = "Scaled dot-product attention: per query and head, the mean of the values of the visible keys, weighted by "
           "softmax(s), s = `scale` * (q . k), capped to `soft_cap` * tanh(s / soft_cap) when that is not 0, then plus "
           "the bias. Operands q, k, v in `layout`, alike in element type (f64, f32, f16, bf16), and the one that "
           "`extra` describes. q has H heads of D elements at S_q positions, k has Hkv heads of D elements and v Hkv "
           "heads of Dv elements at S_k positions; head h of q uses head floor(h * Hkv / H) of k and v, so Hkv must "
           "divide H. The result has q's layout with Dv elements a head. Heads and head sizes are constants; of packed "
           "operands `heads` gives H, the rest follows from the sizes. Query i has position p = `offset` + i among the "
           "keys; offset is max(0, S_k - S_q) unless given. `mask` causal shows it the keys 0..p, window those of "
           "p-window+1..p. A hidden key has weight 0 (its value must be finite all the same); a query without visible "
           "key, or with scores of -inf only under a mask or bias, gives 0 and no gradient. Gradients of q, k, v and "
           "bias. Source: Vaswani et al., arXiv 1706.03762; grouped heads: Ainslie et al., arXiv 2305.13245; soft cap: "
           "arXiv 2408.00118.",
    .infer = attention_infer,
    .definition = attention_definition,
    .reference = detail::attention_reference,
    .cases = detail::attention_cases,
    .failures = detail::attention_failures,
}};

Value attention(Value q, Value k, Value v, AttentionAttrs attrs) {
  return q.builder->emit_one(attention_op, std::move(attrs), {q, k, v});
}
Value attention(Value q, Value k, Value v, Value extra, AttentionAttrs attrs) {
  return q.builder->emit_one(attention_op, std::move(attrs), {q, k, v, extra});
}

std::span<const OpDef* const> attention_ops() {
  static constexpr const OpDef* ops[] = {&attention_op};
  return ops;
}

}  // namespace rlx
