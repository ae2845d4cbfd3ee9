// cumsum: integers are summed as integers.
#include "ops/cumsum/cumsum.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/walk.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_reference.h"

namespace rlx {

namespace {

TensorType cumsum_infer(const CumsumAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool numbers = is_arithmetic_float(x.dtype) || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(numbers && !x.encoding, "element type {} is not supported, cast first", x.text());
  x.axis(a.axis);
  return x;
}

void cumsum_reference(const CumsumAttrs& a, const RefArgs& r) {
  if (r.in[0].count() == 0) return;
  const AxisSplit s = split_at(r.in[0].shape(), r.in[0].type().axis(a.axis));
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() {
    std::vector<T> x = load<T>(r.in[0]);
    for (Index o = 0; o < s.outer; ++o) {
      for (Index k = 0; k < s.inner; ++k) {
        Num<T> sum{T(0)};
        for (Index step = 0; step < s.extent; ++step) {
          const Index i = a.reverse ? s.extent - 1 - step : step;
          T& at = x[static_cast<std::size_t>((o * s.extent + i) * s.inner + k)];
          const Num<T> before = sum;
          sum = sum + Num<T>{at};
          at = a.exclusive ? before.v : sum.v;
        }
      }
    }
    store(r.out[0], x);
  });
}

// A sum over all elements for every element, with those that do not belong to it made 0. Quadratic in the size.
Value cumsum_definition(const CumsumAttrs& a, const DefineArgs& d) {
  const Value x = d[0];
  const Index axis = x.type().axis(a.axis);
  const Dim& n = x.dim(axis);
  std::vector<Dim> square{n, n};
  for (Index i = axis + 1; i < x.rank(); ++i) square.emplace_back(1);
  const Value to = iota(*x.builder, DType::i64, square, 0), from = iota(*x.builder, DType::i64, square, 1);
  const Value first = a.reverse ? to : from, second = a.reverse ? from : to;
  const Value belongs = a.exclusive ? less(first, second) : less_equal(first, second);
  return sum(select(belongs, unsqueeze(x, {axis}), like(x, 0)), {axis + 1});
}

Grads cumsum_vjp(const CumsumAttrs& a, const VjpArgs& v) { return {cumsum(v.dout(), a.axis, a.exclusive, !a.reverse)}; }

std::vector<Case<CumsumAttrs>> cumsum_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 0, 16);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<Case<CumsumAttrs>> cases;
  const auto add = [&](CumsumAttrs a, CaseInput x, std::vector<double> out) {
    cases.push_back({a, {.inputs = {std::move(x)}, .expected = {std::move(out)}, .expected_tolerance = exact}});
  };
  const CaseInput four = CaseInput(DType::f32, {4}).filled({1, 10, 100, 1000});
  add({0, false, false}, four, {1, 11, 111, 1111});
  add({0, true, false}, four, {0, 1, 11, 111});
  add({0, false, true}, four, {1111, 1110, 1100, 1000});
  add({0, true, true}, four, {1110, 1100, 1000, 0});
  add({-1}, CaseInput(DType::i64, {4}).filled({1, 1, 0, 1}), {1, 2, 2, 3});
  add({0}, CaseInput(DType::i64, {2}).filled({16777217, 1}), {16777217, 16777218});
  add({0, true}, CaseInput(DType::i64, {2}).filled({16777217, 1}), {0, 16777217});
  add({0}, CaseInput(DType::i32, {2}).filled({16777216, 1}), {16777216, 16777217});
  cases.back().common.other_dtypes = false;
  add({0}, CaseInput(DType::u8, {3}).filled({200, 100, 1}), {200, 44, 45});
  add({0}, CaseInput(DType::f32, {2, 2}).filled({1, 2, 3, 4}), {1, 2, 4, 6});
  add({1}, CaseInput(DType::f32, {2, 2}).filled({1, 2, 3, 4}), {1, 3, 3, 7});
  add({0}, CaseInput(DType::f32, {0}), {});
  add({0}, CaseInput(DType::f32, {1}).filled({5}), {5});
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      const auto more = [&](Index axis, CaseInput x, DimEnv dims = {}, bool gradient = true) {
        cases.push_back(
            {{axis, exclusive, reverse}, {.inputs = {std::move(x)}, .dims = std::move(dims), .gradient = gradient}});
      };
      more(1, {DType::f32, {b, s, 3}}, {{"S", 7}});
      more(-3, {DType::f32, {5, b, s}});
      more(1, {DType::f32, {3, s}}, {{"S", 0}});
      more(0, CaseInput(DType::i32, {11, 2}).range(0, 7));
      more(0, CaseInput(DType::f32, {5}).filled({1, inf, 2, nan, -inf}), {}, false);
    }
  }
  return cases;
}

}  // namespace

constinit const Op<CumsumAttrs> cumsum_op{{
    .name = "cumsum",
    .doc =
        "Running sum along `axis`: each element and all before it. `exclusive` leaves the element itself out, so that "
        "the first is 0; `reverse` runs from the end. Floats and integers of at least 8 bits; integers are summed as "
        "integers and wrap. Gradient: the running sum of the cotangent in the other direction.",
    .infer = cumsum_infer,
    .definition = cumsum_definition,
    .vjp = cumsum_vjp,
    .reference = cumsum_reference,
    .cases = cumsum_cases,
    .failures =
        [] {
          return std::vector<Failure<CumsumAttrs>>{
              {{1}, {{DType::f32, {3}}}, "axis 1 is out of range for rank 1"},
              {{0}, {{DType::f32, {}}}, "axis 0 is out of range for rank 0"},
              {{0}, {{DType::boolean, {3}}}, "element type bool[3] is not supported, cast first"},
              {{0}, {{DType::i4, {3}}}, "element type i4[3] is not supported, cast first"},
              {{}, {}, "0 operands are given, expected 1"},
          };
        },
}};

Value cumsum(Value x, Index axis, bool exclusive, bool reverse) {
  return x.builder->emit_one(cumsum_op, CumsumAttrs{axis, exclusive, reverse}, {x});
}

std::span<const OpDef* const> cumsum_ops() {
  static constexpr const OpDef* ops[] = {&cumsum_op};
  return ops;
}

}  // namespace rlx
