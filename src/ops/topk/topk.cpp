// topk: sorts positions by value, then by position, so that the indices are distinct whatever the values.
#include "ops/topk/topk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/walk.h"
#include "ir/at_most.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_reference.h"
#include "ops/scatter_add_along/scatter_add_along.h"
#include "ops/take_along/take_along.h"

namespace rlx {

namespace {

std::vector<TensorType> topk_infer(const TopkAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool ordered = is_arithmetic_float(x.dtype) || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(ordered && !x.encoding, "element type {} is not supported, cast first", x.text());
  const Index axis = x.axis(a.axis);
  at_most(c, 0, a.k, "k");
  at_most(c, a.k, x.dim(axis), fmt::format("k along axis {}", axis));
  const TensorType t = x.with(axis, a.k);
  return {t, t.with(DType::i64)};
}

template <class T>
bool greater_than(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  }
  return a > b;
}

void topk_reference(const TopkAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  const Index axis = r.in[0].type().axis(a.axis);
  const AxisSplit s = split_at(r.in[0].shape(), axis);
  const Index k = split_at(r.out[0].shape(), axis).extent;
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() {
    const std::vector<T> x = load<T>(r.in[0]);
    std::vector<Index> order(static_cast<std::size_t>(s.extent));
    for (Index o = 0; o < s.outer; ++o) {
      for (Index t = 0; t < s.inner; ++t) {
        const auto from = [&](Index i) { return (o * s.extent + i) * s.inner + t; };
        const auto at = [&](Index i) { return x[static_cast<std::size_t>(from(i))]; };
        std::iota(order.begin(), order.end(), Index{0});
        std::ranges::sort(order, [&](Index i, Index j) {
          const bool before = a.largest ? greater_than(at(i), at(j)) : greater_than(at(j), at(i));
          const bool behind = a.largest ? greater_than(at(j), at(i)) : greater_than(at(i), at(j));
          return before || (!behind && i < j);
        });
        for (Index i = 0; i < k; ++i) {
          const Index best = order[static_cast<std::size_t>(i)], to = (o * k + i) * s.inner + t;
          r.out[0].set_code(to, r.in[0].code(from(best)));
          r.out[1].set_code(to, static_cast<std::uint64_t>(best));
        }
      }
    }
  });
}

// The place of an element in the order is the number of elements before it: greater ones, and equal ones of smaller
// index. Quadratic in the size of the axis.
Values topk_definition(const TopkAttrs& a, const DefineArgs& d) {
  const Value x = d[0];
  Builder& b = *x.builder;
  const Index axis = x.type().axis(a.axis);
  const Dim& n = x.dim(axis);
  // Along two axes in place of one: an element, and the other it is compared with.
  const auto plane = [&](const Dim& rows, const Dim& columns) {
    std::vector<Dim> dims{rows, columns};
    for (Index i = axis + 1; i < x.rank(); ++i) dims.emplace_back(1);
    return dims;
  };
  const Value self = unsqueeze(x, {axis + 1}), other = unsqueeze(x, {axis});
  const Value self_nan = not_equal(self, self), other_nan = not_equal(other, other);
  const Value above = a.largest ? bitwise_or(greater(other, self), bitwise_and(other_nan, bitwise_not(self_nan)))
                                : bitwise_or(less(other, self), bitwise_and(self_nan, bitwise_not(other_nan)));
  const Value same = bitwise_or(equal(other, self), bitwise_and(other_nan, self_nan));
  const Value earlier = less(iota(b, DType::i64, plane(n, n), 1), iota(b, DType::i64, plane(n, n), 0));
  const Value before = bitwise_or(above, bitwise_and(same, earlier));
  const Value one = constant(b, DType::i64, 1), zero = constant(b, DType::i64, 0);
  const Value place = unsqueeze(sum(select(before, one, zero), {axis + 1}), {axis + 1});
  const Value chosen = equal(place, iota(b, DType::i64, plane(1, a.k), 1));
  const Value indices = sum(select(chosen, iota(b, DType::i64, plane(n, a.k), 0), zero), {axis});
  return {take_along(x, indices, axis), indices};
}

Grads topk_vjp(const TopkAttrs& a, const VjpArgs& v) {
  if (!v.cotangents[0]) return {std::nullopt};
  return {scatter_add_along(*v.cotangents[0], v.out[1], a.axis, v.in[0].type().dims)};
}

std::vector<Case<TopkAttrs>> topk_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 3, 16), k = Dim::symbol("K", 0, 16);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<Case<TopkAttrs>> cases;
  const auto add = [&](TopkAttrs a, CaseInput x, std::vector<double> values, std::vector<double> indices) {
    cases.push_back({std::move(a),
                     {.inputs = {std::move(x)},
                      .expected = {std::move(values), std::move(indices)},
                      .tolerance = exact,
                      .expected_tolerance = exact,
                      .gradient = false}});
  };
  add({3}, CaseInput(DType::f32, {4}).filled({-inf, 5, -inf, -inf}), {5, -inf, -inf}, {1, 0, 2});
  add({2}, CaseInput(DType::f32, {4}).filled({2, 7, 7, 1}), {7, 7}, {1, 2});
  add({2, 0, false}, CaseInput(DType::f32, {5}).filled({2, 1, 7, 1, 2}), {1, 1}, {1, 3});
  const CaseInput special = CaseInput(DType::f32, {6}).filled({1, nan, inf, -inf, nan, 0});
  add({6}, special, {nan, nan, inf, 1, 0, -inf}, {1, 4, 2, 0, 5, 3});
  add({6, 0, false}, special, {-inf, 0, 1, inf, nan, nan}, {3, 5, 0, 2, 1, 4});
  add({3}, CaseInput(DType::f32, {3}).filled({-0.0, 0.0, -0.0}), {-0.0, 0.0, -0.0}, {0, 1, 2});
  add({2, 0}, CaseInput(DType::f32, {3, 2}).filled({1, 6, 5, 2, 3, 4}), {5, 6, 3, 4}, {1, 0, 2, 2});
  add({1, 1}, CaseInput(DType::i64, {2, 3}).filled({16777216, 16777217, 5, 3, 1, 3}), {16777217, 3}, {1, 0});
  add({2, -1, false}, CaseInput(DType::i32, {3}).filled({16777217, -5, 16777216}), {-5, 16777216}, {1, 2});
  cases.back().common.other_dtypes = false;
  add({1}, CaseInput(DType::u64, {2}).filled({5, 9223372036854775808.0}), {9223372036854775808.0}, {1});
  add({0}, CaseInput(DType::f32, {2, 0}), {}, {});
  add({0}, CaseInput(DType::f32, {3}), {}, {});
  add({2}, CaseInput(DType::f32, {0, 2}), {}, {});
  for (const bool largest : {true, false}) {
    const auto more = [&](Dim count, Index axis, CaseInput x, DimEnv dims = {}) {
      cases.push_back({{std::move(count), axis, largest},
                       {.inputs = {x.ties_free()}, .tolerance = exact, .dims = std::move(dims)}});
    };
    more(3, 1, {DType::f32, {b, s, 3}}, {{"S", 5}});
    more(k, 0, {DType::f32, {s, b}}, {{"S", 7}, {"K", 7}});
    more(k, -1, {DType::f32, {b, s}}, {{"S", 7}, {"K", 0}});
    more(s - 2, -1, {DType::f32, {2, s}}, {{"S", 11}});
    more(5, 0, CaseInput(DType::i32, {11, 2}).range(0, 4));
  }
  return cases;
}

}  // namespace

constinit const Op<TopkAttrs> topk_op{{
    .name = "topk",
    .doc =
        "The `k` largest elements along `axis` in descending order, or the smallest in ascending order, and as second "
        "result their indices as i64. Of equal elements that of smaller index comes first; NaN ranks above infinity, "
        "all NaN are equal, and so are -0 and 0. Floats and integers of at least 8 bits. A `k` above the size is an "
        "Error, found when sizes are bound if not before. Gradient: each value's cotangent goes to its element; none "
        "through the indices.",
    .infer = topk_infer,
    .definition = topk_definition,
    .vjp = topk_vjp,
    .reference = topk_reference,
    .cases = topk_cases,
    .failures =
        [] {
          return std::vector<Failure<TopkAttrs>>{
              {{4, 1}, {{DType::f32, {2, 3}}}, "k along axis 1: 4 is more than 3"},
              {{-1, 1}, {{DType::f32, {2, 3}}}, "k: 0 is more than -1"},
              {{1, 2}, {{DType::f32, {2, 3}}}, "axis 2 is out of range for rank 2"},
              {{1, 0}, {{DType::f32, {}}}, "axis 0 is out of range for rank 0"},
              {{1, 0}, {{DType::boolean, {3}}}, "element type bool[3] is not supported, cast first"},
              {{}, {}, "0 operands are given, expected 1"},
          };
        },
}};

TopkValues topk(Value x, Dim k, Index axis, bool largest) {
  const Values out = x.builder->emit(topk_op, Attrs(TopkAttrs{std::move(k), axis, largest}), std::span(&x, 1));
  return {out[0], out[1]};
}

std::span<const OpDef* const> topk_ops() {
  static constexpr const OpDef* ops[] = {&topk_op};
  return ops;
}

}  // namespace rlx
