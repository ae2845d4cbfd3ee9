// Known traps of elementwise functions: kinds that are confused, ties, second readers, complex numbers, gradients.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "conformance.h"
#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

using testing::ElementsAre;
using Complex = std::complex<double>;

struct Function {
  const char* name;
  Value (*build)(Value);
};
const Function functions[] = {
#define RLX_NAMED(Type, function) {#function, function},
    RLX_UNARY_ROWS(RLX_NAMED)
#undef RLX_NAMED
};

TEST(Pitfalls, P6_GradientsInF64OfEveryFunction) {
  // Rows of 3 x 7, away from every kink; only positive numbers where the function asks for them.
  for (const Function& f : functions) {
    const std::string name = f.name;
    const bool positive = name == "log" || name == "sqrt" || name == "rsqrt" || name == "log1p" || name == "reciprocal";
    const double top = name == "tan" ? 1.2 : 3.9;  // before the pole
    const Tensor x = fill(CaseInput(DType::f64, {3, 7}).range(positive ? 0.3 : -top, top).kinks(0.1), {}, 3);
    const Graph g = graph_of({x}, [&](const Values& v) {
      const Value y = f.build(v[0]);
      return sum(y * y, {0, 1});
    });
    std::string where;
    const double worst = gradient_error(g, {x}, {}, where);
    EXPECT_LE(worst, 1e-8) << name << ": " << where;
    const std::vector<double> slope = reals(pull_back(g, {x}, {floats({}, {1}, DType::f64)})[0]);
    const bool flat = name == "round" || name == "floor" || name == "ceil" || name == "trunc" || name == "sign";
    double largest = 0;
    for (const double s : slope) largest = std::max(largest, std::fabs(s));
    EXPECT_EQ(largest == 0, flat) << name;
  }
  const Tensor x = floats({5}, {-2, -0.5, 0, 1.5, 3}, DType::f64);  // by hand: 2 relu(x)
  const Graph g = graph_of({x}, [](const Values& v) { return sum(relu(v[0]) * relu(v[0]), {0}); });
  EXPECT_THAT(reals(pull_back(g, {x}, {floats({}, {1}, DType::f64)})[0]), ElementsAre(0, 0, 0, 3, 6));
}

TEST(Pitfalls, P30_TheTwoGeluFormsStayApart) {
  for (const DType d : {DType::f32, DType::f64}) {
    const double bound = d == DType::f32 ? 3e-7 : 5e-8;  // the numbers have eight digits
    const Tensor x = floats({3, 5}, std::vector<double>(15, 2.0), d),
                 u = floats({3, 5}, std::vector<double>(15, 1.0), d);
    const Graph g = graph_of({x}, [](const Values& v) { return Values{gelu(v[0]), gelu_tanh(v[0])}; });
    const std::vector<Tensor> y = run_graph(g, {x});
    expect_near(y[0], std::vector<double>(15, 1.9544997), bound);
    expect_near(y[1], std::vector<double>(15, 1.9545977), bound);
    const Tensor none = floats({3, 5}, std::vector<double>(15, 0.0), d);
    expect_near(pull_back(g, {x}, {u, none})[0], std::vector<double>(15, 1.0852318), bound);
    expect_near(pull_back(g, {x}, {none, u})[0], std::vector<double>(15, 1.0860993), bound);
    // Behind a product and a bias: 1 * 1 + 1 = 2.
    const std::vector<Tensor> operands{floats({3, 1}, {1, 1, 1}, d), floats({1, 5}, {1, 1, 1, 1, 1}, d),
                                       floats({5}, {1, 1, 1, 1, 1}, d)};
    const std::vector<Tensor> layer = run_all(operands, [](const Values& v) {
      const Value z = matmul(v[0], v[1]) + v[2];
      return Values{gelu(z), gelu_tanh(z)};
    });
    EXPECT_TRUE(identical(layer[0], y[0]));
    EXPECT_TRUE(identical(layer[1], y[1]));
  }
}

TEST(Pitfalls, P31_TiesRoundToEven) {
  for (const DType d : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor x = floats({7}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5}, d);
    const std::vector<Tensor> out =
        run_all({x}, [](const Values& v) { return Values{round(v[0]), round(v[0] + v[0]) - round(v[0])}; });
    EXPECT_THAT(reals(out[0]), ElementsAre(0, 2, 2, -0.0, -2, -2, 4));
    EXPECT_TRUE(std::signbit(reals(out[0])[3]));
    EXPECT_FALSE(std::signbit(reals(out[0])[0]));
    EXPECT_THAT(reals(out[1]), ElementsAre(1, 1, 3, -1, -1, -3, 3));
  }
}

TEST(Pitfalls, P33_AnOperandWithAnotherReaderStaysWhole) {
  for (const DType d : {DType::f32, DType::f64}) {
    const Tensor x = floats({7}, {-3, -2, -1, 0, 1, 2, 3}, d), before = floats({7}, reals(x), d);
    const Graph g = graph_of({x}, [](const Values& v) {
      const Value twice = v[0] + v[0], y = relu(twice);
      return Values{v[0], twice, y, twice + y, v[0] + relu(v[0])};
    });
    const std::vector<Tensor> out = run_graph(g, {x});
    EXPECT_TRUE(identical(x, before));
    EXPECT_TRUE(identical(out[0], before));
    EXPECT_THAT(reals(out[1]), ElementsAre(-6, -4, -2, 0, 2, 4, 6));
    EXPECT_THAT(reals(out[2]), ElementsAre(0, 0, 0, 0, 2, 4, 6));
    EXPECT_THAT(reals(out[3]), ElementsAre(-6, -4, -2, 0, 4, 8, 12));
    EXPECT_THAT(reals(out[4]), ElementsAre(-3, -2, -1, 0, 2, 4, 6));
    const Tensor zero(d, {7}), one = floats({7}, std::vector<double>(7, 1.0), d);
    const Tensor slope = pull_back(g, {x}, {zero, zero, zero, one, one})[0];
    EXPECT_THAT(reals(slope), ElementsAre(3, 3, 3, 3, 6, 6, 6));  // x is read again by the gradient
  }
}

TEST(Pitfalls, P34_EveryNodeOfAChainIsComputed) {
  for (const DType d : {DType::f32, DType::f64, DType::i64}) {
    const Tensor a = counted({3, 5}, 1, 1, d), b = counted({3, 5}, 100, 1, d);
    const std::vector<Tensor> out = run_all({a, b}, [](const Values& v) {
      const Value s1 = v[0] + v[1], s2 = s1 + v[1], s3 = s2 + s1, s4 = s3 + v[0];
      return Values{s1, s2, s3, s4};
    });
    for (std::size_t i = 0; i < 15; ++i) {
      const double x = static_cast<double>(i) + 1, y = static_cast<double>(i) + 100;
      const double want[] = {x + y, x + 2 * y, 2 * x + 3 * y, 3 * x + 3 * y};
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(reals(out[k])[i], want[k]) << k << " " << i;
    }
  }
}

Tensor complexes(const std::vector<Complex>& z) {
  return Tensor::of<Complex>(DType::c64, {static_cast<Index>(z.size())}, z);
}

TEST(Pitfalls, P26_LengthsOfComplexTensorsAreInElements) {
  const std::vector<Complex> z{{1, 2}, {-0.5, 0.25}, {0, -1}, {2, 0}, {-1, -1}};
  const Complex w(3, -2);
  const std::vector<Tensor> out = run_all({complexes(z), complexes({w})}, [](const Values& v) {
    return Values{conj(v[0]), exp(v[0]), v[0] * v[1], v[1] * v[0]};
  });
  for (const Tensor& t : out) EXPECT_EQ(t.bytes().size(), 40u);
  for (std::size_t i = 0; i < 5; ++i) {
    const Complex e = std::exp(z[i].real()) * Complex(std::cos(z[i].imag()), std::sin(z[i].imag()));
    EXPECT_EQ(load<Complex>(out[0])[i], std::conj(z[i]));
    EXPECT_LT(std::abs(load<Complex>(out[1])[i] - e), 1e-6);
    EXPECT_LT(std::abs(load<Complex>(out[2])[i] - z[i] * w), 1e-6);
    EXPECT_EQ(load<Complex>(out[2])[i], load<Complex>(out[3])[i]);
  }
  Builder b;
  const Value x = b.input("x", {DType::c64, {5}}), y = b.input("y", {DType::c64, {1}});
  EXPECT_THROW(maximum(x, y), Error);
  EXPECT_THROW(minimum(x, y), Error);
  EXPECT_THROW(pow(x, y), Error);
  EXPECT_THROW(tanh(x), Error);
  EXPECT_THROW(less(x, y), Error);
}

TEST(Pitfalls, P27_GradientsOfComplexNumbers) {
  // |z|^2: the gradient is d/dre + i d/dim = 2 z.
  const auto norm = [](Value z) { return cast(z * conj(z), DType::f32); };
  const Graph g = graph_of({complexes({{3, 4}})}, [&](const Values& v) { return norm(v[0]); });
  EXPECT_EQ(reals(run_graph(g, {complexes({{3, 4}})})[0]), std::vector<double>{25});
  EXPECT_EQ(load<Complex>(pull_back(g, {complexes({{3, 4}})}, {floats({1}, {1})})[0])[0], Complex(6, 8));
  // |w z + conj z|^2 against differences, which are exact for a quadratic function of small whole numbers.
  const std::vector<Complex> zs{{3, 4}, {-2, 1}, {0, 2}}, ws{{1, -2}, {2, 3}, {-1, 1}};
  const Graph chain =
      graph_of({complexes(zs), complexes(ws)}, [&](const Values& v) { return norm(v[1] * v[0] + conj(v[0])); });
  const std::vector<Tensor> got =
      pull_back(chain, {complexes(zs), complexes(ws)}, {floats({3}, std::vector<double>(3, 1.0))});
  const auto loss = [](Complex z, Complex w) { return std::norm(w * z + std::conj(z)); };
  for (std::size_t i = 0; i < 3; ++i) {
    const Complex z = zs[i], w = ws[i], im(0, 1);
    EXPECT_EQ(load<Complex>(got[0])[i],
              Complex((loss(z + 1.0, w) - loss(z - 1.0, w)) / 2, (loss(z + im, w) - loss(z - im, w)) / 2));
    EXPECT_EQ(load<Complex>(got[1])[i],
              Complex((loss(z, w + 1.0) - loss(z, w - 1.0)) / 2, (loss(z, w + im) - loss(z, w - im)) / 2));
  }
}

TEST(Pitfalls, R20_ValuesAndSlopesAtKnownPoints) {
  for (const DType d : {DType::f32, DType::f64}) {
    const auto slope = [d](Value (*f)(Value), const std::vector<double>& at) {
      const auto n = static_cast<Index>(at.size());
      const Tensor x = floats({n}, at, d), u = floats({n}, std::vector<double>(at.size(), 1.0), d);
      return pull_back(graph_of({x}, [f](const Values& v) { return f(v[0]); }), {x}, {u})[0];
    };
    const auto gelu_of = [](const Values& v) { return gelu(v[0]); };
    expect_near(run({floats({1}, {1}, d)}, gelu_of), {0.8413447}, 2e-7);
    const std::vector<double> at{0, 0.5, -1, 1.25};
    std::vector<double> want;
    for (const double x : at) want.push_back(1 + std::tan(x) * std::tan(x));
    expect_near(slope(tan, at), want, d == DType::f32 ? 2e-6 : 1e-14);
    EXPECT_THAT(reals(slope(abs, {-2, -0.0, 0, 3})), ElementsAre(-1, 0, 0, 1));
    EXPECT_THAT(reals(slope(relu, {-2, 0, 3})), ElementsAre(0, 0, 1));
    EXPECT_THAT(reals(slope(round, {-2.5, 0.5, 3.2})), ElementsAre(0, 0, 0));
  }
}

}  // namespace
}  // namespace rlx::test
