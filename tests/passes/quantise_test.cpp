// quantise-products: which products become integers, what weights become, and how far results move.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/scalar/scalar.h"
#include "passes/passes.h"
#include "runtime/evaluate.h"

namespace rlx {
namespace {

Tensor wave(std::vector<Index> shape, double step) {
  Tensor t(DType::f32, std::move(shape));
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(step * static_cast<double>(i));
  store(t, v);
  return t;
}

Graph quantised(const Graph& g, CompileOptions options = {}, Report* report = nullptr) {
  const DeviceInfo device;
  Report unread;
  if (!options.matmul_dtype) options.matmul_dtype = DType::i8;
  PassContext context{device, options, report ? *report : unread};
  return quantise_products(lower_precision(g, context), context);
}

std::ptrdiff_t integer_products(const Graph& g) {
  return std::ranges::count_if(g.nodes, [](const Node& n) { return n.op == &matmul_integer_op; });
}

Graph product(const Tensor& w, MatmulAttrs attrs = {}) {
  Builder g;
  const Index inner = w.shape()[attrs.transpose_b ? 1 : 0];
  const Value x = g.input("x", {DType::f32, {Dim::symbol("B", 1, 8), inner}});
  return g.finish({matmul(x, constant(g, w), attrs)});
}

// Errors of a symmetric code are at most half a unit of its scale; here sums of 96 of both kinds.
TEST(QuantiseProducts, ResultsStayClose) {
  for (const bool transposed : {false, true}) {
    const Graph g = product(transposed ? wave({64, 96}, 0.7) : wave({96, 64}, 0.7), {false, transposed});
    const Graph q = quantised(g);
    EXPECT_EQ(integer_products(q), 1);
    const std::vector<Tensor> in{wave({5, 96}, 0.31)};
    const std::vector<double> want = load<double>(evaluate(g, in)[0]), got = load<double>(evaluate(q, in)[0]);
    double ab = 0, aa = 0, bb = 0, worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      ab += got[i] * want[i];
      aa += got[i] * got[i];
      bb += want[i] * want[i];
      worst = std::max(worst, std::fabs(got[i] - want[i]));
    }
    EXPECT_GT(ab / std::sqrt(aa * bb), 0.999);
    EXPECT_LT(worst, 96.0 / 127);  // both errors at their largest in every product
    EXPECT_GT(worst, 0);
  }
}

// Whole numbers up to 127, and those of a row from -100 to 155, are their own codes: nothing is lost.
TEST(QuantiseProducts, CodesOfWholeNumbersAreExact) {
  std::vector<double> w(64 * 64), x(3 * 64);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<double>(i * 37 % 255) - 127;
  for (std::size_t j = 0; j < 64; ++j) w[j] = j % 2 ? 127 : -127;
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i % 64 == 5 ? 155 : i % 64 == 6 ? -100 : static_cast<double>(i * 11 % 200) - 100;
  const Graph g = product(Tensor::of(DType::f32, {64, 64}, w));
  const std::vector<Tensor> in{Tensor::of(DType::f32, {3, 64}, x)};
  EXPECT_EQ(load<double>(evaluate(quantised(g), in)[0]), load<double>(evaluate(g, in)[0]));
}

TEST(QuantiseProducts, WhatIsSmallOrNotFiniteOrRefusedStays) {
  EXPECT_EQ(integer_products(quantised(product(wave({8, 1024}, 0.7)))), 0) << "short sums";
  EXPECT_EQ(integer_products(quantised(product(wave({32, 32}, 0.7)))), 0) << "few weights";
  Tensor w = wave({64, 64}, 0.7);
  std::vector<double> v = load<double>(w);
  v[70] = INFINITY;
  store(w, v);
  Report report;
  EXPECT_EQ(integer_products(quantised(product(w), {}, &report)), 0);
  EXPECT_NE(report.remarks[0].text.find("has weights that are not finite"), std::string::npos);
  std::string asked;
  CompileOptions options;
  options.quantise = [&](std::string_view name) {
    asked = name;
    return false;
  };
  EXPECT_EQ(integer_products(quantised(product(wave({64, 64}, 0.7)), options)), 0);
  EXPECT_NE(asked.find("matmul(f32[B,64], f32[64,64])"), std::string::npos) << asked;
}

TEST(QuantiseProducts, OnlyWhereAskedFor) {
  const Graph g = product(wave({64, 64}, 0.7));
  CompileOptions options;
  options.matmul_dtype = DType::bf16;
  EXPECT_EQ(integer_products(quantised(g, options)), 0);
  options.matmul_dtype = DType::i16;
  EXPECT_THROW(quantised(g, options), Error);
}

// A column of zeros has scale 0 and stays 0.
TEST(QuantiseProducts, AColumnOfZeros) {
  std::vector<double> v = load<double>(wave({64, 64}, 0.7));
  for (std::size_t i = 3; i < v.size(); i += 64) v[i] = 0;
  const Graph q = quantised(product(Tensor::of(DType::f32, {64, 64}, v)));
  const std::vector<double> y = load<double>(evaluate(q, std::vector<Tensor>{wave({2, 64}, 0.3)})[0]);
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(y[67], 0);
  EXPECT_NE(y[4], 0);
}

}  // namespace
}  // namespace rlx
