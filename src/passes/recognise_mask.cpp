// Masks of written attention: classification of what was added or filled in, and the operand made of it.
#include "passes/recognise_mask.h"

#include <algorithm>
#include <limits>

#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::pattern {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
// In f32 and f64 a number below it plus a score is the number itself, for scores of any size that occurs.
constexpr double swallows = -1e30;
constexpr double lowest_f16 = -65504;

// The value before it was stretched.
Operand unstretched(const Graph& g, Operand o) {
  while (g.nodes[o.node].op->name() == "broadcast") o = g.nodes[o.node].operands[0];
  return o;
}

// Sizes of a mask as [B,H,Sq,Sk], or nothing when it does not stretch to the scores.
std::optional<std::vector<Dim>> mask_dims(std::vector<Dim> dims, const ScoreSizes& s) {
  if (dims.size() > s.rank) return std::nullopt;
  dims.insert(dims.begin(), s.rank - dims.size(), Dim(1));
  if (s.rank == 3) dims.insert(dims.begin() + 1, Dim(1));
  if (s.rank == 2) dims.insert(dims.begin(), 2, Dim(1));
  const Dim full[] = {s.batch, s.heads, s.queries, s.keys};
  for (std::size_t i = 0; i < 4; ++i) {
    if (dims[i] != Dim(1) && dims[i] != full[i]) return std::nullopt;
  }
  return dims;
}

struct Choice {
  Condition shown;
  double fill = 0;
};

// A bias that is a choice between 0 and a number, perhaps under other sizes of the same count, is a condition.
std::optional<Choice> as_choice(const Graph& g, Operand bias) {
  bias = unstretched(g, bias);
  const Operand choice = g.nodes[bias.node].op->name() == "reshape" ? g.nodes[bias.node].operands[0] : bias;
  const Node& n = g.nodes[choice.node];
  if (n.op->name() != "select") return std::nullopt;
  const std::optional<double> yes = scalar_number(g, n.operands[1]), no = scalar_number(g, n.operands[2]);
  if (!yes || !no || (*yes != 0 && *no != 0)) return std::nullopt;
  const TensorType& t = g.type(n.operands[0]);
  if (choice != bias && t.dims != g.type(choice).dims) return std::nullopt;
  return Choice{{n.operands[0], *yes == 0, choice == bias ? t.dims : g.type(bias).dims}, *yes == 0 ? *no : *yes};
}

// Conditions that must hold together to show a key.
void split(const Graph& g, Condition c, std::vector<Condition>& out) {
  const bool own_sizes = c.dims == g.type(c.at).dims;
  if (own_sizes) c.at = unstretched(g, c.at);
  if (own_sizes) c.dims = g.type(c.at).dims;
  const Node& n = g.nodes[c.at.node];
  const std::string_view name = n.op->name();
  if (name == "bitwise_not") return split(g, {n.operands[0], !c.shows_when, c.dims}, out);
  const bool joins = name == (c.shows_when ? "bitwise_and" : "bitwise_or");
  const auto divisible = [&](Operand o) { return own_sizes || g.type(o).dims == g.type(c.at).dims; };
  if (!joins || !std::ranges::all_of(n.operands, divisible)) {
    if (!always_shows(g, c)) out.push_back(c);
    return;
  }
  for (const Operand o : n.operands) split(g, {o, c.shows_when, own_sizes ? g.type(o).dims : c.dims}, out);
}

class Planner {
 public:
  Planner(const Graph& g, const ScoreSizes& sizes, DType dtype) : g_(g), s_(sizes), dtype_(dtype) {}

  std::optional<MaskPlan> plan(const std::vector<MaskTerm>& terms);

 private:
  std::optional<std::vector<Condition>> parts_of(const Condition& whole) const;
  bool hide(const Condition& whole);
  bool choose(const Condition& whole, double fill);
  bool add(const MaskTerm& term);
  bool fill(const MaskTerm& term, bool innermost, bool alone);
  bool shows_own_position(const Condition& c) const;
  void place_positions();

  const Graph& g_;
  const ScoreSizes& s_;
  DType dtype_;
  MaskPlan plan_;
};

// The parts of a condition; nothing when one does not stretch to the scores.
std::optional<std::vector<Condition>> Planner::parts_of(const Condition& whole) const {
  std::vector<Condition> parts;
  split(g_, whole, parts);
  for (const Condition& c : parts) {
    if (!mask_dims(c.dims, s_)) return std::nullopt;
  }
  return parts;
}

bool Planner::hide(const Condition& whole) {
  const std::optional<std::vector<Condition>> parts = parts_of(whole);
  if (parts) plan_.conditions.insert(plan_.conditions.end(), parts->begin(), parts->end());
  return parts.has_value();
}

bool Planner::choose(const Condition& whole, double fill) {
  std::optional<std::vector<Condition>> parts = parts_of(whole);
  if (!parts) return false;
  if (!parts->empty()) plan_.fills.emplace_back(std::move(*parts), fill);
  return true;
}

bool Planner::add(const MaskTerm& term) {
  if (!mask_dims(g_.type(term.at).dims, s_)) return false;
  if (term.kind == MaskTerm::Kind::bias) {
    const std::optional<Choice> c = as_choice(g_, term.at);
    if (c) return c->fill == -inf ? hide(c->shown) : choose(c->shown, c->fill);
  }
  Operand at = unstretched(g_, term.at);
  if (g_.type(at).dtype != dtype_ && g_.nodes[at.node].op->name() == "cast") at = g_.nodes[at.node].operands[0];
  if (g_.type(at).dtype != dtype_) return false;
  plan_.biases.emplace_back(at, term.kind == MaskTerm::Kind::less);
  return true;
}

// Whether the condition is the causal one with query 0 at some key: no row is hidden then.
bool Planner::shows_own_position(const Condition& c) const {
  std::vector<Condition> parts;
  split(g_, c, parts);
  if (parts.size() != 1 || parts[0].dims.size() < 2 || parts[0].dims.back() != s_.keys) return false;
  const std::optional<Positions> p = positions_of(g_, parts[0]);
  return p && p->upper && p->upper->bounds().lo >= 0;
}

bool Planner::fill(const MaskTerm& term, bool innermost, bool alone) {
  const Condition shown{term.at, !term.fills_when, g_.type(term.at).dims};
  if (!mask_dims(shown.dims, s_)) return false;
  if (term.fill == -inf) return hide(shown);
  const bool swallowing = term.fill <= swallows && dtype_ != DType::f16;
  if ((swallowing || term.fill <= lowest_f16) && alone && shows_own_position(shown)) {
    return (swallowing || dtype_ == DType::f16) && hide(shown);
  }
  if (!swallowing || !innermost) return false;
  return choose(shown, term.fill);
}

// Takes a causal condition and a lower bound beside it out of the conditions.
void Planner::place_positions() {
  std::vector<Condition>& all = plan_.conditions;
  const auto take = [&](auto wanted) -> std::optional<Positions> {
    for (auto c = all.begin(); c != all.end(); ++c) {
      if (c->dims.size() < 2 || c->dims.back() != s_.keys || c->dims[c->dims.size() - 2] != s_.queries) continue;
      const std::optional<Positions> p = positions_of(g_, *c);
      if (!p || !wanted(*p)) continue;
      all.erase(c);
      return p;
    }
    return std::nullopt;
  };
  const std::optional<Positions> upper = take([](const Positions& p) { return p.upper.has_value(); });
  if (!upper) return;
  const Dim offset = *upper->upper;
  const std::optional<Positions> lower = take([&](const Positions& p) {
    if (!p.lower) return false;
    const Dim width = offset - *p.lower + 1;
    return width.is_constant() && width.constant() >= 1;
  });
  plan_.mask = lower ? AttentionMask::window : AttentionMask::causal;
  if (lower) plan_.window = (offset - *lower->lower + 1).constant();
  if (offset != max(Dim(0), s_.keys - s_.queries)) plan_.offset = offset;
}

std::optional<MaskPlan> Planner::plan(const std::vector<MaskTerm>& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const bool ok = terms[i].kind == MaskTerm::Kind::fill ? fill(terms[i], i + 1 == terms.size(), terms.size() == 1)
                                                          : add(terms[i]);
    if (!ok) return std::nullopt;
  }
  place_positions();
  return plan_;
}

Value shown(Rewriter& r, const Condition& c, const ScoreSizes& sizes) {
  const Value v = reshape(r.value(c.at), *mask_dims(c.dims, sizes));
  return c.shows_when ? v : bitwise_not(v);
}

Value joined(Rewriter& r, std::span<const Condition> conditions, const ScoreSizes& sizes) {
  Value all = shown(r, conditions[0], sizes);
  for (const Condition& c : conditions.subspan(1)) all = bitwise_and(all, shown(r, c, sizes));
  return all;
}

// A bias computed before it is stretched: elementwise ops of stretched operands are stretched elementwise ops.
Value narrowed(Rewriter& r, Operand o, int depth = 0) {
  constexpr int deepest = 8;
  const Graph& g = r.from();
  const Node& n = g.nodes[o.node];
  if (n.op->name() == "broadcast") return narrowed(r, n.operands[0], depth + 1);
  if (!(n.op->traits() & elementwise) || depth > deepest) return r.value(o);
  Values operands;
  bool changed = false;
  for (const Operand in : n.operands) {
    operands.push_back(narrowed(r, in, depth + 1));
    changed = changed || operands.back().type() != g.type(in);
  }
  return changed ? r.builder().emit(*n.op, n.attrs, operands)[0] : r.value(o);
}

}  // namespace

std::optional<MaskPlan> plan_mask(const Graph& g, const std::vector<MaskTerm>& terms, const ScoreSizes& sizes,
                                  DType dtype) {
  return Planner(g, sizes, dtype).plan(terms);
}

std::optional<Value> mask_operand(Rewriter& r, const MaskPlan& plan, const ScoreSizes& sizes, DType dtype,
                                  AttentionAttrs& attrs) {
  if (!plan.extra()) return std::nullopt;
  if (plan.biases.empty() && plan.fills.empty()) {
    const Value all = joined(r, plan.conditions, sizes);
    const std::vector<Dim> dims = all.type().dims;
    const bool keys = dims[1] == Dim(1) && dims[2] == Dim(1) && dims[3] == sizes.keys;
    attrs.extra = keys ? AttentionExtra::keys : AttentionExtra::pairs;
    return keys ? reshape(all, {dims[0], dims[3]}) : all;
  }
  attrs.extra = AttentionExtra::bias;
  std::optional<Value> sum;
  const auto add = [&](Value v) { sum = sum ? *sum + v : v; };
  for (const auto& [at, subtracted] : plan.biases) {
    const Value v = narrowed(r, at), full = reshape(v, *mask_dims(v.type().dims, sizes));
    add(subtracted ? -full : full);
  }
  const auto choose = [&](std::span<const Condition> shown_by, double number) {
    const Value all = joined(r, shown_by, sizes);
    const Value zero = constant(r.builder(), dtype, 0), hidden = constant(r.builder(), dtype, number);
    add(select(all, zero, hidden));
  };
  for (const auto& [conditions, number] : plan.fills) choose(conditions, number);
  if (!plan.conditions.empty()) choose(plan.conditions, -inf);
  return sum;
}

}  // namespace rlx::pattern
