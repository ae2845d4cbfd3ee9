// Pitfalls of matrix products that cases cannot express.
#include <gtest/gtest.h>

#include <complex>

#include "autodiff/gradient.h"
#include "conformance.h"
#include "core/error.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/transpose/transpose.h"

namespace rlx::test {
namespace {

using Complex = std::complex<double>;

Tensor numbers(std::vector<Index> shape, unsigned seed, DType d = DType::f64) {
  std::vector<Dim> dims(shape.begin(), shape.end());
  return fill(CaseInput(d, dims), {}, seed);
}

// The product of two tensors by the op, operands as given.
Tensor product(const Tensor& a, const Tensor& b, MatmulAttrs attrs = {}) {
  Builder g;
  const Value x = g.input("a", a.type()), y = g.input("b", b.type()), c = matmul(x, y, attrs);
  const std::vector<Tensor> in{a, b};
  return evaluate(g.finish({c}), in)[0];
}

Tensor part(const Tensor& t, Index first, std::vector<Index> shape) {
  const std::vector<double> all = load<double>(t);
  Index n = 1;
  for (const Index e : shape) n *= e;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * n);
  return Tensor::of<double>(t.dtype(), std::move(shape), std::vector<double>(begin, begin + n));
}

TEST(Pitfalls, P21_OneMatrixServesTheWholeBatch) {
  for (const DType d : {DType::f32, DType::f64}) {
    const Tensor many = numbers({3, 2, 2}, 1, d), one = numbers({1, 2, 2}, 2, d), matrix = one.reshaped({2, 2});
    const Tensor right = product(many, one), left = product(one, many);
    for (Index i = 0; i < 3; ++i) {
      EXPECT_TRUE(identical(part(right, i, {2, 2}), product(part(many, i, {2, 2}), matrix)));
      EXPECT_TRUE(identical(part(left, i, {2, 2}), product(matrix, part(many, i, {2, 2}))));
    }
  }
}

TEST(Pitfalls, P22_EveryBatchHasItsOwnMatrix) {
  const Tensor q = numbers({2, 3, 4}, 3), k = numbers({2, 4, 3}, 4), scores = product(q, k);
  for (Index i = 0; i < 2; ++i) {
    EXPECT_TRUE(identical(part(scores, i, {3, 3}), product(part(q, i, {3, 4}), part(k, i, {4, 3}))));
  }
  const Tensor a = numbers({2, 2}, 5), b = numbers({3, 2, 4}, 6), c = product(a, b);
  ASSERT_EQ(c.shape(), (std::vector<Index>{3, 2, 4}));
  for (Index i = 0; i < 3; ++i) EXPECT_TRUE(identical(part(c, i, {2, 4}), product(a, part(b, i, {2, 4}))));
}

TEST(Pitfalls, P23_P24_FoldedTransposeEqualsTransposeThenProduct) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Tensor a = numbers(ta ? std::vector<Index>{3, 2} : std::vector<Index>{2, 3}, 7);
      const Tensor b = numbers(tb ? std::vector<Index>{5, 3} : std::vector<Index>{3, 5}, 8);
      Builder g;
      const Value x = g.input("a", a.type()), y = g.input("b", b.type());
      const Value c = matmul(ta ? transpose_last(x) : x, tb ? transpose_last(y) : y);
      const std::vector<Tensor> in{a, b};
      EXPECT_TRUE(identical(evaluate(g.finish({c}), in)[0], product(a, b, {ta, tb})));
    }
  }
}

TEST(Pitfalls, R16_InnerSizesMustAgree) {
  Builder g;
  const Value a = g.input("a", {DType::f32, {4, 8}}), b = g.input("b", {DType::f32, {9, 16}});
  EXPECT_THROW(matmul(a, b), Error);
}

// da = dc b^H: the change of Re(sum conj(w) c) under a step of each part of each element.
TEST(Matmul, ComplexGradientIsTheAdjoint) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Builder g;
      const Value a = g.input("a", {DType::c64, {2, 3, 3}}), b = g.input("b", {DType::c64, {3, 3}});
      const Graph forward = g.finish({matmul(a, b, {ta, tb})});
      std::vector<Tensor> in{numbers({2, 3, 3}, 9, DType::c64), numbers({3, 3}, 10, DType::c64)};
      const Tensor w = numbers({2, 3, 3}, 11, DType::c64);
      std::vector<Tensor> all = in;
      all.push_back(w);
      const std::vector<Tensor> grads = evaluate(gradient(forward), all);
      const auto loss = [&](const std::vector<Tensor>& at) {
        const auto c = load<Complex>(evaluate(forward, at)[0]), weight = load<Complex>(w);
        double total = 0;
        for (std::size_t i = 0; i < c.size(); ++i) total += (std::conj(weight[i]) * c[i]).real();
        return total;
      };
      for (std::size_t k = 0; k < 2; ++k) {
        const auto x = load<Complex>(in[k]), got = load<Complex>(grads[k]);
        for (std::size_t i = 0; i < x.size(); ++i) {
          double slopes[2];
          for (const int part : {0, 1}) {
            const Complex step = part == 0 ? Complex(0.5, 0) : Complex(0, 0.5);  // exact: the product is linear
            std::vector<Tensor> up = in, down = in;
            auto moved = x;
            moved[i] = x[i] + step;
            store(up[k], moved);
            moved[i] = x[i] - step;
            store(down[k], moved);
            slopes[part] = loss(up) - loss(down);
          }
          EXPECT_NEAR(got[i].real(), slopes[0], 1e-4);
          EXPECT_NEAR(got[i].imag(), slopes[1], 1e-4);
        }
      }
    }
  }
}

TEST(Matmul, VectorsAreRowsAndColumns) {
  const Tensor v = Tensor::of<double>(DType::f32, {3}, {1, 2, 3});
  const Tensor m = Tensor::of<double>(DType::f32, {3, 2}, {1, 0, 2, 1, 0, 3});
  EXPECT_EQ(load<double>(product(v, m)), (std::vector<double>{5, 11}));
  EXPECT_EQ(load<double>(product(m.reshaped({2, 3}), v)), (std::vector<double>{7, 10}));
  const Tensor dot = product(v, v);
  EXPECT_EQ(dot.rank(), 0);
  EXPECT_EQ(load<double>(dot), std::vector<double>{14});
  Builder g;
  const Value x = g.input("x", {DType::f32, {3}}), s = g.input("s", {DType::f32, {}});
  EXPECT_THROW(matmul(x, s), Error);
  EXPECT_THROW(matmul(x, x, {true, false}), Error);
}

// One sum an element, over ascending k: the other rows and columns do not matter.
TEST(Matmul, AnElementDependsOnItsRowAndColumnOnly) {
  const Tensor a = numbers({7, 29}, 12, DType::f32), b = numbers({29, 9}, 13, DType::f32), c = product(a, b);
  for (Index i = 0; i < 7; ++i) {
    EXPECT_TRUE(identical(part(c, i, {1, 9}), product(part(a, i, {1, 29}), b)));
  }
}

}  // namespace
}  // namespace rlx::test
