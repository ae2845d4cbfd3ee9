// fft: the transform is a product with a matrix of roots of unity.
#include "ops/fft/fft.h"

#include <cmath>
#include <complex>
#include <numbers>

#include "core/error.h"
#include "core/walk.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

TensorType fft_infer(const FftAttrs&, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(is_arithmetic_float(x.dtype) && !x.encoding, "element type {} is not supported, cast first", x.text());
  require(x.rank() >= 2, "operand is {}, expected rank 2 or more", x.text());
  c.equal(x.dim(-1), 2, "parts of a complex number");
  return x;
}

void fft_reference(const FftAttrs& a, const RefArgs& r) {
  const auto& shape = r.in[0].shape();
  const Index n = shape[shape.size() - 2], rows = n == 0 ? 0 : r.in[0].count() / (2 * n);
  const std::vector<double> x = load<double>(r.in[0]);
  std::vector<double> y(x.size());
  std::vector<std::complex<long double>> roots;
  for (Index k = 0; k < n; ++k) {
    const long double turn = static_cast<long double>(k) / static_cast<long double>(n);
    const long double angle = (a.inverse ? 2 : -2) * std::numbers::pi_v<long double> * turn;
    roots.emplace_back(std::cos(angle), std::sin(angle));
  }
  for (Index o = 0; o < rows; ++o) {
    const double* from = x.data() + o * 2 * n;
    for (Index k = 0; k < n; ++k) {
      long double re = 0, im = 0;
      for (Index i = 0; i < n; ++i) {
        const std::complex<long double> w = roots[static_cast<std::size_t>(i * k % n)];
        re += w.real() * from[2 * i] - w.imag() * from[2 * i + 1];
        im += w.imag() * from[2 * i] + w.real() * from[2 * i + 1];
      }
      y[static_cast<std::size_t>((o * n + k) * 2)] = static_cast<double>(re);
      y[static_cast<std::size_t>((o * n + k) * 2 + 1)] = static_cast<double>(im);
    }
  }
  store(r.out[0], y);
}

// Quadratic in the length.
Value fft_definition(const FftAttrs& a, const DefineArgs& d) {
  const Value x = d[0];
  Builder& b = *x.builder;
  const Dim& n = x.dim(-2);
  const Value count = reshape(sizes(b, {n}), {});
  const Value product = iota(b, DType::i64, {n, n}, 0) * iota(b, DType::i64, {n, n}, 1);
  const Value turn = cast(fmod(product, maximum(count, like(count, 1))), DType::f64) / cast(count, DType::f64);
  const Value angle = turn * like(turn, (a.inverse ? 2 : -2) * std::numbers::pi);
  const Value c = cast(cos(angle), x.dtype()), s = cast(sin(angle), x.dtype());
  const Value re = slice(x, -1, 0, 1), im = slice(x, -1, 1, 2);
  return concat({matmul(c, re) - matmul(s, im), matmul(s, re) + matmul(c, im)}, -1);
}

std::vector<Case<FftAttrs>> fft_cases() {
  const Dim b = Dim::symbol("B", 1, 8), n = Dim::symbol("N", 1, 64);
  std::vector<Case<FftAttrs>> cases;
  const auto add = [&](bool inverse, CaseInput x, std::vector<double> out) {
    cases.push_back({{inverse},
                     {.inputs = {std::move(x)},
                      .expected = {std::move(out)},
                      .tolerance = relative(2e-6, "the definition sums in one order, products of roots another"),
                      .expected_tolerance = relative(1e-6)}});
  };
  add(false, CaseInput(DType::f32, {4, 2}).filled({1, 0, 2, 0, 3, 0, 4, 0}), {10, 0, -2, 2, -2, 0, -2, -2});
  add(true, CaseInput(DType::f32, {4, 2}).filled({1, 0, 2, 0, 3, 0, 4, 0}), {10, 0, -2, -2, -2, 0, -2, 2});
  add(false, CaseInput(DType::f32, {2, 1, 2}).filled({5, 7, -1, 2}), {5, 7, -1, 2});
  add(false, CaseInput(DType::f32, {2, 2}).filled({0, 1, 0, 3}), {0, 4, 0, -2});
  add(false, CaseInput(DType::f32, {3, 0, 2}), {});
  add(false, CaseInput(DType::f32, {0, 4, 2}), {});
  for (const bool inverse : {false, true}) {
    for (const Index length : {3, 5, 6, 7, 8, 12, 16, 30, 37, 45, 64, 74, 97}) {
      cases.push_back({{inverse},
                       {.inputs = {{DType::f32, {2, length, 2}}},
                        .tolerance = relative(4e-6, "sums of up to 97 products in f32, in another order")}});
      cases.back().common.gradient = length < 9;
    }
    cases.push_back(
        {{inverse}, {.inputs = {{DType::f32, {b, 3, n, 2}}}, .tolerance = relative(2e-6), .dims = {{"N", 9}}}});
  }
  return cases;
}

}  // namespace

constinit const Op<FftAttrs> fft_op{{
    .name = "fft",
    .doc = "Discrete Fourier transform along the last axis but one: y_k is the sum of x_n e^(-2 pi i n k / N), with "
           "`inverse` of x_n e^(2 pi i n k / N); nothing is divided by N. The last axis, of size 2, holds real and "
           "imaginary parts. Any length; floats of at least 16 bits; on the CPU computed in f64, inverse transforms of "
           "f32 "
           "and halves in f32. Gradient: the transform of the cotangent in the "
           "other direction.",
    .infer = fft_infer,
    .definition = fft_definition,
    .vjp = [](const FftAttrs& a, const VjpArgs& v) -> Grads { return {fft(v.dout(), !a.inverse)}; },
    .reference = fft_reference,
    .cases = fft_cases,
    .failures =
        [] {
          return std::vector<Failure<FftAttrs>>{
              {{}, {}, "0 operands are given, expected 1"},
              {{}, {{DType::i32, {4, 2}}}, "element type i32[4,2] is not supported, cast first"},
              {{}, {{DType::f32, {2}}}, "operand is f32[2], expected rank 2 or more"},
              {{}, {{DType::f32, {4, 3}}}, "parts of a complex number: 3 is not 2"},
          };
        },
}};

Value fft(Value x, bool inverse) { return x.builder->emit_one(fft_op, FftAttrs{inverse}, {x}); }

std::span<const OpDef* const> fft_ops() {
  static constexpr const OpDef* ops[] = {&fft_op};
  return ops;
}

}  // namespace rlx
