// absorb-layout: transposes and reshapes move towards the outputs until they meet their opposite or an op that has a
// flag for them: matmul, attention, rope.
#include <algorithm>

#include "ops/attention/attention.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"
#include "ops/transpose/transpose.h"
#include "passes/local_rules.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace rlx {

namespace {

using match::is, match::operand;

std::vector<Index> order_of(const Node& transpose, const TensorType& type) {
  std::vector<Index> order = transpose.attrs.as<TransposeAttrs>().order;
  for (Index& axis : order) axis = type.axis(axis);
  return order;
}
std::vector<Index> order_of(Value v) { return order_of(match::node(v), v.type()); }

const std::vector<Index> heads_and_positions{0, 2, 1, 3};  // exchanges [B,S,H,D] and [B,H,S,D]

bool exchanges_heads(Value v) { return is(v, transpose_op) && order_of(v) == heads_and_positions; }

// --- matmul ---

bool exchanges_last_two(Value v) {
  if (!is(v, transpose_op) || v.rank() < 2) return false;
  std::vector<Index> order = order_of(v);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return std::ranges::is_sorted(order);
}

std::optional<Value> transpose_into_matmul(const Site& s) {
  MatmulAttrs a = s.attrs<MatmulAttrs>();
  Value x = s[0], y = s[1];
  const bool left = exchanges_last_two(x), right = exchanges_last_two(y);
  if (!left && !right) return {};
  if (left) a.transpose_a = !a.transpose_a, x = operand(x);
  if (right) a.transpose_b = !a.transpose_b, y = operand(y);
  return s.rules.make(matmul_op, a, {x, y});
}

// Rows that were made one axis for a product with one matrix: the product does not need that.
std::optional<Value> reshape_behind_matmul(const Site& s) {
  const MatmulAttrs a = s.attrs<MatmulAttrs>();
  if (a.transpose_a || s[1].rank() != 2 || !is(s[0], reshape_op)) return {};
  const Value x = operand(s[0]);
  if (x.rank() < 2 || x.dim(-1) != s[0].dim(-1)) return {};
  TensorType type = x.type().with(-1, s.type().dim(-1));
  const Value in[] = {x, s[1]};
  if (equal(type.count(), s.type().count()) != Tri::yes) return {};
  if (!match::fits(s.builder(), matmul_op, Attrs(a), in, type)) return {};
  return reshape(s.rules.make(matmul_op, a, {x, s[1]}), s.type().dims);
}

// --- attention ---

// Whether all that reads the old node exchanges heads and positions.
bool users_exchange_heads(const Site& s) {
  const Graph& g = s.rules.from();
  if (!s.old || g.is_output(*s.old)) return false;
  return std::ranges::all_of(g.users(*s.old), [&](Id user) {
    const Node& n = g.nodes[user];
    return n.op == &transpose_op && order_of(n, n.results[0]) == heads_and_positions;
  });
}

Value attention_with(const Site& s, const AttentionAttrs& a, Values in) {
  for (std::size_t i = 3; i < s.operand_count(); ++i) in.push_back(s[i]);
  return s.rules.make(s.builder(), attention_op, Attrs(a), in);
}

// The other order of heads and positions, where that takes away more transposes than it adds.
std::optional<Value> transpose_into_attention(const Site& s) {
  AttentionAttrs a = s.attrs<AttentionAttrs>();
  if (a.layout == AttentionLayout::packed) return {};
  int gain = users_exchange_heads(s) ? 1 : -1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!exchanges_heads(s[i])) --gain;
    if (exchanges_heads(s[i]) && s.rules.only_user(s, i)) ++gain;
  }
  if (gain <= 0) return {};
  a.layout = a.layout == AttentionLayout::bhsd ? AttentionLayout::bshd : AttentionLayout::bhsd;
  Values in;
  for (std::size_t i = 0; i < 3; ++i) in.push_back(s.rules.make(transpose_op, {heads_and_positions}, {s[i]}));
  return transpose(attention_with(s, a, std::move(in)), heads_and_positions);
}

// [B,S,H,D] that was [B,S,H*D].
bool splits_last_axis(Value v) {
  if (!is(v, reshape_op) || v.rank() != 4) return false;
  const auto &to = v.type().dims, &from = operand(v).type().dims;
  return from.size() == 3 && from[0] == to[0] && from[1] == to[1] && from[2] == to[2] * to[3];
}

std::optional<Value> reshape_into_attention(const Site& s) {
  AttentionAttrs a = s.attrs<AttentionAttrs>();
  if (a.layout != AttentionLayout::bshd) return {};
  Values in;
  for (std::size_t i = 0; i < 3; ++i) {
    if (!splits_last_axis(s[i])) return {};
    in.push_back(operand(s[i]));
  }
  a.layout = AttentionLayout::packed;
  a.heads = s[0].dim(2).constant();
  return reshape(attention_with(s, a, std::move(in)), s.type().dims);
}

// --- rope ---

// Heads side by side in the last axis turn as they do one by one.
std::optional<Value> rope_before_heads(const Site& s) {
  RopeAttrs a = s.attrs<RopeAttrs>();
  if (!exchanges_heads(s[0]) || !s.rules.only_user(s, 0) || !splits_last_axis(operand(s[0]))) return {};
  const Dim& size = s.type().dims[3];
  if (!size.is_constant() || (a.head_size != 0 && a.head_size != size.constant())) return {};
  a.head_size = size.constant();
  const Value split = operand(s[0]), in[] = {operand(split), s[1], s[2]};
  if (!match::fits(s.builder(), rope_op, Attrs(a), in, operand(split).type())) return {};
  return transpose(reshape(s.rules.make(rope_op, a, {in[0], in[1], in[2]}), split.type().dims), heads_and_positions);
}

// --- elementwise ops ---

bool is_elementwise(const Site& s) {
  const Node& n = match::node(s.value);
  return (n.op->traits() & elementwise) != 0 && !n.operands.empty() && s.type().rank() > 0;
}

// An operand before the axes of the result were put in `order`; only where that moves no element.
std::optional<Value> before_order(Value v, const std::vector<Index>& order) {
  if (v.rank() == 0) return v;
  std::vector<Dim> dims(order.size(), Dim(1));
  const std::size_t missing = order.size() - v.type().dims.size();
  Index last = -1;
  for (std::size_t i = 0; i < v.type().dims.size(); ++i) {
    const Dim& d = v.type().dims[i];
    if (d == Dim(1)) continue;
    const Index axis = order[i + missing];
    if (axis < last) return {};
    last = axis;
    dims[static_cast<std::size_t>(axis)] = d;
  }
  while (dims.size() > 1 && dims.front() == Dim(1)) dims.erase(dims.begin());
  return reshape(v, std::move(dims));
}

std::optional<Value> transpose_behind_elementwise(const Site& s) {
  if (!is_elementwise(s)) return {};
  const auto rank = s.type().rank();
  std::vector<Index> order;
  for (std::size_t i = 0; i < s.operand_count() && order.empty(); ++i) {
    if (is(s[i], transpose_op) && s[i].rank() == rank && s.rules.only_user(s, i)) order = order_of(s[i]);
  }
  if (order.empty()) return {};
  Values in;
  for (std::size_t i = 0; i < s.operand_count(); ++i) {
    const bool moves = is(s[i], transpose_op) && s[i].rank() == rank && s.rules.only_user(s, i);
    const std::optional<Value> v = moves && order_of(s[i]) == order ? operand(s[i]) : before_order(s[i], order);
    if (!v) return {};
    in.push_back(*v);
  }
  TensorType type = s.type();
  for (std::size_t i = 0; i < order.size(); ++i) type.dims[static_cast<std::size_t>(order[i])] = s.type().dims[i];
  const OpDef& op = *match::node(s.value).op;
  const Attrs attrs = match::node(s.value).attrs;
  if (!match::fits(s.builder(), op, attrs, in, type)) return {};
  return transpose(s.rules.make(s.builder(), op, attrs, in), order);
}

// Both forms end with the same axis, along which `v` lies: it broadcasts alike.
bool lies_along_last(Value v, const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return v.rank() == 0 || (v.rank() == 1 && !a.empty() && !b.empty() && a.back() == b.back());
}

std::optional<Value> reshape_behind_elementwise(const Site& s) {
  if (!is_elementwise(s)) return {};
  std::optional<std::vector<Dim>> from;
  for (std::size_t i = 0; i < s.operand_count() && !from; ++i) {
    if (is(s[i], reshape_op) && s[i].type().dims == s.type().dims) from = operand(s[i]).type().dims;
  }
  if (!from) return {};
  Values in;
  for (std::size_t i = 0; i < s.operand_count(); ++i) {
    const bool same = is(s[i], reshape_op) && s[i].type().dims == s.type().dims && operand(s[i]).type().dims == *from;
    if (!same && !lies_along_last(s[i], *from, s.type().dims)) return {};
    in.push_back(same ? operand(s[i]) : s[i]);
  }
  if (equal(product(*from), s.type().count()) != Tri::yes) return {};
  const OpDef& op = *match::node(s.value).op;
  const Attrs attrs = match::node(s.value).attrs;
  if (!match::fits(s.builder(), op, attrs, in, {s.type().dtype, *from})) return {};
  return reshape(s.rules.make(s.builder(), op, attrs, in), s.type().dims);
}

}  // namespace

std::span<const LocalRule> layout_rules() {
  static const LocalRule rules[] = {
      {&matmul_op, "transposes taken into a matmul", transpose_into_matmul},
      {&matmul_op, "reshapes moved behind a matmul", reshape_behind_matmul},
      {&attention_op, "transposes taken into an attention", transpose_into_attention},
      {&attention_op, "reshapes taken into an attention", reshape_into_attention},
      {&rope_op, "ropes moved before the split into heads", rope_before_heads},
      {nullptr, "transposes moved behind an elementwise op", transpose_behind_elementwise},
      {nullptr, "reshapes moved behind an elementwise op", reshape_behind_elementwise},
  };
  return rules;
}

Graph absorb_layout(const Graph& g, PassContext& context) {
  return run_local_rules(g, context, {layout_rules(), movement_rules()});
}

}  // namespace rlx
