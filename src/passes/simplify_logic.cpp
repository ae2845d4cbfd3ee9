// Identities of bools, bits, comparisons, selection and casts that hold for all inputs.
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "passes/local_rules.h"
#include "passes/match.h"

namespace rlx {

namespace {

using match::is, match::is_all, match::operand;

bool whole(Value v) { return is_integer(v.dtype()) || v.dtype() == DType::boolean; }

std::optional<Value> at_size(const Site& s, Value v) {
  if (v.type() == s.type()) return v;
  if (!match::stretches_to(v.type().dims, s.type().dims)) return {};
  return broadcast(v, s.type().dims);
}

const OpDef& not_op() {
  static const OpDef& op = match::op("bitwise_not");
  return op;
}

// --- bits ---

std::optional<Value> not_twice(const Site& s) {
  return is(s[0], not_op()) ? std::optional(operand(s[0])) : std::nullopt;
}

// The comparison that holds exactly where another does not: only = and != are each other's, where NaN is possible.
std::optional<Value> not_comparison(const Site& s) {
  struct Pair {
    const OpDef *a, *b;
    bool all_types;
  };
  static const Pair pairs[] = {{&match::op("equal"), &match::op("not_equal"), true},
                               {&match::op("less"), &match::op("greater_equal"), false},
                               {&match::op("less_equal"), &match::op("greater"), false}};
  for (const Pair& p : pairs) {
    if (!is(s[0], *p.a) && !is(s[0], *p.b)) continue;
    const Value x = operand(s[0], 0), y = operand(s[0], 1);
    if (p.all_types || whole(x)) return s.rules.make(is(s[0], *p.a) ? *p.b : *p.a, {x, y});
  }
  return {};
}

std::optional<Value> and_constant(const Site& s) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (match::is_all_ones(s[i])) return at_size(s, s[1 - i]);
    if (is_all(s[i], 0)) return match::filled(s.builder(), s.type(), 0);
  }
  return {};
}

std::optional<Value> or_constant(const Site& s) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (is_all(s[i], 0)) return at_size(s, s[1 - i]);
    if (!match::is_all_ones(s[i])) continue;
    return s.type().dtype == DType::boolean ? match::filled(s.builder(), s.type(), 1) : at_size(s, s[i]);
  }
  return {};
}

std::optional<Value> xor_constant(const Site& s) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (is_all(s[i], 0)) return at_size(s, s[1 - i]);
    if (match::is_all_ones(s[i])) return at_size(s, s.rules.make(not_op(), {s[1 - i]}));
  }
  return s[0].at == s[1].at ? std::optional(match::filled(s.builder(), s.type(), 0)) : std::nullopt;
}

std::optional<Value> shift_by_nothing(const Site& s) { return is_all(s[1], 0) ? at_size(s, s[0]) : std::nullopt; }

// --- comparisons ---

template <bool holds>
std::optional<Value> compare_itself(const Site& s) {
  // With a NaN every comparison but != fails; = and != of floats ask for NaN and stay.
  static const OpDef &less = match::op("less"), &greater = match::op("greater");
  const bool strict = is(s.value, less) || is(s.value, greater);
  if (s[0].at != s[1].at || (!whole(s[0]) && !strict)) return {};
  return match::filled(s.builder(), s.type(), holds);
}

// b = true, b = false, and the same of a bool that was cast to a number.
template <bool equal>
std::optional<Value> compare_bool(const Site& s) {
  for (std::size_t i = 0; i < 2; ++i) {
    Value x = s[i];
    const Value c = s[1 - i];
    const bool zero = is_all(c, 0) || (is_arithmetic_float(c.dtype()) && is_all(c, -0.0)), one = is_all(c, 1);
    if (!zero && !one) continue;
    if (x.dtype() != DType::boolean) {
      if (!is(x, cast_op) || operand(x).dtype() != DType::boolean) continue;
      x = operand(x);
    }
    return at_size(s, equal == one ? x : s.rules.make(not_op(), {x}));
  }
  return {};
}

// --- select ---

std::optional<Value> select_known(const Site& s) {
  if (match::is_all_ones(s[0])) return at_size(s, s[1]);
  if (is_all(s[0], 0)) return at_size(s, s[2]);
  return s[1].at == s[2].at ? at_size(s, s[1]) : std::nullopt;
}

std::optional<Value> select_by_negation(const Site& s) {
  static const OpDef& select_op = match::op("select");
  if (!is(s[0], not_op())) return {};
  return s.rules.make(select_op, {operand(s[0]), s[2], s[1]});
}

std::optional<Value> select_bool(const Site& s) {
  if (s.type().dtype != DType::boolean) return {};
  if (match::is_all_ones(s[1]) && is_all(s[2], 0)) return at_size(s, s[0]);
  if (is_all(s[1], 0) && match::is_all_ones(s[2])) return at_size(s, s.rules.make(not_op(), {s[0]}));
  return {};
}

// --- cast ---

std::optional<Value> cast_to_itself(const Site& s) {
  return s[0].dtype() == s.type().dtype ? std::optional(s[0]) : std::nullopt;
}

// cast(cast(x)) as one cast, where the first loses nothing. A float that came from an integer saturates as another
// integer, the integer itself wraps: these agree only where the last type holds all values of the first.
std::optional<Value> cast_twice(const Site& s) {
  if (!is(s[0], cast_op)) return {};
  const Value x = operand(s[0]);
  const DType from = x.dtype(), between = s[0].dtype(), to = s.type().dtype;
  const auto plain = [](DType d) { return match::holds_all(d, d); };
  if (!plain(to) || !match::holds_all(between, from)) return {};
  const bool saturates = is_float(between) && !is_float(from) && is_integer(to);
  if (saturates && !match::holds_all(to, from)) return {};
  return cast(x, to);
}

// --- any elementwise op ---

// Constants of equal elements become numbers of rank 0, and broadcasts go away, where the other operands give the size.
std::optional<Value> smaller_operands(const Site& s) {
  const Node& n = match::node(s.value);
  if ((n.op->traits() & elementwise) == 0 || n.operands.size() < 2) return {};
  const OpDef& op = *n.op;
  const Attrs attrs = n.attrs;
  Values in;
  for (std::size_t i = 0; i < n.operands.size(); ++i) in.push_back(s[i]);
  bool changed = false;
  for (Value& v : in) {
    Value smaller = v;
    while (is(smaller, broadcast_op)) smaller = operand(smaller);
    if (const auto code = match::splat(smaller); code && smaller.rank() > 0) {
      Tensor t(smaller.dtype(), {});
      t.set_code(0, *code);
      smaller = constant(s.builder(), std::move(t));
    }
    if (smaller.at == v.at) continue;
    Value kept = v;
    v = smaller;
    if (match::fits(s.builder(), op, attrs, in, s.type())) {
      changed = true;
    } else {
      v = kept;
    }
  }
  if (!changed) return {};
  return s.rules.make(s.builder(), op, attrs, in);
}

// Which of two equal operands an extreme gives shows only in the sign of a zero.
bool commutes(const Site& s) {
  static const OpDef &maximum = match::op("maximum"), &minimum = match::op("minimum");
  const bool extreme = is(s.value, maximum) || is(s.value, minimum);
  return (match::node(s.value).op->traits() & commutative) != 0 && (!extreme || is_integer(s.type().dtype));
}

std::optional<Value> constant_behind(const Site& s) {
  if (!commutes(s) || !match::constant_of(s[0]) || match::constant_of(s[1])) return {};
  const OpDef& op = *match::node(s.value).op;
  const Value in[] = {s[1], s[0]};
  if (!match::fits(s.builder(), op, Attrs(), in, s.type())) return {};
  return s.rules.make(op, {in[0], in[1]});
}

std::optional<Value> same_in_the_other_order(const Site& s) {
  if (!commutes(s)) return {};
  const Value first = s.rules.first_of_either_order(s);
  return first.type() == s.type() ? std::optional(first) : std::nullopt;
}

}  // namespace

std::span<const LocalRule> logic_rules() {
  static const std::vector<LocalRule> rules = [] {
    std::vector<LocalRule> r;
    const auto add = [&](std::string_view op, std::string_view what, std::optional<Value> (*f)(const Site&)) {
      r.push_back({&match::op(op), what, f});
    };
    add("bitwise_not", "double negations", not_twice);
    add("bitwise_not", "negated comparisons", not_comparison);
    add("bitwise_and", "bits with a constant", and_constant);
    add("bitwise_or", "bits with a constant", or_constant);
    add("bitwise_xor", "bits with a constant", xor_constant);
    add("shift_left", "shifts by 0", shift_by_nothing);
    add("shift_right", "shifts by 0", shift_by_nothing);
    for (const char* op : {"equal", "less_equal", "greater_equal"})
      add(op, "comparisons with itself", compare_itself<true>);
    for (const char* op : {"not_equal", "less", "greater"}) add(op, "comparisons with itself", compare_itself<false>);
    add("equal", "comparisons of bools", compare_bool<true>);
    add("not_equal", "comparisons of bools", compare_bool<false>);
    add("select", "selections that are known", select_known);
    add("select", "selections by a negation", select_by_negation);
    add("select", "selections of bools", select_bool);
    add("cast", "casts to the same type", cast_to_itself);
    add("cast", "chains of casts", cast_twice);
    r.push_back({nullptr, "operands made smaller", smaller_operands});
    r.push_back({nullptr, "constants put behind", constant_behind});
    r.push_back({nullptr, "equal nodes with operands exchanged", same_in_the_other_order});
    return r;
  }();
  return rules;
}

}  // namespace rlx
