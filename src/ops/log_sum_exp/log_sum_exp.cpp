// log_sum_exp: definition, gradient and reference.
#include "ops/log_sum_exp/log_sum_exp.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/walk.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx {

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

std::vector<TensorType> log_sum_exp_infer(const LogSumExpAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(!x.encoding && is_arithmetic_float(x.dtype), "x is {}, expected f64, f32, f16 or bf16", x.text());
  return reduce_op.infer(Attrs(ReduceAttrs{ReduceKind::max, a.axes, a.keep}), c);
}

// What is subtracted before exp and added behind log: the largest element, or 0 where that is infinite and would make
// NaN of inf - inf. Reduced axes stay.
Value shift_of(Value x, const LogSumExpAttrs& a) {
  const Value top = max(x, a.axes, true);
  return select(less(abs(top), like(top, inf)), top, like(top, 0));
}

Value log_sum_exp_definition(const LogSumExpAttrs& a, const DefineArgs& d) {
  const Value shift = shift_of(d[0], a), total = log(sum(exp(d[0] - shift), a.axes, a.keep));
  return total + reshape(shift, total.type().dims);
}

// The derivative by an element is its weight in softmax. Not e^(x - y): where y is large, it is known to few digits
// behind the point. A sum of 0 means that every x is -inf.
Grads log_sum_exp_vjp(const LogSumExpAttrs& a, const VjpArgs& v) {
  const Value x = widen(v.in[0]), e = exp(x - shift_of(x, a)), total = sum(e, a.axes, true);
  const Value weight = e / select(equal(total, like(total, 0)), like(total, 1), total);
  return {cast(reshape(widen(v.dout()), total.type().dims) * weight, v.in[0].dtype())};
}

// log(e^a + e^b).
double log_add(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  const double top = std::max(a, b);
  return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(a, b) - top));
}

// One element after the other is added to its result, which starts as log(0).
void log_sum_exp_reference(const LogSumExpAttrs& a, const RefArgs& r) {
  std::vector<Index> kept = r.in[0].shape();
  for (const Index axis : a.axes) kept[static_cast<std::size_t>(r.in[0].type().axis(axis))] = 1;
  const std::vector<double> x = load<double>(r.in[0]);
  std::vector<double> y(static_cast<std::size_t>(r.out[0].count()), -inf);
  std::size_t i = 0;
  walk<1>(r.in[0].shape(), {broadcast_strides(kept, r.in[0].shape())}, [&](const auto& at) {
    double& result = y[static_cast<std::size_t>(at[0])];
    result = log_add(result, x[i++]);
  });
  store(r.out[0], y);
}

std::vector<Case<LogSumExpAttrs>> log_sum_exp_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16);
  const double ln2 = 0.6931471805599453, ln3 = 1.0986122886681098, ln6 = 1.791759469228055, nan = std::nan("");
  std::vector<Case<LogSumExpAttrs>> cases;
  const auto given = [&](LogSumExpAttrs a, std::vector<Dim> dims, std::vector<double> x, std::vector<double> y) {
    const bool gradient = std::ranges::all_of(x, [](double v) { return std::isfinite(v); });
    const CaseInput in = CaseInput(DType::f32, std::move(dims)).filled(std::move(x));
    cases.push_back({std::move(a), {.inputs = {in}, .expected = {std::move(y)}, .gradient = gradient}});
  };
  given({{0}}, {2}, {0, 0}, {ln2});
  given({{0}}, {3}, {0, ln2, ln3}, {ln6});
  given({{1}}, {2, 2}, {1000, 1000, -1000, -1000}, {1000 + ln2, -1000 + ln2});
  given({{-1, 0}, true}, {2, 2}, {5, 5, 5, 5}, {5 + 2 * ln2});
  given({{0}}, {2, 2}, {-inf, -inf, -inf, 3}, {-inf, 3});
  given({{1}}, {4, 2}, {inf, 1, inf, -inf, nan, 1, inf, nan}, {inf, inf, nan, nan});
  given({{1}}, {2, 0}, {}, {-inf, -inf});
  given({}, {3}, {-1, 0, 7}, {-1, 0, 7});
  const auto random = [&](LogSumExpAttrs a, std::vector<Dim> dims) {
    cases.push_back({std::move(a), {.inputs = {CaseInput(DType::f32, std::move(dims)).range(-4, 4)}}});
  };
  random({{0, 2}}, {2, 3, 4});
  random({{2, 0, 3}, true}, {2, 3, 4, 2});
  random({{1}, true}, {b, s, 3});
  random({{-2}}, {b, s, 3});
  random({}, {});
  return cases;
}

}  // namespace

constinit const Op<LogSumExpAttrs> log_sum_exp_op{{
    .name = "log_sum_exp",
    .doc = "Logarithm of the sum of exponentials over `axes`: y = m + log(sum of e^(x - m)), m the largest element, so "
           "that large elements do not overflow. With `keep` the reduced axes stay with size 1. NaN when an element is "
           "NaN, else +inf when one is +inf; -inf when all are -inf or there are none. f64, f32, f16, bf16. Gradient: "
           "the cotangent times softmax of x; 0 where y is -inf.",
    .infer = log_sum_exp_infer,
    .definition = log_sum_exp_definition,
    .vjp = log_sum_exp_vjp,
    .reference = log_sum_exp_reference,
    .cases = log_sum_exp_cases,
    .failures =
        [] {
          const TensorType x(DType::f32, {2, 3});
          return std::vector<Failure<LogSumExpAttrs>>{
              {{{2}}, {x}, "axis 2 is out of range for rank 2"},
              {{{1, -1}}, {x}, "axis -1 is listed twice"},
              {{{0}}, {{DType::i32, {2, 3}}}, "x is i32[2,3], expected f64, f32, f16 or bf16"},
              {{{0}}, {x, x}, "2 operands are given, expected 1"},
          };
        },
}};

Value log_sum_exp(Value x, std::vector<Index> axes, bool keep) {
  return x.builder->emit_one(log_sum_exp_op, LogSumExpAttrs{std::move(axes), keep}, {x});
}

std::span<const OpDef* const> log_sum_exp_ops() {
  static constexpr const OpDef* ops[] = {&log_sum_exp_op};
  return ops;
}

}  // namespace rlx
