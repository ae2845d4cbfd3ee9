// softmax and log_softmax: definitions, gradients and references.
#include "ops/softmax/softmax.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/walk.h"
#include "ops/cast/cast.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"

namespace rlx {

namespace {

TensorType softmax_infer(const SoftmaxAttrs& a, Types in) {
  require(in.size() == 1, "{} operands are given, expected 1", in.size());
  require(!in[0].encoding && is_arithmetic_float(in[0].dtype), "x is {}, expected f64, f32, f16 or bf16", in[0].text());
  in[0].axis(a.axis);
  return in[0];
}

Value softmax_definition(const SoftmaxAttrs& a, const DefineArgs& d) {
  const Value e = exp(d[0] - max(d[0], {a.axis}, true));
  return e / sum(e, {a.axis}, true);
}

Value log_softmax_definition(const SoftmaxAttrs& a, const DefineArgs& d) {
  const Value below = d[0] - max(d[0], {a.axis}, true);
  return below - log(sum(exp(below), {a.axis}, true));
}

Grads softmax_vjp(const SoftmaxAttrs& a, const VjpArgs& v) {
  const Value y = widen(v.out[0]), weighted = widen(v.dout()) * y;
  return {cast(weighted - y * sum(weighted, {a.axis}, true), v.in[0].dtype())};
}

Grads log_softmax_vjp(const SoftmaxAttrs& a, const VjpArgs& v) {
  const Value u = widen(v.dout());
  return {cast(u - exp(widen(v.out[0])) * sum(u, {a.axis}, true), v.in[0].dtype())};
}

template <bool logarithm>
void softmax_reference(const SoftmaxAttrs& a, const RefArgs& r) {
  const AxisSplit s = split_at(r.in[0].shape(), r.in[0].type().axis(a.axis));
  std::vector<double> x = load<double>(r.in[0]);
  if (x.empty()) return;  // other extents may be enormous
  for (Index row = 0; row < s.outer * s.inner; ++row) {
    double* first = x.data() + row / s.inner * s.extent * s.inner + row % s.inner;
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    for (Index i = 0; i < s.extent; ++i) top = std::fmax(top, first[i * s.inner]);
    for (Index i = 0; i < s.extent; ++i) total += std::exp(first[i * s.inner] - top);
    for (Index i = 0; i < s.extent; ++i) {
      double& e = first[i * s.inner];
      e = logarithm ? e - top - std::log(total) : std::exp(e - top) / total;
    }
  }
  store(r.out[0], x);
}

CaseInput given(std::vector<Dim> dims, std::vector<double> values) {
  return CaseInput(DType::f32, std::move(dims)).filled(std::move(values));
}

std::vector<Case<SoftmaxAttrs>> common_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16);
  std::vector<Case<SoftmaxAttrs>> cases;
  const auto add = [&](Index axis, std::vector<Dim> dims, DimEnv env = {}) {
    cases.push_back({{axis},
                     {.inputs = {CaseInput(DType::f32, std::move(dims)).range(-4, 4)},
                      .tolerance = relative(2e-6),
                      .dims = std::move(env)}});
  };
  for (const Index axis : {0, 1, 2, -1, -2, -3}) add(axis, {2, 3, 5});
  add(0, {1});
  add(0, {31});
  add(-1, {b, s}, {{"S", 5}});
  add(0, {s, b}, {{"S", 5}});
  add(1, {2, s, b}, {{"S", 3}, {"B", 1}});
  add(0, {0, 3});
  add(1, {0, 3});
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  cases.push_back({{-1},
                   {.inputs = {given({4, 2}, {-inf, -inf, inf, 1, nan, 1, inf, inf})},
                    .expected = {std::vector<double>(8, nan)},
                    .gradient = false}});
  return cases;
}

std::vector<Case<SoftmaxAttrs>> softmax_cases() {
  std::vector<Case<SoftmaxAttrs>> cases = common_cases();
  const double e = 0.7310585786300049, inf = std::numeric_limits<double>::infinity();
  cases.push_back({{-1}, {.inputs = {given({2, 2}, {0, 0, 1, 0})}, .expected = {{0.5, 0.5, e, 1 - e}}}});
  cases.push_back({{1}, {.inputs = {given({1, 2, 2}, {1, 2, 0, 3})}, .expected = {{e, 1 - e, 1 - e, e}}}});
  cases.push_back({{0}, {.inputs = {given({3}, {200, 0, -200})}, .expected = {{1, 0, 0}}}});
  cases.push_back({{0}, {.inputs = {given({3}, {1, -inf, 0})}, .expected = {{e, 0, 1 - e}}}});
  return cases;
}

std::vector<Case<SoftmaxAttrs>> log_softmax_cases() {
  std::vector<Case<SoftmaxAttrs>> cases = common_cases();
  const double e = -0.3132616875182228, inf = std::numeric_limits<double>::infinity();  // log of 1 / (1 + 1/e)
  cases.push_back({{-1}, {.inputs = {given({2}, {1, 0})}, .expected = {{e, e - 1}}}});
  cases.push_back({{0}, {.inputs = {given({3}, {200, 0, -200})}, .expected = {{0, -200, -400}}}});
  cases.push_back({{0}, {.inputs = {given({3}, {1, -inf, 0})}, .expected = {{e, -inf, e - 1}}, .gradient = false}});
  return cases;
}

std::vector<Failure<SoftmaxAttrs>> softmax_failures() {
  const TensorType x(DType::f32, {2, 3});
  return {
      {{2}, {x}, "axis 2 is out of range for rank 2"},
      {{0}, {{DType::f32, {}}}, "axis 0 is out of range for rank 0"},
      {{0}, {{DType::i32, {2, 3}}}, "x is i32[2,3], expected f64, f32, f16 or bf16"},
      {{0}, {x, x}, "2 operands are given, expected 1"},
  };
}

}  // namespace

constinit const Op<SoftmaxAttrs> softmax_op{{
    .name = "softmax",
    .doc = "Exponentials along `axis`, divided by their sum: y = e^(x - m) / sum of e^(x - m), m the largest element, "
           "so that large elements do not overflow. An element of -inf gives 0; a row that holds NaN or +inf, or "
           "nothing but -inf, is NaN. f64, f32, f16, bf16. Gradient: y * (u - sum of u * y).",
    .infer = softmax_infer,
    .definition = softmax_definition,
    .vjp = softmax_vjp,
    .reference = softmax_reference<false>,
    .cases = softmax_cases,
    .failures = softmax_failures,
}};

constinit const Op<SoftmaxAttrs> log_softmax_op{{
    .name = "log_softmax",
    .doc = "Logarithm of softmax along `axis`: y = x - m - log(sum of e^(x - m)), m the largest element. An element of "
           "-inf gives -inf; a row that holds NaN or +inf, or nothing but -inf, is NaN. f64, f32, f16, bf16. Gradient: "
           "u - e^y * (sum of u).",
    .infer = softmax_infer,
    .definition = log_softmax_definition,
    .vjp = log_softmax_vjp,
    .reference = softmax_reference<true>,
    .cases = log_softmax_cases,
    .failures = softmax_failures,
}};

Value softmax(Value x, Index axis) { return x.builder->emit_one(softmax_op, SoftmaxAttrs{axis}, {x}); }
Value log_softmax(Value x, Index axis) { return x.builder->emit_one(log_softmax_op, SoftmaxAttrs{axis}, {x}); }

std::span<const OpDef* const> softmax_ops() {
  static constexpr const OpDef* ops[] = {&softmax_op, &log_softmax_op};
  return ops;
}

}  // namespace rlx
