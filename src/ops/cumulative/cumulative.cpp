// cumulative: integers are summed and multiplied as integers.
#include "ops/cumulative/cumulative.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/walk.h"
#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_reference.h"
#include "ops/scatter_add_along/scatter_add_along.h"
#include "ops/sizes/sizes.h"

namespace rlx {

std::span<const std::string_view> enum_names(CumulativeKind) {
  static constexpr std::array<std::string_view, 4> names{"sum", "prod", "max", "min"};
  return names;
}

namespace {

TensorType cumulative_infer(const CumulativeAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool numbers = is_arithmetic_float(x.dtype) || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(numbers && !x.encoding, "element type {} is not supported, cast first", x.text());
  x.axis(a.axis);
  return x;
}

// What joins with any number to that number: of integers the least or greatest of the element type.
double identity(CumulativeKind kind, DType d) {
  if (kind == CumulativeKind::sum || kind == CumulativeKind::prod) return kind == CumulativeKind::prod ? 1 : 0;
  const double far = is_float(d) ? std::numeric_limits<double>::infinity() : 1e300;
  return kind == CumulativeKind::max ? -far : far;
}

template <class T>
Num<T> joined(CumulativeKind kind, Num<T> a, Num<T> b) {
  switch (kind) {
    case CumulativeKind::prod:
      return a * b;
    case CumulativeKind::max:
      return maximum(a, b);
    case CumulativeKind::min:
      return minimum(a, b);
    default:
      return a + b;
  }
}

template <class T>
void run_line(const CumulativeAttrs& a, const AxisSplit& s, T* line, T first) {
  Num<T> so_far{first};
  for (Index step = 0; step < s.extent; ++step) {
    T& at = line[(a.reverse ? s.extent - 1 - step : step) * s.inner];
    const Num<T> before = so_far;
    so_far = joined(a.kind, so_far, Num<T>{at});
    at = a.exclusive ? before.v : so_far.v;
  }
}

void cumulative_reference(const CumulativeAttrs& a, const RefArgs& r) {
  if (r.in[0].count() == 0) return;
  const AxisSplit s = split_at(r.in[0].shape(), r.in[0].type().axis(a.axis));
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() {
    Tensor scalar(r.in[0].dtype(), {});
    store(scalar, std::vector<double>{identity(a.kind, r.in[0].dtype())});
    const T first = load<T>(scalar)[0];
    std::vector<T> x = load<T>(r.in[0]);
    for (Index o = 0; o < s.outer; ++o) {
      for (Index k = 0; k < s.inner; ++k) run_line<T>(a, s, x.data() + o * s.extent * s.inner + k, first);
    }
    store(r.out[0], x);
  });
}

// Which elements along the axis count for which: sizes [to, from, 1, ...].
Value counting(const CumulativeAttrs& a, Value x) {
  const Index axis = x.type().axis(a.axis);
  const Dim& n = x.dim(axis);
  std::vector<Dim> square{n, n};
  for (Index i = axis + 1; i < x.rank(); ++i) square.emplace_back(1);
  const Value to = iota(*x.builder, DType::i64, square, 0), from = iota(*x.builder, DType::i64, square, 1);
  const Value first = a.reverse ? to : from, second = a.reverse ? from : to;
  return a.exclusive ? less(first, second) : less_equal(first, second);
}

// A reduction of all elements for every element. Quadratic in the size.
Value cumulative_definition(const CumulativeAttrs& a, const DefineArgs& d) {
  const Value x = d[0];
  const Index axis = x.type().axis(a.axis);
  const Value all = select(counting(a, x), unsqueeze(x, {axis}), like(x, identity(a.kind, x.dtype())));
  static constexpr ReduceKind kinds[] = {ReduceKind::sum, ReduceKind::prod, ReduceKind::max, ReduceKind::min};
  return reduce(all, {kinds[static_cast<std::size_t>(a.kind)], {axis + 1}});
}

// Each product without one of its factors: those before it times those behind, so that zeros do no harm.
Value prod_gradient(const CumulativeAttrs& a, Value x, Value u) {
  const Index axis = x.type().axis(a.axis);
  const Value counts = counting(a, x), all = select(counts, unsqueeze(x, {axis}), like(x, 1));
  const Value others = cumprod(all, axis + 1, true) * cumprod(all, axis + 1, true, true);
  return sum(select(counts, others * unsqueeze(u, {axis + 1}), like(x, 0)), {axis});
}

// The cotangent goes to the first element, in the direction of the run, that is the extreme so far.
Value extreme_gradient(const CumulativeAttrs& a, Value x, Value u) {
  const Index axis = x.type().axis(a.axis);
  const Dim& n = x.dim(axis);
  const auto run = a.kind == CumulativeKind::max ? cummax : cummin;
  const Value before = run(x, axis, true, a.reverse);
  const Value at = iota(*x.builder, DType::i64, x.type().dims, axis), zero = like(at, 0);
  const Value count = reshape(sizes(*x.builder, {n}), {});
  const Value order = a.reverse ? count - like(at, 1) - at : at;  // position in the run
  const Value further = a.kind == CumulativeKind::max ? greater(x, before) : less(x, before);
  const Value first_nan = bitwise_and(not_equal(x, x), equal(before, before));
  const Value leads = bitwise_or(bitwise_or(further, first_nan), equal(order, zero));
  const Value leader = cummax(select(leads, order, like(order, -1)), axis, a.exclusive, a.reverse);
  const Value exists = greater_equal(leader, zero), position = maximum(leader, zero);
  return scatter_add_along(select(exists, u, like(u, 0)),
                           a.reverse ? maximum(count - like(at, 1) - position, zero) : position, axis, x.type().dims);
}

Grads cumulative_vjp(const CumulativeAttrs& a, const VjpArgs& v) {
  switch (a.kind) {
    case CumulativeKind::sum:
      return {cumsum(v.dout(), a.axis, a.exclusive, !a.reverse)};
    case CumulativeKind::prod:
      return {prod_gradient(a, v.in[0], v.dout())};
    default:
      return {extreme_gradient(a, v.in[0], v.dout())};
  }
}

std::vector<Case<CumulativeAttrs>> cumulative_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 0, 16);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<Case<CumulativeAttrs>> cases;
  const auto add = [&](CumulativeAttrs a, CaseInput x, std::vector<double> out) {
    cases.push_back({a, {.inputs = {std::move(x)}, .expected = {std::move(out)}, .expected_tolerance = exact}});
  };
  const CaseInput four = CaseInput(DType::f32, {4}).filled({1, 10, 100, 1000});
  using Kind = CumulativeKind;
  add({Kind::sum, 0, false, false}, four, {1, 11, 111, 1111});
  add({Kind::sum, 0, true, false}, four, {0, 1, 11, 111});
  add({Kind::sum, 0, false, true}, four, {1111, 1110, 1100, 1000});
  add({Kind::sum, 0, true, true}, four, {1110, 1100, 1000, 0});
  add({Kind::sum, -1}, CaseInput(DType::i64, {4}).filled({1, 1, 0, 1}), {1, 2, 2, 3});
  add({Kind::sum, 0}, CaseInput(DType::i64, {2}).filled({16777217, 1}), {16777217, 16777218});
  add({Kind::sum, 0, true}, CaseInput(DType::i64, {2}).filled({16777217, 1}), {0, 16777217});
  add({Kind::sum, 0}, CaseInput(DType::i32, {2}).filled({16777216, 1}), {16777216, 16777217});
  cases.back().common.other_dtypes = false;
  add({Kind::sum, 0}, CaseInput(DType::u8, {3}).filled({200, 100, 1}), {200, 44, 45});
  add({Kind::sum, 0}, CaseInput(DType::f32, {2, 2}).filled({1, 2, 3, 4}), {1, 2, 4, 6});
  add({Kind::sum, 1}, CaseInput(DType::f32, {2, 2}).filled({1, 2, 3, 4}), {1, 3, 3, 7});
  const CaseInput some = CaseInput(DType::f32, {5}).filled({2, 3, 0, 5, -1});
  add({Kind::prod, 0}, some, {2, 6, 0, 0, -0.0});
  add({Kind::prod, 0, true}, some, {1, 2, 6, 0, 0});
  add({Kind::prod, 0, false, true}, some, {-0.0, -0.0, -0.0, -5, -1});
  add({Kind::prod, 0, true, true}, some, {-0.0, -0.0, -5, -1, 1});
  add({Kind::prod, 0}, CaseInput(DType::u8, {3}).filled({20, 20, 2}), {20, 144, 32});
  add({Kind::max, 0}, some, {2, 3, 3, 5, 5});
  add({Kind::max, 0, true}, some, {-inf, 2, 3, 3, 5});
  cases.back().common.gradient = false;  // differences of infinities
  add({Kind::min, 0, false, true}, some, {-1, -1, -1, -1, -1});
  add({Kind::min, 0}, some, {2, 2, 0, 0, -1});
  add({Kind::max, 0, true}, CaseInput(DType::i8, {2}).filled({-5, 7}), {-128, -5});
  cases.back().common.other_dtypes = false;
  add({Kind::min, 0, true}, CaseInput(DType::u8, {2}).filled({5, 7}), {255, 5});
  cases.back().common.other_dtypes = false;
  add({Kind::max, 0}, CaseInput(DType::f32, {4}).filled({1, nan, 5, -inf}), {1, nan, nan, nan});
  cases.back().common.gradient = false;
  for (const Kind kind : {Kind::sum, Kind::prod, Kind::max, Kind::min}) {
    add({kind, 0}, CaseInput(DType::f32, {0}), {});
    add({kind, 0}, CaseInput(DType::f32, {1}).filled({5}), {5});
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        const bool infinite = exclusive && (kind == Kind::max || kind == Kind::min);
        const auto more = [&](Index axis, CaseInput x, DimEnv dims = {}, bool gradient = true) {
          cases.push_back({{kind, axis, exclusive, reverse},
                           {.inputs = {std::move(x)}, .dims = std::move(dims), .gradient = gradient && !infinite}});
        };
        more(1, CaseInput(DType::f32, {b, s, 3}).ties_free(), {{"S", 7}});
        more(-3, CaseInput(DType::f32, {5, b, s}).ties_free());
        more(1, {DType::f32, {3, s}}, {{"S", 0}});
        more(0, CaseInput(DType::i32, {11, 2}).range(0, 7));
        more(0, CaseInput(DType::f32, {5}).filled({1, inf, 2, nan, -inf}), {}, false);
      }
    }
  }
  return cases;
}

}  // namespace

constinit const Op<CumulativeAttrs> cumulative_op{{
    .name = "cumulative",
    .doc =
        "Running sum, product, maximum or minimum along `axis`: of each element and all before it. `exclusive` leaves "
        "the element itself out, so that the first is 0, 1 or the least or greatest value of the element type; "
        "`reverse` runs from the end. Floats and integers of at least 8 bits; integers are joined as integers and "
        "wrap; extremes propagate NaN. Gradient: of sums the running sum of the cotangent in the other direction; of "
        "products u times the other factors, be some of them 0; of extremes u to the first element, in the direction "
        "of the run, that is the extreme so far.",
    .infer = cumulative_infer,
    .definition = cumulative_definition,
    .vjp = cumulative_vjp,
    .reference = cumulative_reference,
    .cases = cumulative_cases,
    .failures =
        [] {
          using K = CumulativeKind;
          return std::vector<Failure<CumulativeAttrs>>{
              {{K::sum, 1}, {{DType::f32, {3}}}, "axis 1 is out of range for rank 1"},
              {{K::sum, 0}, {{DType::f32, {}}}, "axis 0 is out of range for rank 0"},
              {{K::max, 0}, {{DType::boolean, {3}}}, "element type bool[3] is not supported, cast first"},
              {{K::prod, 0}, {{DType::i4, {3}}}, "element type i4[3] is not supported, cast first"},
              {{}, {}, "0 operands are given, expected 1"},
          };
        },
}};

Value cumsum(Value x, Index axis, bool exclusive, bool reverse) {
  return x.builder->emit_one(cumulative_op, CumulativeAttrs{CumulativeKind::sum, axis, exclusive, reverse}, {x});
}

Value cumprod(Value x, Index axis, bool exclusive, bool reverse) {
  return x.builder->emit_one(cumulative_op, CumulativeAttrs{CumulativeKind::prod, axis, exclusive, reverse}, {x});
}

Value cummax(Value x, Index axis, bool exclusive, bool reverse) {
  return x.builder->emit_one(cumulative_op, CumulativeAttrs{CumulativeKind::max, axis, exclusive, reverse}, {x});
}

Value cummin(Value x, Index axis, bool exclusive, bool reverse) {
  return x.builder->emit_one(cumulative_op, CumulativeAttrs{CumulativeKind::min, axis, exclusive, reverse}, {x});
}

std::span<const OpDef* const> cumulative_ops() {
  static constexpr const OpDef* ops[] = {&cumulative_op};
  return ops;
}

}  // namespace rlx
