// Pitfalls of rotary embeddings that cases cannot express.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/gradient.h"
#include "conformance.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"
#include "ops/transpose/transpose.h"

namespace rlx::test {
namespace {

using enum RopePairing;

Tensor numbers(std::vector<Index> shape, unsigned seed) {
  std::vector<Dim> dims(shape.begin(), shape.end());
  return fill(CaseInput(DType::f64, dims), {}, seed);
}

Graph graph_of(const RopeAttrs& a, const std::vector<Tensor>& in) {
  Builder g;
  const Value x = g.input("x", in[0].type()), c = g.input("cos", in[1].type()), s = g.input("sin", in[2].type());
  return g.finish({rope(x, c, s, a)});
}

Tensor rotated(const RopeAttrs& a, const std::vector<Tensor>& in) { return evaluate(graph_of(a, in), in)[0]; }

// Gradient of x under the cotangent u.
Tensor pulled_back(const RopeAttrs& a, std::vector<Tensor> in, const Tensor& u) {
  const Graph backward = gradient(graph_of(a, in));
  in.push_back(u);
  return evaluate(backward, in)[0];
}

// Cosines and sines of (position + 1) * (column + 1) / 7.
std::vector<Tensor> tables(std::vector<Index> shape) {
  Tensor c(DType::f64, shape), s(DType::f64, shape);
  std::vector<double> cosines, sines;
  for (Index i = 0; i < c.count(); ++i) {
    const Index row = i / shape.back(), column = i % shape.back();
    const double angle = static_cast<double>((row + 1) * (column + 1)) / 7;
    cosines.push_back(std::cos(angle));
    sines.push_back(std::sin(angle));
  }
  store(c, cosines);
  store(s, sines);
  return {c, s};
}

double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = load<double>(a), y = load<double>(b);
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += x[i] * y[i];
  return total;
}

TEST(Pitfalls, P53_PositionsRunAlongTheAxisBeforeTheLast) {
  const std::vector<Tensor> t = tables({5, 4});
  const std::vector<double> c = load<double>(t[0]), s = load<double>(t[1]);
  const Tensor ones = Tensor::of<double>(DType::f64, {2, 3, 5, 8}, std::vector<double>(240, 1.0));
  for (const bool back : {false, true}) {
    const double sign = back ? -1 : 1;
    const Tensor y = back ? pulled_back({}, {ones, t[0], t[1]}, ones) : rotated({}, {ones, t[0], t[1]});
    const std::vector<double> got = load<double>(y);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t position = i / 8 % 5, element = i % 8, entry = position * 4 + element % 4;
      EXPECT_DOUBLE_EQ(got[i], element < 4 ? c[entry] - sign * s[entry] : c[entry] + sign * s[entry]);
    }
  }
  // The same heads, packed behind the positions.
  Builder g;
  const Value x = g.input("x", {DType::f64, {2, 3, 5, 8}}), cosine = g.input("cos", t[0].type());
  const Value sine = g.input("sin", t[1].type()), packed = reshape(transpose(x, {0, 2, 1, 3}), {2, 5, 24});
  const Value back = transpose(reshape(rope(packed, cosine, sine, {neox, 8}), {2, 5, 3, 8}), {0, 2, 1, 3});
  const Graph both = g.finish({rope(x, cosine, sine), back});
  const std::vector<Tensor> in{numbers({2, 3, 5, 8}, 1), t[0], t[1]}, out = evaluate(both, in);
  EXPECT_TRUE(identical(out[0], out[1]));
}

TEST(Pitfalls, P58_RowStrideOfTheTable) {
  for (const RopePairing pairing : {neox, gptj}) {
    const RopeAttrs a{pairing, 8, 4};
    const Tensor x = numbers({2, 3, 16}, 1), u = numbers({2, 3, 16}, 2);
    const std::vector<Tensor> wide = tables({3, 4});
    std::vector<Tensor> tight, flat;
    for (const Tensor& t : wide) {
      const std::vector<double> v = load<double>(t);
      tight.push_back(Tensor::of<double>(DType::f64, {3, 2}, {v[0], v[1], v[4], v[5], v[8], v[9]}));
      flat.push_back(tight.back().reshaped({6}));
    }
    const Tensor forward = rotated(a, {x, wide[0], wide[1]}), backward = pulled_back(a, {x, wide[0], wide[1]}, u);
    for (const auto& t : {tight, flat}) {
      EXPECT_TRUE(identical(rotated(a, {x, t[0], t[1]}), forward));
      EXPECT_TRUE(identical(pulled_back(a, {x, t[0], t[1]}, u), backward));
    }
  }
}

TEST(Pitfalls, P59_GradientIsTheAdjointAndTheInverse) {
  for (const RopePairing pairing : {neox, gptj}) {
    for (const std::vector<Index>& shape : {std::vector<Index>{2, 3, 16}, std::vector<Index>{2, 2, 3, 8}}) {
      for (const std::vector<Index>& table : {std::vector<Index>{3, 4}, std::vector<Index>{3, 2},
                                              std::vector<Index>{2, 3, 4}, std::vector<Index>{2, 3, 2}}) {
        const RopeAttrs a{pairing, 8, 4};
        const std::vector<Tensor> t = tables(table);
        const Tensor x = numbers(shape, 1), u = numbers(shape, 2), y = rotated(a, {x, t[0], t[1]});
        EXPECT_NEAR(dot(y, u), dot(x, pulled_back(a, {x, t[0], t[1]}, u)), 1e-12);
        const std::vector<double> want = load<double>(x), got = load<double>(pulled_back(a, {x, t[0], t[1]}, y));
        for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-14);
      }
    }
  }
}

// Scores of rotated queries and keys depend on the distance of their positions only, whatever the pairing.
TEST(Pitfalls, P60_PairingIsKept) {
  std::vector<double> angles;
  for (const double position : {0, 1, 2, 3, 4}) angles.insert(angles.end(), {position, 0.1 * position});
  std::vector<double> cosines, sines;
  for (const double angle : angles) {
    cosines.push_back(std::cos(angle));
    sines.push_back(std::sin(angle));
  }
  const Tensor c = Tensor::of<double>(DType::f64, {5, 2}, cosines), s = Tensor::of<double>(DType::f64, {5, 2}, sines);
  const auto repeated = [](std::vector<double> head) {
    std::vector<double> all;
    for (int i = 0; i < 5; ++i) all.insert(all.end(), head.begin(), head.end());
    return Tensor::of<double>(DType::f64, {5, 4}, all);
  };
  const std::vector<double> q{0.3, -1.2, 0.7, 0.4}, k{1.1, 0.2, -0.6, 0.9};
  double first_score[2] = {0, 0};
  for (const RopePairing pairing : {neox, gptj}) {
    const std::vector<double> a = load<double>(rotated({pairing}, {repeated(q), c, s}));
    const std::vector<double> b = load<double>(rotated({pairing}, {repeated(k), c, s}));
    const auto score = [&](std::size_t i, std::size_t j) {
      double total = 0;
      for (std::size_t e = 0; e < 4; ++e) total += a[i * 4 + e] * b[j * 4 + e];
      return total;
    };
    EXPECT_NEAR(score(1, 0), score(4, 3), 1e-12);
    EXPECT_NEAR(score(0, 2), score(2, 4), 1e-12);
    first_score[pairing == neox] = score(1, 0);
  }
  EXPECT_GT(std::fabs(first_score[0] - first_score[1]), 1e-3);
}

TEST(Pitfalls, P61_TheTailPasses) {
  for (const RopePairing pairing : {neox, gptj}) {
    const std::vector<Tensor> t = tables({3, 2});
    const Tensor x = numbers({2, 3, 12}, 1), y = rotated({pairing, 6, 4}, {x, t[0], t[1]});
    const std::vector<double> before = load<double>(x), after = load<double>(y);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (i % 6 >= 4) {
        EXPECT_EQ(after[i], before[i]);
      } else {
        EXPECT_NE(after[i], before[i]);
      }
    }
  }
}

}  // namespace
}  // namespace rlx::test
