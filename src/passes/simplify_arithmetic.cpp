// Identities of arithmetic that hold bit by bit for all inputs: signed zeros, infinities and wrapping integers included
// (a NaN stays a NaN; which one is not kept).
#include <cmath>
#include <limits>

#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"
#include "passes/local_rules.h"
#include "passes/match.h"

namespace rlx {

namespace {

using match::is, match::is_all, match::operand;

bool real(Value v) { return is_arithmetic_float(v.dtype()); }

// `v` at the size of the site: itself, or stretched.
std::optional<Value> at_size(const Site& s, Value v) {
  if (v.type() == s.type()) return v;
  if (!match::stretches_to(v.type().dims, s.type().dims)) return {};
  return broadcast(v, s.type().dims);
}

// --- add, sub ---

// x + -0.0; x + 0.0 turns -0 into 0 and is kept, unless x is never -0. Integers have one zero.
bool adds_nothing(Value x, Value zero) {
  if (is_integer(x.dtype())) return is_all(zero, 0);
  return real(x) && (is_all(zero, -0.0) || (is_all(zero, 0.0) && match::non_negative(x)));
}

std::optional<Value> add_nothing(const Site& s) {
  if (adds_nothing(s[0], s[1])) return at_size(s, s[0]);
  if (adds_nothing(s[1], s[0])) return at_size(s, s[1]);
  return {};
}

std::optional<Value> add_negative(const Site& s) {
  static const OpDef &neg_op = match::op("neg"), &sub_op = match::op("sub");
  if (is(s[1], neg_op)) return s.rules.make(sub_op, {s[0], operand(s[1])});
  if (is(s[0], neg_op)) return s.rules.make(sub_op, {s[1], operand(s[0])});
  return {};
}

std::optional<Value> subtract_nothing(const Site& s) {
  const bool nothing = is_all(s[1], 0.0) && (is_integer(s[0].dtype()) || real(s[0]));
  return nothing ? at_size(s, s[0]) : std::nullopt;
}

std::optional<Value> subtract_from_nothing(const Site& s) {
  static const OpDef& neg_op = match::op("neg");
  const bool nothing = is_integer(s[0].dtype()) ? is_all(s[0], 0) : real(s[0]) && is_all(s[0], -0.0);
  return nothing ? at_size(s, s.rules.make(neg_op, {s[1]})) : std::nullopt;
}

std::optional<Value> subtract_itself(const Site& s) {
  if (s[0].at != s[1].at || !is_integer(s[0].dtype())) return {};
  return match::filled(s.builder(), s.type(), 0);
}

std::optional<Value> subtract_negative(const Site& s) {
  static const OpDef &neg_op = match::op("neg"), &add_op = match::op("add");
  if (!is(s[1], neg_op)) return {};
  return s.rules.make(add_op, {s[0], operand(s[1])});
}

// --- mul, div, pow ---

std::optional<Value> multiply_by_unit(const Site& s) {
  static const OpDef& neg_op = match::op("neg");
  if (is_complex(s[0].dtype())) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    if (is_all(s[1 - i], 1)) return at_size(s, s[i]);
    if (is_all(s[1 - i], -1) && !is_unsigned_integer(s[0].dtype())) return at_size(s, s.rules.make(neg_op, {s[i]}));
  }
  return {};
}

std::optional<Value> multiply_by_zero(const Site& s) {
  if (!is_integer(s[0].dtype()) || (!is_all(s[0], 0) && !is_all(s[1], 0))) return {};
  return match::filled(s.builder(), s.type(), 0);
}

std::optional<Value> multiply_negatives(const Site& s) {
  static const OpDef &neg_op = match::op("neg"), &mul_op = match::op("mul");
  if (!is(s[0], neg_op) || !is(s[1], neg_op) || is_complex(s[0].dtype())) return {};
  return s.rules.make(mul_op, {operand(s[0]), operand(s[1])});
}

std::optional<Value> divide_by_unit(const Site& s) {
  static const OpDef& neg_op = match::op("neg");
  if (is_complex(s[0].dtype())) return {};
  if (is_all(s[1], 1)) return at_size(s, s[0]);
  if (is_all(s[1], -1) && !is_unsigned_integer(s[0].dtype())) return at_size(s, s.rules.make(neg_op, {s[0]}));
  return {};
}

// The quotient by a power of two is the product with its reciprocal where that is a normal number.
std::optional<Value> divide_by_power_of_two(const Site& s) {
  static const OpDef& mul_op = match::op("mul");
  const std::optional<std::uint64_t> code = real(s[0]) ? match::splat(s[1]) : std::nullopt;
  if (!code) return {};
  const double divisor = decode_float(s[1].dtype(), *code);
  int exponent = 0;
  if (!std::isfinite(divisor) || std::fabs(std::frexp(divisor, &exponent)) != 0.5) return {};
  const int least = s[0].dtype() == DType::f64 ? -1022 : s[0].dtype() == DType::f16 ? -14 : -126;
  if (1 - exponent < least || 1 - exponent > -least) return {};
  const Value factor = constant(s.builder(), s[1].dtype(), 1 / divisor);
  return at_size(s, s.rules.make(mul_op, {s[0], factor}));
}

std::optional<Value> power(const Site& s) {
  static const OpDef &mul_op = match::op("mul"), &sqrt_op = match::op("sqrt"), &rsqrt_op = match::op("rsqrt");
  const Value x = s[0], exponent = s[1];
  if (is_all(exponent, 0) || is_all(exponent, -0.0)) return match::filled(s.builder(), s.type(), 1);
  if (is_all(exponent, 1)) return at_size(s, x);
  if (is_all(exponent, 2)) return at_size(s, s.rules.make(mul_op, {x, x}));
  // The roots differ from pow at -0 and -inf.
  if (!real(x) || !match::non_negative(x)) return {};
  if (is_all(exponent, 0.5)) return at_size(s, s.rules.make(sqrt_op, {x}));
  if (is_all(exponent, -0.5)) return at_size(s, s.rules.make(rsqrt_op, {x}));
  return {};
}

// --- constants of integer chains: (x + 2) + 3, which wrap alike ---

std::optional<Value> join_constants(const Site& s) {
  const Node& n = match::node(s.value);
  const OpDef& op = *n.op;
  if (!is_integer(s.type().dtype) && s.type().dtype != DType::boolean) return {};
  for (std::size_t i = 0; i < 2; ++i) {
    const Value inner = s[i], c = s[1 - i];
    if (!match::constant_of(c) || !is(inner, op)) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      const Value x = operand(inner, k), d = operand(inner, 1 - k);
      if (!match::constant_of(d) || match::constant_of(x)) continue;
      const Value constants[] = {d, c};
      const std::optional<Value> both = match::folded(s.builder(), op, constants);
      if (!both) continue;
      const Value pair[] = {x, *both};
      if (!match::fits(s.builder(), op, Attrs(), pair, s.type())) continue;
      return s.rules.make(op, {x, *both});
    }
  }
  return {};
}

// --- maximum, minimum ---

std::optional<Value> extreme_of_itself(const Site& s) {
  return s[0].at == s[1].at ? std::optional(s[0]) : std::nullopt;
}

// The bound that every number keeps: -inf or the least integer for a maximum.
bool bounds_nothing(Value bound, bool maximum) {
  const DType d = bound.dtype();
  const double inf = std::numeric_limits<double>::infinity();
  if (is_arithmetic_float(d)) return is_all(bound, maximum ? -inf : inf);
  if (!is_integer(d)) return false;
  const std::optional<std::uint64_t> code = match::splat(bound);
  return code && *code == encode_integer(d, maximum ? -inf : inf);
}

template <bool maximum>
std::optional<Value> extreme_without_bound(const Site& s) {
  if (bounds_nothing(s[1], maximum)) return at_size(s, s[0]);
  if (bounds_nothing(s[0], maximum)) return at_size(s, s[1]);
  return {};
}

// --- unary functions ---

std::optional<Value> negate_twice(const Site& s) {
  static const OpDef& neg_op = match::op("neg");
  return is(s[0], neg_op) ? std::optional(operand(s[0])) : std::nullopt;
}

std::optional<Value> already_non_negative(const Site& s) {
  return match::non_negative(s[0]) ? std::optional(s[0]) : std::nullopt;
}

std::optional<Value> absolute_of_negative(const Site& s) {
  static const OpDef &neg_op = match::op("neg"), &abs_op = match::op("abs");
  if (!is(s[0], neg_op)) return {};
  return s.rules.make(abs_op, {operand(s[0])});
}

// floor, ceil, round and trunc of what one of them gave.
std::optional<Value> round_whole_number(const Site& s) {
  static const OpDef* const rounding[] = {&match::op("round"), &match::op("floor"), &match::op("ceil"),
                                          &match::op("trunc"), &match::op("sign")};
  for (const OpDef* op : rounding) {
    if (is(s[0], *op)) return s[0];
  }
  return {};
}

std::optional<Value> same_twice(const Site& s) {
  return is(s[0], *match::node(s.value).op) ? std::optional(s[0]) : std::nullopt;
}

}  // namespace

std::span<const LocalRule> arithmetic_rules() {
  static const std::vector<LocalRule> rules = [] {
    std::vector<LocalRule> r;
    const auto add = [&](std::string_view op, std::string_view what, std::optional<Value> (*f)(const Site&)) {
      r.push_back({&match::op(op), what, f});
    };
    add("add", "sums with nothing", add_nothing);
    add("add", "sums with a negative", add_negative);
    add("sub", "differences with nothing", subtract_nothing);
    add("sub", "differences from nothing", subtract_from_nothing);
    add("sub", "differences of equal integers", subtract_itself);
    add("sub", "differences with a negative", subtract_negative);
    add("mul", "products with one", multiply_by_unit);
    add("mul", "integer products with 0", multiply_by_zero);
    add("mul", "products of negatives", multiply_negatives);
    add("div", "quotients by one", divide_by_unit);
    add("div", "quotients by a power of two", divide_by_power_of_two);
    add("pow", "powers", power);
    for (const char* op : {"add", "mul", "bitwise_and", "bitwise_or", "bitwise_xor"})
      add(op, "chains of integer constants", join_constants);
    for (const char* op : {"maximum", "minimum", "bitwise_and", "bitwise_or"})
      add(op, "operands given twice", extreme_of_itself);
    add("maximum", "bounds that bound nothing", extreme_without_bound<true>);
    add("minimum", "bounds that bound nothing", extreme_without_bound<false>);
    add("neg", "double negations", negate_twice);
    add("abs", "absolute values of what is not negative", already_non_negative);
    add("relu", "absolute values of what is not negative", already_non_negative);
    add("abs", "absolute values of negatives", absolute_of_negative);
    for (const char* op : {"round", "floor", "ceil", "trunc"}) add(op, "whole numbers rounded", round_whole_number);
    add("sign", "functions applied again", same_twice);
    add("relu", "functions applied again", same_twice);
    return r;
  }();
  return rules;
}

}  // namespace rlx
