// Elementwise arithmetic, comparison, logic.
#include <algorithm>
#include <limits>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "io/onnx/older.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

template <Value (*f)(Value)>
Values unary(NodeArgs& n) {
  n.expect(1, 1);
  return {f(n[0])};
}

template <Value (*f)(Value, Value)>
Values binary(NodeArgs& n) {
  n.expect(2, 2);
  return {f(n[0], second_operand(n))};
}

template <Value (*f)(Value, Value)>
Values fold(NodeArgs& n) {
  const Values all = n.all();
  Value v = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) v = f(v, all[i]);
  return {v};
}

Values mean(NodeArgs& n) {
  const Value total = fold<add>(n)[0];
  return {total / like(total, static_cast<double>(n.count()))};
}

// The result has the type of the base.
Values power(NodeArgs& n) {
  n.expect(2, 2);
  const Value base = n[0], exponent = second_operand(n);
  if (base.dtype() == exponent.dtype()) return {pow(base, exponent)};
  if (is_float(base.dtype())) return {pow(base, cast(exponent, base.dtype()))};
  if (is_integer(exponent.dtype())) return {pow(base, cast(exponent, base.dtype()))};
  return {cast(pow(cast(base, DType::f64), cast(exponent, DType::f64)), base.dtype())};
}

// Without fmod the remainder has the sign of the divisor.
Values modulo(NodeArgs& n) {
  n.expect(2, 2);
  const bool c_style = n.integer("fmod", 0) != 0;
  const Value a = n[0], b = n[1];
  if (c_style) return {fmod(a, b)};
  const auto x = n.importer().known(a), y = n.importer().known(b);
  const bool sizes = x && y && x->size() == 1 && y->size() == 1 && y->front().bounds().lo > 0;
  if (sizes && a.rank() <= 1 && b.rank() <= 1) {
    return {n.known(a.dtype(), {mod(x->front(), y->front())}, a.rank() + b.rank() > 0)};
  }
  const Value r = fmod(a, b), zero = like(r, 0);
  const Value mixed = bitwise_and(not_equal(r, zero), not_equal(less(r, zero), less(b, zero)));
  const Value moved = select(mixed, r + b, r);
  if (is_integer(a.dtype())) return {moved};
  return {select(equal(r, zero), select(less(b, zero), -zero, zero), moved)};  // a zero has the divisor's sign too
}

// Sizes compare now where bounds decide, as exporters test shapes for -1.
using Decide = Tri (*)(const Dim&, const Dim&);

Tri less_sizes(const Dim& a, const Dim& b) {
  const Bounds d = (a - b).bounds();
  return d.hi < 0 ? Tri::yes : d.lo >= 0 ? Tri::no : Tri::unknown;
}
Tri at_most_sizes(const Dim& a, const Dim& b) {
  const Tri t = less_sizes(b, a);
  return t == Tri::yes ? Tri::no : t == Tri::no ? Tri::yes : Tri::unknown;
}
Tri equal_sizes(const Dim& a, const Dim& b) { return rlx::equal(a, b); }

template <Value (*f)(Value, Value), Decide decide, bool swapped>
Values compare(NodeArgs& n) {
  n.expect(2, 2);
  const Value a = n[0], b = second_operand(n);
  const auto x = n.importer().known(a), y = n.importer().known(b);
  if (!x || !y || (x->size() != y->size() && x->size() != 1 && y->size() != 1)) return {f(a, b)};
  std::vector<Dim> out;
  const std::size_t count = x->empty() || y->empty() ? 0 : std::max(x->size(), y->size());
  for (std::size_t i = 0; i < count; ++i) {
    const Dim &l = (*x)[x->size() == 1 ? 0 : i], &r = (*y)[y->size() == 1 ? 0 : i];
    const Tri t = swapped ? decide(r, l) : decide(l, r);
    if (t == Tri::unknown) return {f(a, b)};
    out.emplace_back(t == Tri::yes ? 1 : 0);
  }
  return {n.known(DType::boolean, std::move(out), a.rank() + b.rank() > 0)};
}

Value is_nan(Value x) { return not_equal(x, x); }

Values is_inf(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0], inf = like(x, std::numeric_limits<double>::infinity());
  const bool positive = n.integer("detect_positive", 1) != 0, negative = n.integer("detect_negative", 1) != 0;
  if (positive && negative) return {equal(abs(x), inf)};
  if (!positive && !negative) return {bitwise_and(equal(x, inf), equal(x, -inf))};
  return {equal(x, positive ? inf : -inf)};
}

Values shift(NodeArgs& n) {
  n.expect(2, 2);
  const std::string direction = n.string("direction", "");
  require(direction == "LEFT" || direction == "RIGHT", "direction is {}, expected LEFT or RIGHT", in_quotes(direction));
  const Value a = n[0], b = n[1], zero = like(a, 0);
  // A count below 0 or of the width or more shifts everything out; what is negative leaves its sign.
  const bool left = direction == "LEFT", is_signed = is_signed_integer(a.dtype());
  const Value moved = left ? shift_left(a, b) : shift_right(a, b);
  const Value empty = left || !is_signed ? zero : select(less(a, zero), like(a, -1), zero);
  Value inside = less(b, like(b, bits(b.dtype())));
  if (is_signed) inside = bitwise_and(inside, greater_equal(b, like(b, 0)));
  return {select(inside, moved, empty)};
}

Values clip(NodeArgs& n) {
  if (n.opset() < 11) {
    n.expect(1, 1);
    Value x = n[0];
    if (n.given("min")) x = maximum(x, like(x, n.real("min", 0)));
    if (n.given("max")) x = minimum(x, like(x, n.real("max", 0)));
    return {x};
  }
  n.expect(1, 3);
  Value x = n[0];
  if (n.has(1)) x = maximum(x, n[1]);
  if (n.has(2)) x = minimum(x, n[2]);
  return {x};
}

Values logical_not(NodeArgs& n) {
  n.expect(1, 1);
  require(n[0].dtype() == DType::boolean, "element type {} is not supported", name(n[0].dtype()));
  if (const auto x = n.importer().known(n[0])) {
    std::vector<Dim> out;
    for (const Dim& d : *x) out.emplace_back(d == Dim(0) ? 1 : 0);
    return {n.known(DType::boolean, std::move(out), n[0].rank() > 0)};
  }
  return {bitwise_not(n[0])};
}

// `truth` holds the results for no, one and two operands that are true.
template <Value (*f)(Value, Value), unsigned truth>
Values logical(NodeArgs& n) {
  n.expect(2, 2);
  for (std::size_t i = 0; i < 2; ++i) {
    require(n[i].dtype() == DType::boolean, "element type {} is not supported", name(n[i].dtype()));
  }
  const Value second = second_operand(n);
  const auto x = n.importer().known(n[0]), y = n.importer().known(second);
  if (!x || !y || (x->size() != y->size() && x->size() != 1 && y->size() != 1)) return {f(n[0], second)};
  std::vector<Dim> out;
  const std::size_t count = x->empty() || y->empty() ? 0 : std::max(x->size(), y->size());
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned set = ((*x)[x->size() == 1 ? 0 : i] != Dim(0)) + ((*y)[y->size() == 1 ? 0 : i] != Dim(0));
    out.emplace_back(truth >> set & 1U);
  }
  return {n.known(DType::boolean, std::move(out), n[0].rank() + n[1].rank() > 0)};
}

}  // namespace

OperatorRows arithmetic_rows() {
  static constexpr OperatorRow rows[] = {
      {"Abs", 1, unary<abs>},
      {"Neg", 1, unary<neg>},
      {"Sqrt", 1, unary<sqrt>},
      {"Exp", 1, unary<exp>},
      {"Log", 1, unary<log>},
      {"Reciprocal", 1, unary<reciprocal>},
      {"Sin", 7, unary<sin>},
      {"Cos", 7, unary<cos>},
      {"Tan", 7, unary<tan>},
      {"Atan", 7, unary<atan>},
      {"Erf", 9, unary<erf>},
      {"Sign", 9, unary<sign>},
      {"Floor", 1, unary<floor>},
      {"Ceil", 1, unary<ceil>},
      {"Round", 11, unary<round>},
      {"IsNaN", 9, unary<is_nan>},
      {"IsInf", 10, is_inf},
      {"Add", 1, binary<add>},
      {"Sub", 1, binary<sub>},
      {"Mul", 1, binary<mul>},
      {"Div", 1, binary<div>},
      {"Pow", 1, power},
      {"Mod", 10, modulo},
      {"Max", 1, fold<maximum>},
      {"Min", 1, fold<minimum>},
      {"Sum", 1, fold<add>},
      {"Mean", 1, mean},
      {"Equal", 1, compare<equal, equal_sizes, false>},
      {"Less", 1, compare<less, less_sizes, false>},
      {"LessOrEqual", 12, compare<less_equal, at_most_sizes, false>},
      {"Greater", 1, compare<greater, less_sizes, true>},
      {"GreaterOrEqual", 12, compare<greater_equal, at_most_sizes, true>},
      {"Not", 1, logical_not},
      {"And", 1, logical<bitwise_and, 0b100>},
      {"Or", 1, logical<bitwise_or, 0b110>},
      {"Xor", 1, logical<bitwise_xor, 0b010>},
      {"BitwiseNot", 18, unary<bitwise_not>},
      {"BitwiseAnd", 18, binary<bitwise_and>},
      {"BitwiseOr", 18, binary<bitwise_or>},
      {"BitwiseXor", 18, binary<bitwise_xor>},
      {"BitShift", 11, shift},
      {"Clip", 1, clip},
  };
  return rows;
}

}  // namespace rlx::onnx
