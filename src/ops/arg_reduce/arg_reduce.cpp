// arg_reduce: a scan that keeps the first best element.
#include "ops/arg_reduce/arg_reduce.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/walk.h"
#include "ir/at_most.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "ops/scalar/scalar_reference.h"

namespace rlx {

std::span<const std::string_view> enum_names(ArgKind) {
  static constexpr std::string_view names[] = {"max", "min"};
  return names;
}

namespace {

TensorType arg_reduce_infer(const ArgReduceAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  const bool ordered = is_arithmetic_float(x.dtype) || (is_integer(x.dtype) && bits(x.dtype) >= 8);
  require(ordered && !x.encoding, "element type {} is not supported, cast first", x.text());
  const Index axis = x.axis(a.axis);
  require(x.dim(axis).bounds().hi > 0, "axis {} of {} has no elements", axis, x.text());
  at_most(c, 1, x.dim(axis), fmt::format("size of axis {}", axis));
  TensorType t = x.with(DType::i64);
  if (a.keep) return t.with(axis, 1);
  t.dims.erase(t.dims.begin() + axis);
  return t;
}

template <class T>
bool better(ArgKind kind, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(b);
  }
  return kind == ArgKind::max ? a > b : a < b;
}

void arg_reduce_reference(const ArgReduceAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  const AxisSplit s = split_at(r.in[0].shape(), r.in[0].type().axis(a.axis));
  detail::visit_domain<base::reals | base::integers>(r.in[0].dtype(), [&]<class T>() {
    const std::vector<T> x = load<T>(r.in[0]);
    std::vector<std::int64_t> best;
    for (Index o = 0; o < s.outer; ++o) {
      for (Index k = 0; k < s.inner; ++k) {
        const auto at = [&](Index i) { return x[static_cast<std::size_t>((o * s.extent + i) * s.inner + k)]; };
        Index first = 0;
        for (Index i = 1; i < s.extent; ++i) {
          if (better(a.kind, at(i), at(first))) first = i;
        }
        best.push_back(first);
      }
    }
    store(r.out[0], best);
  });
}

// The smallest coordinate among those that hold the extreme value.
Value arg_reduce_definition(const ArgReduceAttrs& a, const DefineArgs& d) {
  const Value x = d[0];
  const Index axis = x.type().axis(a.axis);
  const Value extreme = reduce(x, {a.kind == ArgKind::max ? ReduceKind::max : ReduceKind::min, {axis}, true});
  const Value hit = select(not_equal(extreme, extreme), not_equal(x, x), equal(x, extreme));
  const Value at = iota(*x.builder, DType::i64, x.type().dims, axis);
  const Value behind = like(at, static_cast<double>(unbounded));
  return min(select(hit, at, behind), {axis}, a.keep);
}

std::vector<Case<ArgReduceAttrs>> arg_reduce_cases() {
  using enum ArgKind;
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), z = Dim::symbol("Z", 0, 8);
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<Case<ArgReduceAttrs>> cases;
  const auto add = [&](ArgReduceAttrs a, CaseInput x, std::vector<double> out) {
    cases.push_back(
        {a, {.inputs = {std::move(x)}, .expected = {std::move(out)}, .tolerance = exact, .gradient = false}});
  };
  const CaseInput six = CaseInput(DType::f32, {2, 3}).filled({3, 1, 3, 0, 5, -1});
  add({max, 1, false}, six, {0, 1});
  add({min, 1, true}, six, {1, 2});
  add({max, 0, false}, six, {0, 1, 0});
  add({min, -2, true}, six, {1, 0, 1});
  const CaseInput special =
      CaseInput(DType::f32, {5, 3}).filled({1, nan, nan, nan, inf, 2, -inf, -inf, -inf, 0.0, -0.0, 0, inf, 7, inf});
  add({max, 1, false}, special, {1, 0, 0, 0, 0});
  add({min, 1, false}, special, {1, 0, 0, 0, 1});
  add({max, 0, false}, CaseInput(DType::f32, {1}).filled({-inf}), {0});
  add({max, 0, false}, CaseInput(DType::i64, {3}).filled({16777216, 16777217, 5}), {1});
  add({min, 0, false}, CaseInput(DType::i32, {3}).filled({2, -7, -7}), {1});
  cases.back().common.other_dtypes = false;
  add({max, 0, false}, CaseInput(DType::u64, {2}).filled({5, 9223372036854775808.0}), {1});
  add({max, 1, false}, CaseInput(DType::f32, {0, 3}), {});
  for (const ArgKind kind : {max, min}) {
    const auto more = [&](Index axis, bool keep, CaseInput x) {
      cases.push_back({{kind, axis, keep}, {.inputs = {std::move(x)}, .tolerance = exact, .gradient = false}});
    };
    more(1, false, {DType::f32, {b, s, 3}});
    more(0, true, {DType::f32, {z, 5}});
    more(-1, false, {DType::f32, {7, 13}});
    more(1, true, CaseInput(DType::i32, {3, 11, 2}).range(0, 4));
  }
  return cases;
}

}  // namespace

constinit const Op<ArgReduceAttrs> arg_reduce_op{{
    .name = "arg_reduce",
    .doc =
        "Index, as i64, of the largest or smallest element along `axis`; of equal ones the first. The first NaN wins "
        "over all numbers. With `keep` the axis stays with size 1. Floats and integers of at least 8 bits; an axis "
        "without elements is an Error. No gradient.",
    .infer = arg_reduce_infer,
    .definition = arg_reduce_definition,
    .vjp = [](const ArgReduceAttrs&, const VjpArgs&) -> Grads { return {std::nullopt}; },
    .reference = arg_reduce_reference,
    .cases = arg_reduce_cases,
    .failures =
        [] {
          return std::vector<Failure<ArgReduceAttrs>>{
              {{ArgKind::max, 2}, {{DType::f32, {2, 3}}}, "axis 2 is out of range for rank 2"},
              {{ArgKind::max, 0}, {{DType::f32, {}}}, "axis 0 is out of range for rank 0"},
              {{ArgKind::min, 0}, {{DType::f32, {0, 3}}}, "axis 0 of f32[0,3] has no elements"},
              {{ArgKind::max, 0}, {{DType::boolean, {3}}}, "element type bool[3] is not supported, cast first"},
              {{ArgKind::max, 0}, {{DType::c64, {3}}}, "element type c64[3] is not supported, cast first"},
              {{}, {}, "0 operands are given, expected 1"},
          };
        },
}};

Value argmax(Value x, Index axis, bool keep) {
  return x.builder->emit_one(arg_reduce_op, ArgReduceAttrs{ArgKind::max, axis, keep}, {x});
}
Value argmin(Value x, Index axis, bool keep) {
  return x.builder->emit_one(arg_reduce_op, ArgReduceAttrs{ArgKind::min, axis, keep}, {x});
}

std::span<const OpDef* const> arg_reduce_ops() {
  static constexpr const OpDef* ops[] = {&arg_reduce_op};
  return ops;
}

}  // namespace rlx
