// Known traps of reductions, ordering, scattering and losses. The oracles are loops over coordinates, or hand numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/error.h"
#include "ops/gather/gather.h"
#include "ops/reduce/reduce.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter_add/scatter_add.h"
#include "ops/scatter_add_along/scatter_add_along.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"
#include "ops/take_along/take_along.h"
#include "ops/topk/topk.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

using testing::ElementsAre;
using Shape = std::vector<Index>;

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Tensor mixed(const Shape& shape, DType d) {  // small whole numbers in no order
  Tensor t(d, shape);
  std::vector<double> v;
  for (Index i = 0; i < t.count(); ++i) v.push_back(static_cast<double>((i * 37 + 11) % 23 - 9));
  store(t, v);
  return t;
}

// Elements of `x` that fall into each element of the result, the reduced axes having size 1 there.
std::vector<std::vector<double>> groups(const Tensor& x, const Shape& kept) {
  std::size_t n = 1;
  for (const Index e : kept) n *= static_cast<std::size_t>(e);
  std::vector<std::vector<double>> all(n);
  const std::vector<double> v = reals(x);
  for (std::size_t i = 0; i < v.size(); ++i) all[source(kept, x.shape(), i)].push_back(v[i]);
  return all;
}

struct Axes {
  Shape shape, axes, kept;
};
const Axes sets[] = {{{2, 3, 4}, {0, 2}, {1, 3, 1}},
                     {{2, 3, 4, 5}, {0, 2, 3}, {1, 3, 1, 1}},
                     {{2, 3, 4, 5}, {1, 2}, {2, 1, 1, 5}},
                     {{3, 5, 7}, {0, 2}, {1, 5, 1}},
                     {{3, 5, 7}, {1}, {3, 1, 7}}};

TEST(Pitfalls, P38_R7_ReductionsOverAxesThatAreNotAdjacent) {
  for (const Axes& s : sets) {
    for (const DType d : {DType::f32, DType::f64, DType::i64}) {
      const bool whole = d == DType::i64;
      const Tensor x = mixed(s.shape, d);
      const std::vector<Tensor> out = run_all({x}, [&](const Values& v) {
        return Values{sum(v[0], s.axes), max(v[0], s.axes), min(v[0], s.axes, true),
                      whole ? sum(v[0], s.axes, true) : mean(v[0], s.axes, true)};
      });
      const auto g = groups(x, s.kept);
      EXPECT_EQ(out[2].shape(), s.kept);
      for (const Tensor& t : out) ASSERT_EQ(t.count(), static_cast<Index>(g.size()));
      for (std::size_t i = 0; i < g.size(); ++i) {
        const double total = std::accumulate(g[i].begin(), g[i].end(), 0.0);
        EXPECT_EQ(reals(out[0])[i], total);
        EXPECT_EQ(reals(out[1])[i], *std::ranges::max_element(g[i]));
        EXPECT_EQ(reals(out[2])[i], *std::ranges::min_element(g[i]));
        EXPECT_NEAR(reals(out[3])[i], whole ? total : total / static_cast<double>(g[i].size()), 1e-6);
      }
    }
  }
}

TEST(Pitfalls, P38_GradientOfAChannelBias) {
  const Tensor x = mixed({2, 3, 4, 5}, DType::f32), bias = floats({1, 3, 1, 1}, {1, 2, 3});
  const Tensor u = mixed({2, 3, 4, 5}, DType::f32);
  const Graph g = graph_of({x, bias}, [](const Values& v) { return v[0] + v[1]; });
  const std::vector<Tensor> grads = pull_back(g, {x, bias}, {u});
  EXPECT_TRUE(identical(grads[0], u));
  EXPECT_EQ(grads[1].shape(), (Shape{1, 3, 1, 1}));
  const auto want = groups(u, {1, 3, 1, 1});
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(reals(grads[1])[c], std::accumulate(want[c].begin(), want[c].end(), 0.0));
  }
}

TEST(Pitfalls, R9_GradientsThroughReductionsOverInnerAxes) {
  for (const Axes& s : sets) {
    const Tensor x = mixed(s.shape, DType::f64);
    const auto g = groups(x, s.kept);
    const Tensor u = counted({static_cast<Index>(g.size())}, 1, 1, DType::f64).reshaped(s.kept);
    const auto slope = [&](ReduceKind kind) {
      const Graph f = graph_of({x}, [&](const Values& v) { return reduce(v[0], {kind, s.axes, true}); });
      return reals(pull_back(f, {x}, {u})[0]);
    };
    const std::vector<double> sums = slope(ReduceKind::sum), means = slope(ReduceKind::mean),
                              most = slope(ReduceKind::max), products = slope(ReduceKind::prod), v = reals(x);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const std::size_t at = source(s.kept, s.shape, i);
      const double up = static_cast<double>(at) + 1, count = static_cast<double>(g[at].size());
      const double top = *std::ranges::max_element(g[at]);
      EXPECT_EQ(sums[i], up);
      EXPECT_NEAR(means[i], up / count, 1e-15);
      EXPECT_EQ(most[i], v[i] == top ? up / static_cast<double>(std::ranges::count(g[at], top)) : 0);
      double others = up;  // the product of the rest of its group, zeros included
      bool self = false;
      for (const double e : g[at]) {
        if (e == v[i] && !self) {
          self = true;
        } else {
          others *= e;
        }
      }
      EXPECT_NEAR(products[i], others, 1e-12 * std::fabs(others));
    }
  }
}

TEST(Pitfalls, P39_NaNHasAPlaceInTheOrder) {
  const auto order = [](bool largest) {
    return [largest](const Values& v) {
      const TopkValues t = topk(v[0], v[0].dim(-1), -1, largest);
      return Values{t.values, t.indices};
    };
  };
  const Tensor x = floats({4}, {3, nan, 1, 2});
  const std::vector<Tensor> up = run_all({x}, order(false)), down = run_all({x}, order(true));
  EXPECT_THAT(wholes(up[1]), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(wholes(down[1]), ElementsAre(1, 0, 3, 2));
  EXPECT_THAT(reals(up[0]), ElementsAre(1, 2, 3, testing::IsNan()));
  EXPECT_THAT(reals(down[0]), ElementsAre(testing::IsNan(), 3, 2, 1));
  // Equal keys keep their order in both directions.
  const Tensor ties = floats({2, 3}, {1, 1, 0, 0, 1, 1});
  EXPECT_THAT(wholes(run_all({ties}, order(false))[1]), ElementsAre(2, 0, 1, 0, 1, 2));
  EXPECT_THAT(wholes(run_all({ties}, order(true))[1]), ElementsAre(0, 1, 2, 1, 2, 0));
  // Many, a tenth of them NaN.
  std::mt19937 random(5);
  std::vector<double> many(100000);
  for (double& v : many) v = random() % 10 == 0 ? nan : static_cast<double>(random() % 1000);
  const Tensor big = floats({100000}, many);
  const std::vector<Index> at = wholes(evaluate(graph_of({big}, order(true)), std::vector<Tensor>{big})[1]);
  const auto key = [&](Index i) {
    const double v = many[static_cast<std::size_t>(i)];
    return std::isnan(v) ? inf : v;
  };
  std::vector<bool> seen(many.size(), false);
  for (std::size_t i = 0; i < at.size(); ++i) {
    seen[static_cast<std::size_t>(at[i])] = true;
    if (i == 0) continue;
    const double before = key(at[i - 1]), here = key(at[i]);
    ASSERT_TRUE(before > here || (before == here && at[i - 1] < at[i])) << i;
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](bool s) { return s; }));
}

TEST(Pitfalls, P13_BothIndexTypesGiveTheSame) {
  const Tensor table = counted({3, 4}, 0, 1), updates = counted({2, 4}, 1, 1);
  const std::vector<Index> rows{2, -3}, along{2, 0, 1, -1, 0, 0, 2, 1};
  std::vector<std::vector<Tensor>> out;
  for (const DType d : {DType::i32, DType::i64}) {
    out.push_back(run_all({table, updates, ints(d, {2}, rows), ints(d, {2, 4}, along)}, [](const Values& v) {
      return Values{gather(v[0], v[2], 0), scatter_add(v[1], v[2], 0, 3), take_along(v[0], v[3], 0),
                    scatter_add_along(v[1], v[3], 0, {3, 4})};
    }));
  }
  for (std::size_t i = 0; i < out[0].size(); ++i) EXPECT_TRUE(identical(out[0][i], out[1][i])) << i;
  EXPECT_THAT(reals(out[0][0]), ElementsAre(8, 9, 10, 11, 0, 1, 2, 3));
  EXPECT_THAT(reals(out[0][1]), ElementsAre(5, 6, 7, 8, 0, 0, 0, 0, 1, 2, 3, 4));
  EXPECT_THAT(reals(out[0][2]), ElementsAre(8, 1, 6, 11, 0, 1, 10, 7));
  EXPECT_THAT(reals(out[0][3]), ElementsAre(5, 8, 0, 0, 0, 0, 3, 8, 1, 0, 7, 4));
  Builder b;
  const Value x = b.input("x", {DType::f32, {3, 4}}), at = b.input("at", {DType::f32, {3, 4}});
  EXPECT_THROW(gather(x, at), Error);
  EXPECT_THROW(take_along(x, at, 0), Error);
  EXPECT_THROW(scatter_add(x, at, 0, 3), Error);
  EXPECT_THROW(scatter_add_along(x, at, 0, {3, 4}), Error);
}

TEST(Pitfalls, P94_ScatteredDuplicatesAddUpOnce) {
  const Tensor u = floats({2, 3}, {1, 1.125, 1.25, 2, 2.125, 2.25}), at = ints(DType::i64, {2, 3}, {1, 0, 2, 0, 2, 1});
  const Graph g = graph_of({u, at}, [](const Values& v) { return scatter_add_along(v[0], v[1], 0, {3, 3}); });
  for (int i = 0; i < 2; ++i) {  // a second run starts from zeros again
    EXPECT_THAT(reals(run_graph(g, {u, at})[0]), ElementsAre(2, 1.125, 0, 1, 0, 2.25, 0, 2.125, 1.25));
  }
  const std::vector<Tensor> in{floats({4, 2}, {1, 10, 2, 20, inf, 30, 4, nan}), ints(DType::i32, {4}, {1, 1, 3, 1})};
  const Graph rows = graph_of(in, [](const Values& v) { return scatter_add(v[0], v[1], 0, 5); });
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(reals(run_graph(rows, in)[0]), ElementsAre(0, 0, 7, testing::IsNan(), 0, 0, inf, 30, 0, 0));
  }
  const Index big = 1000000000000;
  const Tensor wide = run({ints(DType::i64, {1, 2}, {big, 1}), ints(DType::i64, {1, 2}, {1, 1})},
                          [](const Values& v) { return scatter_add_along(v[0], v[1], 1, {1, 3}); });
  EXPECT_THAT(wholes(wide), ElementsAre(0, big + 1, 0));
}

TEST(Pitfalls, P76_ReversalTurnsOneAxisOnly) {
  const Tensor x = counted({3, 4, 2}, 0, 1);
  const std::vector<double> got = reals(run({x}, [](const Values& v) { return reversed(v[0], 1); }));
  for (std::size_t i = 0; i < 24; ++i) {
    const std::size_t batch = i / 8, time = i / 2 % 4, element = i % 2;
    EXPECT_EQ(got[i], static_cast<double>(batch * 8 + (3 - time) * 2 + element));
  }
}

// The loss of every row: minus the sum of target times log-softmax.
Value cross_entropy(const Values& v) { return -sum(v[1] * log_softmax(v[0]), {-1}); }

TEST(Pitfalls, P97_CrossEntropyOfTargetsThatDoNotSumToOne) {
  for (const DType d : {DType::f32, DType::f64}) {
    const std::vector<Tensor> in{floats({2, 3}, {1, 2, 3, 1, 2, 3}, d),
                                 floats({2, 3}, {0.25, 0.25, 0, 0.2, 0.3, 0.5}, d)};
    const Graph g = graph_of(in, cross_entropy);
    const double lse = std::log(std::exp(1) + std::exp(2) + std::exp(3));
    expect_near(run_graph(g, in)[0], {0.953803, lse - (0.2 + 0.6 + 1.5)}, 1e-6);
    std::vector<double> want;
    for (const std::size_t row : {0u, 1u}) {
      const double total = row == 0 ? 0.5 : 1;
      for (std::size_t c = 0; c < 3; ++c) {
        want.push_back(total * std::exp(1 + static_cast<double>(c) - lse) - reals(in[1])[row * 3 + c]);
      }
    }
    expect_near(pull_back(g, in, {floats({2}, {1, 1}, d)})[0], want, d == DType::f32 ? 1e-6 : 1e-14);
  }
}

TEST(Pitfalls, P98_LargeLogitsGiveFiniteLossAndGradient) {
  for (const DType d : {DType::f32, DType::f64}) {
    const std::vector<Tensor> in{floats({2, 3}, {1e4, 0, -1e4, 1e4, 0, -1e4}, d),
                                 floats({2, 3}, {0, 0, 1, 1, 0, 0}, d)};
    const Graph g = graph_of(in, cross_entropy);
    EXPECT_THAT(reals(run_graph(g, in)[0]), ElementsAre(20000, 0));
    const std::vector<Tensor> grads = pull_back(g, in, {floats({2}, {1, 1}, d)});
    EXPECT_THAT(reals(grads[0]), ElementsAre(1, 0, -1, 0, 0, 0));
    EXPECT_THAT(reals(grads[1]), ElementsAre(0, 10000, 20000, 0, 10000, 20000));
    const Tensor y = run({in[0]}, [](const Values& v) { return softmax(v[0]); });
    EXPECT_THAT(reals(y), ElementsAre(1, 0, 0, 1, 0, 0));
  }
}

}  // namespace
}  // namespace rlx::test
