// paged_attention: shapes, and the definition by gather, matmul and softmax, from which the gradient follows.
#include "ops/paged_attention/paged_attention.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/paged_attention/paged_attention_parts.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace rlx {

namespace detail {

namespace {

constexpr const char* operand_names[] = {"q", "keys", "values", "tables", "sequences", "positions"};
constexpr Index operand_ranks[] = {3, 3, 3, 2, 1, 1};

Index constant_size(const TensorType& t, Index axis, const char* what) {
  const Dim& d = t.dim(axis);
  require(d.is_constant() && d.constant() > 0, "{} is {}: size {} of axis {} must be a constant of at least 1", what,
          t.text(), d.text(), axis);
  return d.constant();
}

}  // namespace

PagedSizes paged_sizes(Types in) {
  for (std::size_t i = 0; i < 6; ++i) {
    require(in[i].rank() == operand_ranks[i], "{} is {}, expected rank {}", operand_names[i], in[i].text(),
            operand_ranks[i]);
  }
  PagedSizes s{.tokens = in[0].dim(0), .slots = in[1].dim(0), .sequences = in[3].dim(0), .pages = in[3].dim(1)};
  s.heads = constant_size(in[0], 1, "q");
  s.size = constant_size(in[0], 2, "q");
  s.kv_heads = constant_size(in[1], 1, "keys");
  s.value_size = constant_size(in[2], 2, "values");
  require(constant_size(in[1], 2, "keys") == s.size, "keys are {}: their heads have not the {} elements of those of q",
          in[1].text(), s.size);
  require(constant_size(in[2], 1, "values") == s.kv_heads, "values are {}: they have not the {} heads of the keys",
          in[2].text(), s.kv_heads);
  require(s.heads % s.kv_heads == 0, "{} heads of q are not shared evenly by {} heads of the keys", s.heads,
          s.kv_heads);
  return s;
}

double paged_scale(const PagedAttentionAttrs& a, const PagedSizes& s) {
  return a.scale ? *a.scale : 1 / std::sqrt(static_cast<double>(s.size));
}

void PagedRanges::check_token(Index token, Index sequence, Index position) const {
  require(sequence >= 0 && sequence < sequences, "token {} is of sequence {}, but there are tables for {}", token,
          sequence, sequences);
  require(position >= 0 && position < pages * page, "token {} has position {}, but tables have {} pages of {} slots",
          token, position, pages, page);
}

void PagedRanges::check_table(Index sequence, std::span<const std::int32_t> entries) const {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    require(entries[i] >= 0 && entries[i] < pool,
            "entry {} of the table of sequence {} is page {}, but the pools have {}", i, sequence, entries[i], pool);
  }
}

}  // namespace detail

namespace {

using detail::PagedSizes;

TensorType paged_infer(const PagedAttentionAttrs& a, InferContext& c) {
  require(c.in.size() == 6, "{} operands are given, expected 6", c.in.size());
  const TensorType& q = c.in[0];
  require(!q.encoding && (q.dtype == DType::f32 || q.dtype == DType::f64), "q is {}, expected f32 or f64", q.text());
  for (std::size_t i = 1; i < 3; ++i) {
    const TensorType& t = c.in[i];
    require(!t.encoding && is_arithmetic_float(t.dtype) && (q.dtype == DType::f64 || t.dtype != DType::f64),
            "{} are {}, expected f32, f16 or bf16, or f64 with q of f64", detail::operand_names[i], t.text());
  }
  require(c.in[1].dtype == c.in[2].dtype, "values are {}, expected element type {} as the keys", c.in[2].text(),
          name(c.in[1].dtype));
  for (std::size_t i = 3; i < 6; ++i) {
    require(!c.in[i].encoding && c.in[i].dtype == DType::i32, "{} are {}, expected i32", detail::operand_names[i],
            c.in[i].text());
  }
  require(a.page >= 1, "page is {}, expected 1 or more", a.page);
  require(!a.scale || std::isfinite(*a.scale), "scale is {}, expected a finite number", a.scale.value_or(0));
  require(a.window >= 0, "window is {}, expected 0 for none or a positive number", a.window);
  require(std::isfinite(a.soft_cap) && a.soft_cap >= 0, "soft_cap is {}, expected 0 for none or a positive number",
          a.soft_cap);
  const PagedSizes s = detail::paged_sizes(c.in);
  c.equal(c.in[2].dim(0), s.slots, "slots of values and keys");
  c.equal(c.in[4].dim(0), s.tokens, "tokens of sequences and q");
  c.equal(c.in[5].dim(0), s.tokens, "tokens of positions and q");
  return {q.dtype, {s.tokens, Dim(s.heads), Dim(s.value_size)}};
}

// --- definition ---

Value number(Builder& b, const Dim& d) {
  return d.is_constant() ? constant(b, DType::i64, static_cast<double>(d.constant())) : reshape(sizes(b, {d}), {});
}

// x as i64; an element outside [0, extent) is an Error at run time.
Value inside(Value x, const Dim& extent) {
  Builder& b = *x.builder;
  x = cast(x, DType::i64);
  const Value end = number(b, extent);
  return gather(iota(b, DType::i64, {extent}), select(less(x, like(x, 0)), end, x));
}

// The rows of a pool that the tables of all tokens name, [T,Hkv,P*page,size], in q's element type.
Value rows_of(Value pool, Value slots, const PagedSizes& s, Index size, const Dim& length, DType type) {
  const Value rows = cast(gather(pool, slots), type);  // [T,P*page,Hkv,size]
  return transpose(reshape(rows, {s.tokens, length, s.kv_heads, size}), {0, 2, 1, 3});
}

Value paged_definition(const PagedAttentionAttrs& a, const DefineArgs& d) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < 6; ++i) types.push_back(d[i].type());
  const PagedSizes s = detail::paged_sizes(types);
  Builder& b = *d[0].builder;
  const Dim length = s.pages * a.page;
  const Value tables = gather(d[3], inside(d[4], s.sequences));  // [T,P]
  const Value first =
      inside(tables, floordiv(s.slots, Dim(a.page))) * constant(b, DType::i64, static_cast<double>(a.page));
  const Value slots = reshape(first, {s.tokens, s.pages, 1}) + iota(b, DType::i64, {1, 1, a.page}, 2);
  const Value at = reshape(slots, {s.tokens, length});
  const Value keys = rows_of(d[1], at, s, s.size, length, d[0].dtype());
  const Value values = rows_of(d[2], at, s, s.value_size, length, d[0].dtype());
  const Value q = reshape(d[0], {s.tokens, s.kv_heads, s.group(), s.size});
  Value scores = matmul(q, keys, {false, true}) * like(q, detail::paged_scale(a, s));
  if (a.soft_cap > 0) scores = like(q, a.soft_cap) * tanh(scores / like(q, a.soft_cap));
  const Value position = reshape(inside(d[5], length), {s.tokens, 1, 1, 1});
  const Value key = iota(b, DType::i64, {1, 1, 1, length}, 3);
  Value seen = less_equal(key, position);
  if (a.window > 0) {
    seen = bitwise_and(seen, greater(key, position - constant(b, DType::i64, static_cast<double>(a.window))));
  }
  const Value weights = softmax(select(seen, scores, like(scores, -std::numeric_limits<double>::infinity())));
  return reshape(matmul(weights, values), {s.tokens, s.heads, s.value_size});
}

}  // namespace

constinit const Op<PagedAttentionAttrs> paged_attention_op{{
    .name = "paged_attention",
    .doc =
        "Attention of T tokens of several sequences over keys and values that lie in pages of pools. Operands: q "
        "f32 or f64 [T,H,D]; keys [slots,Hkv,D] and values [slots,Hkv,Dv], alike in element type (f32, f16, bf16, "
        "or f64 with q of f64), read as q's type; tables i32 [B,P], the pages of every sequence in order; sequences "
        "i32 [T], the row of `tables` that a token belongs to; positions i32 [T], its place in the sequence, from "
        "0. Position p of sequence s lies in slot tables[s, p / page] * page + p mod page; a rest of the pools "
        "behind the last whole page is not used. Token t sees the keys of its own sequence at positions "
        "0..positions[t], with a `window` w > 0 the last w of those. The result, [T,H,Dv] in q's type, is per head "
        "the mean of the values of the visible keys, weighted by softmax(s), s = `scale` * (q . k), capped to "
        "`soft_cap` * tanh(s / soft_cap) when that is not 0; head h of q uses head floor(h * Hkv / H) of the pools, "
        "so Hkv must divide H. On the CPU the bits of a token's result depend on its query and the keys and values "
        "it sees, not on the other tokens of the run or on which pages are used. A sequence outside [0, B), a position "
        "outside [0, P * page), or an entry outside the pools in a table that a token uses, needed or not, is an "
        "Error. The definition gathers P * page keys for every token; it gives gradients of q, keys and values, "
        "meant for small sizes: training uses `attention`. Source: Kwon et al., arXiv 2309.06180.",
    .infer = paged_infer,
    .definition = paged_definition,
    .reference = detail::paged_attention_reference,
    .cases = detail::paged_attention_cases,
    .failures = detail::paged_attention_failures,
}};

Value paged_attention(const PagedOperands& o, PagedAttentionAttrs attrs) {
  return o.q.builder->emit_one(paged_attention_op, attrs, {o.q, o.keys, o.values, o.tables, o.sequences, o.positions});
}

std::span<const OpDef* const> paged_attention_ops() {
  static constexpr const OpDef* ops[] = {&paged_attention_op};
  return ops;
}

}  // namespace rlx
