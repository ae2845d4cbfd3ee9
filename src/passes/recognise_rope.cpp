// Recognises rope: a value times cosines plus its turned pairs times sines, where both halves (or neighbours) of a
// table row are the same.
#include <fmt/format.h>

#include <unordered_map>

#include "ir/rewrite.h"
#include "ops/broadcast/broadcast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"
#include "ops/slice/slice.h"
#include "passes/pattern.h"
#include "passes/recognise.h"

namespace rlx {

namespace {

using namespace pattern;

constexpr Var x{0}, cosine{1}, sine{2}, turned{3};

// Slices of the last axis: everything else whole.
struct Cut {
  Operand of;
  Index start = 0, size = 0, step = 1;
};

std::optional<Cut> cut_of(const Graph& g, Operand o) {
  const Node& n = g.nodes[o.node];
  if (n.op != &slice_op) return std::nullopt;
  const auto& a = n.attrs.as<SliceAttrs>();
  const TensorType &to = g.type(o), &from = g.type(n.operands[0]);
  for (std::size_t i = 0; i + 1 < to.dims.size(); ++i) {
    if (to.dims[i] != from.dims[i] || a.starts[i] != Dim(0) || step_along(a.steps, i) != 1) return std::nullopt;
  }
  if (to.dims.empty() || !a.starts.back().is_constant() || !to.dims.back().is_constant()) return std::nullopt;
  return Cut{n.operands[0], a.starts.back().constant(), to.dims.back().constant(),
             step_along(a.steps, to.dims.size() - 1)};
}

bool joins_last_axis(const Graph& g, Operand o) {
  const Node& n = g.nodes[o.node];
  return n.op == &concat_op && n.operands.size() == 2 &&
         g.type(o).axis(n.attrs.as<ConcatAttrs>().axis) == g.type(o).rank() - 1;
}

// The operand of neg, or of a product with -1.
std::optional<Operand> negated(const Matcher& m, Operand o) {
  const Node& n = m.node(o);
  if (m.is(o, "neg")) return n.operands[0];
  if (!m.is(o, "mul")) return std::nullopt;
  for (const std::size_t i : {0U, 1U}) {
    if (scalar_number(m.graph(), n.operands[i]) == -1.0) return n.operands[1 - i];
  }
  return std::nullopt;
}

// What was turned: concat(-second half, first half), or pairs (-odd, even) side by side.
struct Turn {
  Operand of;
  RopePairing pairing = RopePairing::neox;
  std::vector<Id> inner;  // nodes that nothing else may read
};

std::optional<Turn> turn_of(const Matcher& m, Operand o) {
  const Graph& g = m.graph();
  Turn t{o};
  const Dim& last = g.type(o).dims.empty() ? Dim(0) : g.type(o).dims.back();
  if (!last.is_constant() || last.constant() % 2 != 0 || last.constant() == 0) return std::nullopt;
  const Index half = last.constant() / 2;
  const bool pairs = m.is(o, "reshape");
  const Operand joint = pairs ? m.node(o).operands[0] : o;
  t.inner = {o.node, joint.node};
  if (!joins_last_axis(g, joint) || g.type(joint).dims.back() != (pairs ? Dim(2) : last)) return std::nullopt;
  Operand first = m.node(joint).operands[0], second = m.node(joint).operands[1];
  if (pairs) {  // [..., D/2, 1] beside [..., D/2, 1]
    for (Operand* part : {&first, &second}) {
      const TensorType& type = g.type(*part);
      if (!m.is(*part, "reshape") || type.rank() < 2 || type.dim(-2) != Dim(half)) return std::nullopt;
      t.inner.push_back(part->node);
      *part = m.node(*part).operands[0];
      if (g.type(*part).dims.back() != Dim(half) || g.type(*part).rank() != g.type(o).rank()) return std::nullopt;
    }
    t.pairing = RopePairing::gptj;
  }
  const std::optional<Operand> upper = negated(m, first);
  if (!upper) return std::nullopt;
  t.inner.push_back(first.node);
  const std::optional<Cut> a = cut_of(g, *upper), b = cut_of(g, second);
  if (!a || !b || a->of != b->of || a->size != half || b->size != half || b->start != 0) return std::nullopt;
  if (a->start != (pairs ? 1 : half) || a->step != (pairs ? 2 : 1) || b->step != a->step) return std::nullopt;
  if (g.type(a->of) != g.type(o)) return std::nullopt;
  t.of = a->of;
  return t;
}

// --- tables ---

// The first half (or every second element) of the last axis of a table whose row holds everything twice.
class HalfTable {
 public:
  HalfTable(Rewriter& r, RopePairing pairing) : r_(r), g_(r.from()), pairing_(pairing) {}

  std::optional<Value> of(Operand o, int depth = 0);

 private:
  std::optional<Value> of_constant(const Tensor& t);
  std::optional<Value> of_elementwise(Operand o, int depth);
  std::optional<Value> of_pairs(Operand o);

  Rewriter& r_;
  const Graph& g_;
  RopePairing pairing_;
};

std::optional<Value> HalfTable::of_constant(const Tensor& t) {
  constexpr Index most_elements = Index{1} << 24;
  if (t.rank() == 0 || t.type().encoding || t.count() > most_elements || t.shape().back() % 2 != 0) return std::nullopt;
  const Index width = t.shape().back(), half = width / 2;
  std::vector<Index> shape = t.shape();
  shape.back() = half;
  Tensor result(t.dtype(), std::move(shape));
  for (Index row = 0; row * width < t.count(); ++row) {
    for (Index i = 0; i < half; ++i) {
      const Index first = row * width + (pairing_ == RopePairing::neox ? i : 2 * i);
      const std::uint64_t code = t.code(first);
      if (code != t.code(first + (pairing_ == RopePairing::neox ? half : 1))) return std::nullopt;
      result.set_code(row * half + i, code);
    }
  }
  return constant(r_.builder(), std::move(result));
}

std::optional<Value> HalfTable::of_elementwise(Operand o, int depth) {
  const Node& n = g_.nodes[o.node];
  Values operands;
  for (const Operand in : n.operands) {
    if (scalar_number(g_, in) && g_.type(in).count() == Dim(1)) {
      operands.push_back(r_.value(in));
      continue;
    }
    if (g_.type(in).dims.empty() || g_.type(in).dims.back() != g_.type(o).dims.back()) return std::nullopt;
    const std::optional<Value> half = of(in, depth + 1);
    if (!half) return std::nullopt;
    operands.push_back(*half);
  }
  return r_.builder().emit(*n.op, n.attrs, operands)[0];
}

// [..., D/2, 1] stretched or joined to [..., D/2, 2], as [..., D].
std::optional<Value> HalfTable::of_pairs(Operand o) {
  const Node& n = g_.nodes[o.node];
  const Node& joint = g_.nodes[n.operands[0].node];
  const TensorType& type = g_.type(n.operands[0]);
  const bool stretched = joint.op == &broadcast_op;
  const bool twice = joins_last_axis(g_, n.operands[0]) && joint.operands[0] == joint.operands[1];
  if (type.rank() < 2 || type.dims.back() != Dim(2) || !(stretched || twice)) return std::nullopt;
  const TensorType& single = g_.type(joint.operands[0]);
  if (single.rank() != type.rank() || single.dims.back() != Dim(1)) return std::nullopt;
  std::vector<Dim> dims = g_.type(o).dims;
  dims.back() = floordiv(dims.back(), 2);
  if (single.count() != product(dims) || type.dim(-2) != dims.back()) return std::nullopt;
  return reshape(r_.value(joint.operands[0]), dims);
}

std::optional<Value> HalfTable::of(Operand o, int depth) {
  constexpr int deepest = 12;
  const Node& n = g_.nodes[o.node];
  const TensorType& type = g_.type(o);
  if (depth > deepest || type.dims.empty() || !type.dims.back().is_constant()) return std::nullopt;
  if (n.op == &constant_op) return of_constant(n.attrs.as<ConstantAttrs>().data);
  if (pairing_ == RopePairing::neox && joins_last_axis(g_, o)) {
    return n.operands[0] == n.operands[1] ? std::optional(r_.value(n.operands[0])) : std::nullopt;
  }
  if (n.op->traits() & elementwise) return of_elementwise(o, depth);
  if (pairing_ == RopePairing::gptj && n.op == &reshape_op) {
    if (const std::optional<Value> pairs = of_pairs(o)) return pairs;
  }
  std::vector<Dim> dims = type.dims;
  dims.back() = floordiv(dims.back(), 2);
  const bool moves = n.op == &reshape_op || n.op == &broadcast_op || n.op == &gather_op;
  if (!moves || g_.type(n.operands[0]).dims.empty()) return std::nullopt;
  const Dim& last = g_.type(n.operands[0]).dims.back();
  const bool rows = n.op != &gather_op ||
                    g_.type(n.operands[0]).axis(n.attrs.as<GatherAttrs>().axis) < g_.type(n.operands[0]).rank() - 1;
  if (last != type.dims.back() || !rows) return std::nullopt;
  const std::optional<Value> half = of(n.operands[0], depth + 1);
  if (!half) return std::nullopt;
  if (n.op == &gather_op) return gather(*half, r_.value(n.operands[1]), n.attrs.as<GatherAttrs>().axis);
  return n.op == &reshape_op ? reshape(*half, dims) : broadcast(*half, dims);
}

// --- the whole ---

// Where the positions are: [B,H,S,D], or [B,S,H,D] as heads side by side.
std::optional<Value> rotated(Rewriter& r, Operand of, Value c, Value s, RopePairing pairing) {
  const Value v = r.value(of);
  const std::vector<Dim>& dims = v.type().dims;
  if (dims.size() < 3 || dims.size() > 4 || c.type() != s.type()) return std::nullopt;
  std::vector<Dim> table = c.type().dims;
  table.insert(table.begin(), dims.size() - table.size(), Dim(1));
  const Dim half = table.back();
  const bool heads_first = table[table.size() - 2] == dims[dims.size() - 2] && (dims.size() == 3 || table[1] == Dim(1));
  const bool heads_last = dims.size() == 4 && table[2] == Dim(1) && table[1] == dims[1] && dims[2].is_constant();
  if (!heads_first && !heads_last) return std::nullopt;
  const Dim positions = heads_first ? dims[dims.size() - 2] : dims[1];
  std::vector<Dim> rows{positions, half};
  if (table[0] != Dim(1)) rows.insert(rows.begin(), table[0]);
  if (table[0] != Dim(1) && table[0] != dims[0]) return std::nullopt;
  const RopeAttrs attrs{pairing, heads_first ? 0 : dims[3].constant(), 0};
  const Value x4 = heads_first ? v : reshape(v, {dims[0], dims[1], dims[2] * dims[3]});
  const Value cosines = reshape(c, rows), sines = reshape(s, rows);
  return reshape(rope(x4, cosines, sines, attrs), dims);
}

}  // namespace

Graph recognise_rope(const Graph& g, PassContext& context) {
  if (!holds(g, {"concat", "slice"})) return g;
  static const Pattern form = op("add", {op("mul", {x, cosine}), op("mul", {turned, sine})});
  Matcher m(g);
  std::size_t found = 0;
  Graph result = rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    if (g.nodes[id].op->name() != "add" || !is_arithmetic_float(g.nodes[id].results[0].dtype)) return std::nullopt;
    std::optional<Turn> turn;
    const Pattern whole = where_all(form, [&](const Matcher& at) {
      turn = turn_of(at, at[turned]);
      return turn && turn->of == at[x];
    });
    if (!m.match(whole, {id, 0}) || !m.same_type(x, {id, 0})) return std::nullopt;
    std::vector<Id> inside = m.inner();
    inside.insert(inside.end(), turn->inner.begin(), turn->inner.end());
    for (const Id inner : turn->inner) {
      if (m.read_outside(inner, inside)) return std::nullopt;
    }
    HalfTable half(r, turn->pairing);
    const std::optional<Value> c = half.of(m[cosine]), s = half.of(m[sine]);
    if (!c || !s) return std::nullopt;
    const std::optional<Value> y = rotated(r, m[x], *c, *s, turn->pairing);
    if (!y) return std::nullopt;
    ++found;
    return Values{*y};
  });
  if (found == 0) return g;
  context.remark(fmt::format("{} ropes", found));
  return drop_dead(result);
}

}  // namespace rlx
