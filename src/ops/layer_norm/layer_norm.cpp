// layer_norm and rms_norm: definitions, gradients and references over rows of the last axes.
#include "ops/layer_norm/layer_norm.h"

#include <cmath>
#include <numeric>

#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"

namespace rlx {

namespace {

// Sizes of a row: the normalised axes.
std::span<const Dim> row_dims(const NormAttrs& a, const TensorType& x) {
  return std::span(x.dims).subspan(static_cast<std::size_t>(x.axis(a.axis)));
}

std::vector<Index> row_axes(const NormAttrs& a, const TensorType& x) {
  std::vector<Index> axes(row_dims(a, x).size());
  std::iota(axes.begin(), axes.end(), x.axis(a.axis));
  return axes;
}

template <std::size_t most>
TensorType norm_infer(const NormAttrs& a, InferContext& c) {
  require(!c.in.empty() && c.in.size() <= most, "{} operands are given, expected 1 to {}", c.in.size(), most);
  const TensorType& x = c.in[0];
  require(!x.encoding && is_arithmetic_float(x.dtype), "x is {}, expected f64, f32, f16 or bf16", x.text());
  require(std::isfinite(a.epsilon) && a.epsilon >= 0, "epsilon is {}, expected 0 or more", a.epsilon);
  const std::span<const Dim> row = row_dims(a, x);
  require(product(row).bounds().hi > 0, "a row of {} from axis {} on has no elements", x.text(), a.axis);
  for (std::size_t i = 1; i < c.in.size(); ++i) {
    const TensorType& p = c.in[i];
    const char* what = i == 1 ? "gamma" : "beta";
    require(!p.encoding && p.dtype == x.dtype, "{} is {}, expected element type {} as x", what, p.text(),
            name(x.dtype));
    require(p.dims.size() == row.size(), "{} is {}, expected the sizes {} of the normalised axes", what, p.text(),
            text(row));
    for (std::size_t k = 0; k < row.size(); ++k) c.equal(p.dims[k], row[k], what);
  }
  return x;
}

Value affine(Value y, std::span<const Value> in) {
  if (in.size() > 1) y = y * in[1];
  return in.size() > 2 ? y + in[2] : y;
}

Value layer_norm_definition(const NormAttrs& a, const DefineArgs& d) {
  const std::vector<Index> axes = row_axes(a, d[0].type());
  const Value centred = d[0] - mean(d[0], axes, true), variance = mean(centred * centred, axes, true);
  return affine(centred / sqrt(variance + like(variance, a.epsilon)), d.in);
}

Value rms_norm_definition(const NormAttrs& a, const DefineArgs& d) {
  const Value square = mean(d[0] * d[0], row_axes(a, d[0].type()), true);
  return affine(d[0] / sqrt(square + like(square, a.epsilon)), d.in);
}

// With the normalised row h = z r, z = x (less its mean, if `centre`), r = 1 / sqrt(mean(z^2) + epsilon), g = u gamma:
// dx = r (g - h mean(h g)), less its mean, if `centre`; dgamma = sum of u h; dbeta = sum of u. Halves in f32.
template <bool centre>
Grads norm_vjp(const NormAttrs& a, const VjpArgs& v) {
  const std::vector<Index> axes = row_axes(a, v.in[0].type());
  const DType to = v.in[0].dtype();
  const Value x = widen(v.in[0]), u = widen(v.dout()), z = centre ? x - mean(x, axes, true) : x;
  const Value square = mean(z * z, axes, true), r = rsqrt(square + like(square, a.epsilon)), h = z * r;
  const Value g = v.in.size() > 1 ? u * widen(v.in[1]) : u;
  Value inner = g - h * mean(g * h, axes, true);
  if (centre) inner = inner - mean(g, axes, true);
  Grads grads{cast(r * inner, to)};
  if (v.in.size() > 1) grads.emplace_back(cast(sum_to(u * h, v.in[1].type().dims), to));
  if (v.in.size() > 2) grads.emplace_back(cast(sum_to(u, v.in[2].type().dims), to));
  return grads;
}

// One row after the other in f64, mean first, then the variance around it.
template <bool centre>
void norm_reference(const NormAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  std::size_t n = 1;
  for (std::size_t i = static_cast<std::size_t>(r.in[0].type().axis(a.axis)); i < r.in[0].shape().size(); ++i) {
    n *= static_cast<std::size_t>(r.in[0].shape()[i]);
  }
  std::vector<double> x = load<double>(r.in[0]);
  const std::vector<double> gamma = r.in.size() > 1 ? load<double>(r.in[1]) : std::vector<double>(n, 1.0);
  const std::vector<double> beta = r.in.size() > 2 ? load<double>(r.in[2]) : std::vector<double>(n, 0.0);
  const auto count = static_cast<double>(n);
  for (std::size_t begin = 0; begin < x.size(); begin += n) {
    const std::span row(x.data() + begin, n);
    const double middle = centre ? std::accumulate(row.begin(), row.end(), 0.0) / count : 0.0;
    double square = 0;
    for (const double e : row) square += (e - middle) * (e - middle);
    const double deviation = std::sqrt(square / count + a.epsilon);
    for (std::size_t i = 0; i < n; ++i) row[i] = (row[i] - middle) / deviation * gamma[i] + beta[i];
  }
  store(r.out[0], x);
}

// Cases of both ops; `most` operands.
std::vector<Case<NormAttrs>> norm_cases(std::size_t most) {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), h = Dim::symbol("H", 1, 8);
  std::vector<Case<NormAttrs>> cases;
  const auto add = [&](NormAttrs attrs, std::vector<Dim> dims, DimEnv env = {}) {
    const TensorType x(DType::f32, std::move(dims));
    const std::span<const Dim> row = row_dims(attrs, x);
    CaseCommon common{.inputs = {x}, .tolerance = relative(2e-6), .dims = std::move(env)};
    for (std::size_t i = 0; i < most; ++i) {
      cases.push_back({attrs, common});
      common.inputs.emplace_back(DType::f32, std::vector<Dim>(row.begin(), row.end()));
    }
  };
  add({}, {2, 3, 5});
  add({-1, 1e-12}, {3, 8});
  add({1}, {2, 3, 4});
  add({0}, {7});
  add({0, 0.1}, {2, 3});
  add({}, {b, s, 6}, {{"S", 3}});
  add({-2}, {b, s, h}, {{"S", 3}, {"H", 4}});
  add({}, {b, h}, {{"H", 5}});
  add({}, {13, 31});
  add({}, {0, 4});
  add({-1, 0.5}, {3, 1});
  return cases;
}

CaseInput row_of(std::vector<double> values) {
  const auto n = static_cast<Index>(values.size());
  return CaseInput(DType::f32, {n}).filled(std::move(values));
}

std::vector<Case<NormAttrs>> layer_norm_cases() {
  std::vector<Case<NormAttrs>> cases = norm_cases(3);
  const double outer = 1.3416353986, inner = 0.4472117995;  // 1.5 and 0.5 over sqrt(1.25001)
  cases.push_back({{-1, 1e-5},
                   {.inputs = {row_of({10000, 10001, 10002, 10003})},
                    .expected = {{-outer, -inner, inner, outer}},
                    .gradient_bound = 1e-5,
                    .other_dtypes = false}});
  cases.push_back({{-1, 1e-5},
                   {.inputs = {row_of({0, 1, 2, 3}), row_of({2, 1, -1, 1}), row_of({1, 0, 0, 10})},
                    .expected = {{1 - 2 * outer, -inner, -inner, 10 + outer}}}});
  cases.push_back({{-1, 1e-5}, {.inputs = {row_of({5, 5, 5})}, .expected = {{0, 0, 0}}, .gradient = false}});
  return cases;
}

std::vector<Case<NormAttrs>> rms_norm_cases() {
  std::vector<Case<NormAttrs>> cases = norm_cases(2);
  cases.push_back({{-1, 0}, {.inputs = {row_of({1, 7}), row_of({5, 10})}, .expected = {{1, 14}}}});
  cases.push_back({{-1, 1e-6}, {.inputs = {row_of({0, 0, 0})}, .expected = {{0, 0, 0}}, .gradient = false}});
  return cases;
}

std::vector<Failure<NormAttrs>> norm_failures() {
  const auto f = [](std::vector<Dim> dims) { return TensorType(DType::f32, std::move(dims)); };
  return {
      {{}, {}, "0 operands are given, expected 1 to"},
      {{2}, {f({2, 3})}, "axis 2 is out of range for rank 2"},
      {{}, {TensorType(DType::i32, {2, 3})}, "x is i32[2,3], expected f64, f32, f16 or bf16"},
      {{-1, -1.0}, {f({2, 3})}, "epsilon is -1, expected 0 or more"},
      {{}, {f({2, 0})}, "a row of f32[2,0] from axis -1 on has no elements"},
      {{}, {f({2, 3}), f({2})}, "gamma: 2 is not 3"},
      {{0}, {f({2, 3}), f({3})}, "gamma is f32[3], expected the sizes [2,3] of the normalised axes"},
      {{}, {f({2, 3}), TensorType(DType::f16, {3})}, "gamma is f16[3], expected element type f32 as x"},
  };
}

}  // namespace

constinit const Op<NormAttrs> layer_norm_op{{
    .name = "layer_norm",
    .doc =
        "Rows with mean 0 and variance 1: y = (x - mean) / sqrt(variance + `epsilon`) * gamma + beta. A row spans "
        "`axis` and all axes behind it (one inner axis alone: transpose it to the end); gamma and beta, which may "
        "be left out from the end, have the row's sizes. The variance is that of the population, taken around the "
        "mean in a second pass, so that rows far from 0 stay exact. f64, f32, f16, bf16, all operands alike. "
        "Gradients of all three operands, with statistics computed anew. Source: Ba, Kiros, Hinton, arXiv 1607.06450.",
    .infer = norm_infer<3>,
    .definition = layer_norm_definition,
    .vjp = norm_vjp<true>,
    .reference = norm_reference<true>,
    .cases = layer_norm_cases,
    .failures =
        [] {
          std::vector<Failure<NormAttrs>> all = norm_failures();
          const TensorType row(DType::f32, {3});
          all.push_back({{}, {{DType::f32, {2, 3}}, row, {DType::f32, {1}}}, "beta: 1 is not 3"});
          all.push_back({{}, {row, row, row, row}, "4 operands are given, expected 1 to 3"});
          return all;
        },
}};

constinit const Op<NormAttrs> rms_norm_op{{
    .name = "rms_norm",
    .doc = "Rows with mean square 1: y = x / sqrt(mean(x^2) + `epsilon`) * gamma. A row spans `axis` and all axes "
           "behind it; gamma, which may be left out, has the row's sizes. The mean is not subtracted. f64, f32, f16, "
           "bf16, both operands alike. Gradients of both operands. Source: Zhang, Sennrich, arXiv 1910.07467.",
    .infer = norm_infer<2>,
    .definition = rms_norm_definition,
    .vjp = norm_vjp<false>,
    .reference = norm_reference<false>,
    .cases = rms_norm_cases,
    .failures = norm_failures,
}};

Value layer_norm(Value x, NormAttrs attrs) { return x.builder->emit_one(layer_norm_op, attrs, {x}); }
Value layer_norm(Value x, Value gamma, NormAttrs attrs) {
  return x.builder->emit_one(layer_norm_op, attrs, {x, gamma});
}
Value layer_norm(Value x, Value gamma, Value beta, NormAttrs attrs) {
  return x.builder->emit_one(layer_norm_op, attrs, {x, gamma, beta});
}
Value rms_norm(Value x, NormAttrs attrs) { return x.builder->emit_one(rms_norm_op, attrs, {x}); }
Value rms_norm(Value x, Value gamma, NormAttrs attrs) { return x.builder->emit_one(rms_norm_op, attrs, {x, gamma}); }

std::span<const OpDef* const> layer_norm_ops() {
  static constexpr const OpDef* ops[] = {&layer_norm_op, &rms_norm_op};
  return ops;
}

}  // namespace rlx
