// Recognises attention: from the product with the values down to the scores, then the heads of q, k, v.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <unordered_map>

#include "ir/rewrite.h"
#include "ops/attention/attention.h"
#include "ops/cast/cast.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"
#include "passes/recognise.h"
#include "passes/recognise_mask.h"

namespace rlx {

namespace {

using namespace pattern;

constexpr double inf = std::numeric_limits<double>::infinity();

// Axes ..., S, D of a value as the products see it: `base` under the sizes `dims`, its axes in `order`, times `scale`.
struct HeadView {
  Operand base;
  std::vector<Dim> dims;
  std::vector<Index> order;
  double scale = 1;

  std::size_t rank() const { return order.size(); }
  // Size along a view axis, counted from the end: 1 is the last.
  const Dim& size(std::size_t from_end) const { return dims[static_cast<std::size_t>(order[order.size() - from_end])]; }
  bool is(std::initializer_list<Index> wanted) const { return std::ranges::equal(order, wanted); }
};

// What lies between the scores and the product with the values.
struct Scores {
  Operand product;  // the matmul of q and k
  double scale = 1, cap = 0;
  bool guarded = false;  // rows of nothing but -inf give 0
  std::vector<MaskTerm> masks;
};

// An attention in the old graph.
struct Found {
  HeadView q, k, v;
  Scores scores;
  MaskPlan mask;
  ScoreSizes sizes;
};

class AttentionRecogniser {
 public:
  explicit AttentionRecogniser(const Graph& g) : g_(g), m_(g) {}

  std::optional<Values> visit(Rewriter& r, Id id);
  std::size_t found = 0, left = 0;

 private:
  std::optional<Found> find(Id id);
  std::optional<Operand> softmax_of(Operand weights, Id reader, Scores& s) const;
  std::optional<Operand> unguarded(Operand weights, Scores& s) const;
  bool read_scores(Operand o, Id reader, Scores& s, double factor) const;
  bool read_step(Operand o, Scores& s, double factor) const;
  bool read_choice(Operand o, Scores& s, double factor) const;
  HeadView view(Operand o, bool transposed) const;
  void share_heads(HeadView& v) const;
  bool sizes_agree(Found& f, const TensorType& result) const;
  Values emit(Rewriter& r, Id id, const Found& f);

  const Graph& g_;
  Matcher m_;
  std::unordered_map<Id, Value> packed_, by_position_;  // old nodes whose value is a packed or [B,S,H,D] result
};

// --- from the weights to the scores ---

// What stands under select(it is NaN, 0, it); then `s.guarded`.
std::optional<Operand> AttentionRecogniser::unguarded(Operand weights, Scores& s) const {
  const Node& n = m_.node(weights);
  const Operand condition = n.operands[0], yes = n.operands[1], no = n.operands[2];
  const auto zero = [&](Operand o) { return scalar_number(g_, o) == 0.0; };
  const auto compares_itself = [&](std::string_view op, Operand with) {
    const bool self = m_.is(condition, op) && m_.node(condition).operands == std::vector{with, with};
    return self && m_.only_reader(condition.node, weights.node) &&
           !m_.read_outside(with.node, {condition.node, weights.node});
  };
  s.guarded = true;
  if (zero(yes) && compares_itself("not_equal", no)) return no;
  if (zero(no) && compares_itself("equal", yes)) return yes;
  return std::nullopt;
}

// The softmax that gives `weights`.
std::optional<Operand> AttentionRecogniser::softmax_of(Operand weights, Id reader, Scores& s) const {
  Id above = reader;
  for (int steps = 0; steps < 4; ++steps) {
    if (weights.result != 0) return std::nullopt;
    const Node& n = m_.node(weights);
    if (n.op == &softmax_op) {
      const bool alone = s.guarded || m_.only_reader(weights.node, above);
      const bool last = g_.type(weights).axis(n.attrs.as<SoftmaxAttrs>().axis) == g_.type(weights).rank() - 1;
      return alone && last ? std::optional(weights) : std::nullopt;
    }
    if (!m_.only_reader(weights.node, above)) return std::nullopt;
    above = weights.node;
    if (n.op == &cast_op && g_.type(n.operands[0]).dtype == DType::f32) {
      weights = n.operands[0];
    } else if (m_.is(weights, "select") && !s.guarded) {
      const std::optional<Operand> inner = unguarded(weights, s);
      if (!inner) return std::nullopt;
      weights = *inner;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// --- from the scores to their product ---

// `factor` has been met above `o` and applies to what is below.
bool AttentionRecogniser::read_scores(Operand o, Id reader, Scores& s, double factor) const {
  if (o.result != 0 || !m_.only_reader(o.node, reader)) return false;
  const Node& n = m_.node(o);
  if (n.op == &matmul_op) {
    s.product = o;
    s.scale = factor * (s.cap > 0 ? s.cap : 1);
    return true;
  }
  return read_step(o, s, factor);
}

bool AttentionRecogniser::read_step(Operand o, Scores& s, double factor) const {
  const Node& n = m_.node(o);
  const std::string_view name = n.op->name();
  const auto same_size = [&](Operand x) { return g_.type(x).dims == g_.type(o).dims; };
  if (name == "mul" || name == "div") {
    for (std::size_t i = 0; i < (name == "mul" ? 2U : 1U); ++i) {
      const std::optional<double> c = scalar_number(g_, n.operands[1 - i]);
      if (!c || !same_size(n.operands[i])) continue;
      return read_scores(n.operands[i], o.node, s, name == "mul" ? factor * *c : factor / *c);
    }
    return false;
  }
  if (name == "cast") {
    const DType from = g_.type(n.operands[0]).dtype;
    const bool widens = g_.type(o).dtype == DType::f32 && (from == DType::f16 || from == DType::bf16);
    return widens && read_scores(n.operands[0], o.node, s, factor);
  }
  if (name == "tanh") {
    if (s.cap != 0 || !(factor > 0)) return false;
    s.cap = factor;
    return read_scores(n.operands[0], o.node, s, 1);
  }
  if (s.cap != 0) return false;  // the cap comes before masks
  if (name == "select") return read_choice(o, s, factor);
  if ((name != "add" && name != "sub") || factor != 1) return false;
  for (std::size_t i = 0; i < (name == "add" ? 2U : 1U); ++i) {
    if (!same_size(n.operands[i])) continue;
    Scores attempt = s;
    attempt.masks.push_back({name == "add" ? MaskTerm::Kind::bias : MaskTerm::Kind::less, n.operands[1 - i]});
    if (!read_scores(n.operands[i], o.node, attempt, 1)) continue;
    s = std::move(attempt);
    return true;
  }
  return false;
}

// A number where a condition hides the score.
bool AttentionRecogniser::read_choice(Operand o, Scores& s, double factor) const {
  const Node& n = m_.node(o);
  for (const std::size_t number : {1U, 2U}) {
    const std::optional<double> fill = scalar_number(g_, n.operands[number]);
    const Operand score = n.operands[3 - number];
    if (!fill || g_.type(score).dims != g_.type(o).dims) continue;
    if (factor != 1 && !(*fill == -inf && factor > 0)) return false;
    s.masks.push_back({MaskTerm::Kind::fill, n.operands[0], number == 1, *fill});
    return read_scores(score, o.node, s, factor);
  }
  return false;
}

// --- heads ---

// Looks through the transpose `v.base`, whose axes may be regrouped in front of those that it moves: then it moves the
// same axes of the view.
bool take_transpose(const Graph& g, HeadView& v) {
  const Node& n = g.nodes[v.base.node];
  const std::vector<Dim>&to = n.results[0].dims, &from = g.type(n.operands[0]).dims;
  std::vector<Index> order;
  for (const Index axis : n.attrs.as<TransposeAttrs>().order) order.push_back(g.type(n.operands[0]).axis(axis));
  std::size_t fixed = 0;
  while (fixed < order.size() && order[fixed] == static_cast<Index>(fixed)) ++fixed;
  const std::size_t moved = order.size() - fixed;
  if (v.dims != to) {
    if (moved > v.dims.size() ||
        !std::equal(to.end() - static_cast<Index>(moved), to.end(), v.dims.end() - static_cast<Index>(moved)))
      return false;
  }
  const Index first = static_cast<Index>(v.dims.size() - moved), shift = first - static_cast<Index>(fixed);
  for (Index& axis : v.order) axis = axis < first ? axis : order[static_cast<std::size_t>(axis - shift)] + shift;
  std::copy(from.end() - static_cast<Index>(moved), from.end(), v.dims.end() - static_cast<Index>(moved));
  v.base = n.operands[0];
  return true;
}

HeadView AttentionRecogniser::view(Operand o, bool transposed) const {
  HeadView v{o, g_.type(o).dims, {}};
  for (Index i = 0; i < g_.type(o).rank(); ++i) v.order.push_back(i);
  if (transposed) std::swap(v.order[v.order.size() - 1], v.order[v.order.size() - 2]);
  for (;;) {
    const Node& n = m_.node(v.base);
    const std::string_view name = n.op->name();
    if (name == "transpose" && take_transpose(g_, v)) {
      continue;
    } else if (name == "reshape") {
      v.base = n.operands[0];
    } else if (name == "mul" || name == "div") {
      const std::size_t number = name == "mul" && scalar_number(g_, n.operands[0]) ? 0 : 1;
      const std::optional<double> c = scalar_number(g_, n.operands[number]);
      const Operand x = n.operands[1 - number];
      if (!c || !std::isfinite(*c) || *c == 0 || g_.type(x) != g_.type(v.base)) return v;
      v.scale = name == "mul" ? v.scale * *c : v.scale / *c;
      v.base = x;
    } else {
      return v;
    }
  }
}

// Keys and values repeated for the queries that share them: [B,Hkv,1,S,D] stretched to [B,Hkv,G,S,D] = [B,H,S,D].
void AttentionRecogniser::share_heads(HeadView& v) const {
  if (!v.is({0, 1, 2, 3}) && !v.is({0, 1, 3, 2})) return;
  if (!m_.is(v.base, "broadcast")) return;
  const Operand from = m_.node(v.base).operands[0];
  const std::vector<Dim>&wide = g_.type(v.base).dims, &narrow = g_.type(from).dims;
  if (wide.size() != 5 || narrow.size() != 5 || narrow[2] != Dim(1)) return;
  if (wide[1] * wide[2] != v.dims[1]) return;
  for (const std::size_t i : {0U, 1U, 3U, 4U}) {
    if (wide[i] != narrow[i] || (i != 1 && wide[i] != v.dims[i < 3 ? i : i - 1])) return;
  }
  const HeadView outer = v;
  v.dims = {narrow[0], narrow[1], narrow[3], narrow[4]};
  v.base = from;
  while (m_.is(v.base, "reshape")) v.base = m_.node(v.base).operands[0];
  if (g_.type(v.base).dims != v.dims) return;
  const HeadView inner = view(v.base, outer.order[2] == 3);
  v = {inner.base, inner.dims, inner.order, outer.scale * inner.scale};
}

bool AttentionRecogniser::sizes_agree(Found& f, const TensorType& result) const {
  const std::size_t rank = f.q.rank();
  if (rank < 2 || rank > 4 || f.k.rank() != rank || f.v.rank() != rank) return false;
  ScoreSizes& s = f.sizes;
  s.rank = rank;
  s.queries = f.q.size(2);
  s.keys = f.k.size(2);
  if (rank == 4) s.heads = f.q.size(3);
  if (rank > 2) s.batch = f.q.size(rank);
  const auto positive = [](const Dim& d) { return d.is_constant() && d.constant() > 0; };
  if (!positive(s.heads) || !positive(f.q.size(1)) || !positive(f.v.size(1)) || f.k.size(1) != f.q.size(1))
    return false;
  for (const HeadView* x : {&f.k, &f.v}) {
    if (x->size(2) != s.keys || (rank > 2 && x->size(rank) != s.batch)) return false;
    const bool shared = rank == 4 && positive(x->size(3)) && s.heads.constant() % x->size(3).constant() == 0;
    if (rank == 4 && (!shared || x->size(3) != f.k.size(3))) return false;
  }
  std::vector<Dim> dims{s.batch, s.heads, s.queries, f.v.size(1)};
  if (rank == 3) dims.erase(dims.begin() + 1);
  if (rank == 2) dims.erase(dims.begin(), dims.begin() + 2);
  return result.dims == dims && is_arithmetic_float(result.dtype) && g_.type(f.q.base).dtype == result.dtype &&
         g_.type(f.k.base).dtype == result.dtype && g_.type(f.v.base).dtype == result.dtype;
}

// --- the whole ---

std::optional<Found> AttentionRecogniser::find(Id id) {
  const Node& n = g_.nodes[id];
  const MatmulAttrs out = n.attrs.as<MatmulAttrs>();
  Found f;
  if (out.transpose_a) return std::nullopt;
  const std::optional<Operand> weights = softmax_of(n.operands[0], id, f.scores);
  if (!weights) return std::nullopt;
  ++left;
  if (!read_scores(m_.node(*weights).operands[0], weights->node, f.scores, 1)) return std::nullopt;
  const Node& product = m_.node(f.scores.product);
  const MatmulAttrs in = product.attrs.as<MatmulAttrs>();
  f.q = view(product.operands[0], in.transpose_a);
  f.k = view(product.operands[1], !in.transpose_b);
  f.v = view(n.operands[1], out.transpose_b);
  share_heads(f.k);
  share_heads(f.v);
  if (f.v.scale != 1 || !sizes_agree(f, n.results[0])) return std::nullopt;
  const std::optional<MaskPlan> mask = plan_mask(g_, f.scores.masks, f.sizes, n.results[0].dtype);
  if (!mask || (f.scores.guarded && !mask->masks())) return std::nullopt;
  f.mask = *mask;
  const double scale = f.scores.scale * f.q.scale * f.k.scale;
  if (!std::isfinite(scale)) return std::nullopt;
  f.scores.scale = scale;
  --left;
  return f;
}

// A view as an operand of the layout.
Value operand(Rewriter& r, const HeadView& v, bool packed) {
  const Value base = r.value(v.base);
  if (packed) return reshape(base, {v.dims[0], v.dims[1], v.dims[2] * v.dims[3]});
  Value x = transpose(reshape(base, v.dims), v.order);
  std::vector<Dim> dims = x.type().dims;
  if (dims.size() == 3) dims.insert(dims.begin() + 1, Dim(1));
  if (dims.size() == 2) dims.insert(dims.begin(), 2, Dim(1));
  return reshape(x, dims);
}

Values AttentionRecogniser::emit(Rewriter& r, Id id, const Found& f) {
  const TensorType& type = g_.nodes[id].results[0];
  const bool packed = f.q.is({0, 2, 1, 3}) && f.k.is({0, 2, 1, 3}) && f.v.is({0, 2, 1, 3});
  AttentionAttrs a;
  a.layout = packed ? AttentionLayout::packed : AttentionLayout::bhsd;
  if (packed) a.heads = f.sizes.heads.constant();
  const double usual = 1 / std::sqrt(static_cast<double>(f.q.size(1).constant()));
  if (!near(f.scores.scale, usual, type.dtype, 4)) a.scale = shortest(f.scores.scale, type.dtype);
  if (f.scores.cap > 0) a.soft_cap = shortest(f.scores.cap, type.dtype);
  a.mask = f.mask.mask;
  a.window = f.mask.window;
  a.offset = f.mask.offset;
  const std::optional<Value> extra = mask_operand(r, f.mask, f.sizes, type.dtype, a);
  const Value q = operand(r, f.q, packed), k = operand(r, f.k, packed), v = operand(r, f.v, packed);
  const Value y = extra ? attention(q, k, v, *extra, a) : attention(q, k, v, a);
  if (!packed) return {reshape(y, type.dims)};
  packed_.emplace(id, y);
  return {transpose(reshape(y, {type.dims[0], type.dims[2], type.dims[1], type.dims[3]}), {0, 2, 1, 3})};
}

std::optional<Values> AttentionRecogniser::visit(Rewriter& r, Id id) {
  const Node& n = g_.nodes[id];
  if (n.op == &matmul_op) {
    const std::optional<Found> f = find(id);
    if (!f) return std::nullopt;
    ++found;
    return emit(r, id, *f);
  }
  // Heads back at their positions, and joined: the packed result as it is.
  if (n.op == &transpose_op && n.attrs.as<TransposeAttrs>().order == std::vector<Index>{0, 2, 1, 3}) {
    const auto at = packed_.find(n.operands[0].node);
    if (at == packed_.end()) return std::nullopt;
    by_position_.emplace(id, at->second);
    return Values{reshape(at->second, n.results[0].dims)};
  }
  if (n.op == &reshape_op) {
    const auto at = by_position_.find(n.operands[0].node);
    if (at != by_position_.end()) return Values{reshape(at->second, n.results[0].dims)};
  }
  return std::nullopt;
}

}  // namespace

Graph recognise_attention(const Graph& g, PassContext& context) {
  if (!holds(g, {"softmax", "matmul"})) return g;
  AttentionRecogniser all(g);
  Graph result = rewrite(g, [&](Rewriter& r, Id id) { return all.visit(r, id); });
  if (all.left > 0) context.remark(fmt::format("{} products with a softmax stay as they are", all.left));
  if (all.found == 0) return g;
  context.remark(fmt::format("{} attentions", all.found));
  return drop_dead(result);
}

}  // namespace rlx
