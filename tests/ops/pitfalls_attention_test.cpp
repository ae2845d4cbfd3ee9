// Pitfalls of attention that cases cannot express.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/gradient.h"
#include "conformance.h"
#include "core/walk.h"
#include "ops/attention/attention.h"

namespace rlx::test {
namespace {

Tensor numbers(std::vector<Index> shape, unsigned seed, double range = 2) {
  std::vector<Dim> dims(shape.begin(), shape.end());
  return fill(CaseInput(DType::f64, dims).range(-range, range), {}, seed);
}

Graph graph_of(const AttentionAttrs& attrs, const std::vector<Tensor>& in) {
  Builder g;
  Values v;
  for (const Tensor& t : in) v.push_back(g.input("a" + std::to_string(v.size()), t.type()));
  return g.finish({in.size() == 3 ? attention(v[0], v[1], v[2], attrs) : attention(v[0], v[1], v[2], v[3], attrs)});
}

std::vector<double> result(const AttentionAttrs& attrs, const std::vector<Tensor>& in, bool definition = false) {
  return load<double>(evaluate(graph_of(attrs, in), in, {definition, {}})[0]);
}

// Gradients of all float operands under a cotangent of ones.
std::vector<Tensor> gradients(const AttentionAttrs& attrs, std::vector<Tensor> in) {
  const Graph g = graph_of(attrs, in);
  Tensor ones = evaluate(g, in)[0];
  store(ones, std::vector<double>(static_cast<std::size_t>(ones.count()), 1.0));
  in.push_back(ones);
  return evaluate(gradient(g), in);
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return worst;
}

// Axes 1 and 2 of a rank-4 tensor exchanged.
Tensor swapped(const Tensor& t) {
  const auto& s = t.shape();
  const std::vector<double> from = load<double>(t);
  std::vector<double> to;
  const std::vector<Index> natural = row_major_strides(s), extents{s[0], s[2], s[1], s[3]};
  const std::vector<Index> strides{natural[0], natural[2], natural[1], natural[3]};
  walk<1>(extents, {strides}, [&](const auto& at) { to.push_back(from[static_cast<std::size_t>(at[0])]); });
  return Tensor::of<double>(t.dtype(), extents, to);
}

TEST(Pitfalls, P52_R3_LayoutComesFromTheAttribute) {
  for (const Index positions : {Index{4}, Index{3}}) {  // as many as heads, and not
    const std::vector<Tensor> in{numbers({2, 4, positions, 8}, 1), numbers({2, 4, positions, 8}, 2),
                                 numbers({2, 4, positions, 8}, 3)};
    std::vector<Tensor> moved, flat;
    for (const Tensor& t : in) {
      moved.push_back(swapped(t));
      flat.push_back(moved.back().reshaped({2, positions, 32}));
    }
    const auto mask = AttentionMask::causal;
    const Tensor heads_first = evaluate(graph_of({.mask = mask}, in), in)[0];
    const std::vector<double> want = load<double>(swapped(heads_first));
    const auto bshd = AttentionLayout::bshd, packed = AttentionLayout::packed;
    EXPECT_EQ(result({.layout = bshd, .mask = mask}, moved), want);
    EXPECT_EQ(result({.layout = packed, .mask = mask, .heads = 4}, flat), want);
    if (positions == 4) {
      EXPECT_GT(distance(result({.layout = bshd, .mask = mask}, in), load<double>(heads_first)), 0.1);
    }
  }
}

TEST(Pitfalls, P54_LaterTokensDoNotReachAnEarlierQuery) {
  const Tensor q = numbers({1, 2, 4, 3}, 1), k = numbers({1, 2, 4, 3}, 2), v = numbers({1, 2, 4, 3}, 3);
  const auto changed = [](const Tensor& t) {  // positions 1 and later
    std::vector<double> x = load<double>(t);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += i % 12 >= 3 ? 1.0 + static_cast<double>(i) : 0;
    return Tensor::of<double>(t.dtype(), t.shape(), x);
  };
  const auto first = [](const std::vector<double>& y) {  // position 0 of both heads
    return std::vector<double>{y[0], y[1], y[2], y[12], y[13], y[14]};
  };
  const auto both = [&](const AttentionAttrs& a) {
    return std::pair(first(result(a, {q, k, v})), first(result(a, {q, changed(k), changed(v)})));
  };
  for (const AttentionAttrs& a :
       {AttentionAttrs{.mask = AttentionMask::causal}, AttentionAttrs{.mask = AttentionMask::window, .window = 2}}) {
    const auto [before, after] = both(a);
    EXPECT_EQ(before, after);
  }
  const auto [before, after] = both({});
  EXPECT_GT(distance(before, after), 0.1);
}

TEST(Pitfalls, P55_R4_ScaleAndCapChangeResultAndGradients) {
  const std::vector<Tensor> in{numbers({1, 1, 2, 64}, 1, 5), numbers({1, 1, 3, 64}, 2, 5), numbers({1, 1, 3, 2}, 3)};
  const std::vector<double> plain = result({}, in), full = result({.scale = 1.0}, in);
  EXPECT_EQ(plain, result({.scale = 0.125}, in));
  EXPECT_GT(distance(plain, full), 1e-3);
  EXPECT_LT(distance(full, result({.scale = 1.0}, in, true)), 1e-12);
  // One query, by hand: cap * tanh(s / cap), s up to 200.
  const double cap = 50, scores[] = {200, 150, -200};
  const std::vector<Tensor> one{Tensor::of<double>(DType::f64, {1, 1, 1, 1}, {1}),
                                Tensor::of<double>(DType::f64, {1, 1, 3, 1}, {scores[0], scores[1], scores[2]}),
                                Tensor::of<double>(DType::f64, {1, 1, 3, 1}, {1, 10, 100})};
  double weights[3], total = 0;
  for (int i = 0; i < 3; ++i) total += weights[i] = std::exp(cap * std::tanh(scores[i] / cap));
  const double want = (weights[0] + 10 * weights[1] + 100 * weights[2]) / total;
  EXPECT_NEAR(result({.scale = 1.0, .soft_cap = cap}, one)[0], want, 1e-12);
  EXPECT_GT(std::fabs(want - result({.scale = 1.0}, one)[0]), 0.1);
  const AttentionAttrs variants[] = {{}, {.scale = 1.0}, {.soft_cap = 2}};
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < i; ++j) {
      const std::vector<Tensor> a = gradients(variants[i], in), b = gradients(variants[j], in);
      for (std::size_t k = 0; k < 3; ++k) EXPECT_GT(distance(load<double>(a[k]), load<double>(b[k])), 1e-4);
    }
  }
}

TEST(Pitfalls, P56_CapComesBeforeTheMask) {
  const std::vector<Tensor> in{
      Tensor::of<double>(DType::f32, {1, 1, 1, 1}, {1}), Tensor::of<double>(DType::f32, {1, 1, 2, 1}, {-10, 5}),
      Tensor::of<double>(DType::f32, {1, 1, 2, 1}, {1, 100}), Tensor::of<double>(DType::f32, {1, 2}, {1, 0})};
  const AttentionAttrs a{.extra = AttentionExtra::keys, .scale = 1.0, .soft_cap = 1};
  for (const bool definition : {false, true}) EXPECT_EQ(result(a, in, definition), std::vector<double>{1});
}

TEST(Pitfalls, P62_CausalOffsetInCachedDecode) {
  // Alike keys: a query's result is the mean of the visible values 1, 2, 4, 8, 16.
  const auto visible = [](const AttentionAttrs& a, Index queries) {
    return result(a, {numbers({1, 1, queries, 1}, 1), Tensor(DType::f64, {1, 1, 5, 1}),
                      Tensor::of<double>(DType::f64, {1, 1, 5, 1}, {1, 2, 4, 8, 16})});
  };
  const auto causal = AttentionMask::causal, window = AttentionMask::window;
  EXPECT_EQ(visible({.mask = causal}, 1), std::vector<double>{31.0 / 5});
  EXPECT_EQ(visible({.mask = causal}, 2), (std::vector<double>{15.0 / 4, 31.0 / 5}));
  EXPECT_EQ(visible({.mask = window, .window = 2}, 1), std::vector<double>{12});  // keys 3 and 4
  EXPECT_EQ(visible({.mask = window, .window = 1}, 1), std::vector<double>{16});  // its own alone
}

TEST(Pitfalls, P63_GroupedHeadsShareTheRightKeys) {
  for (const Index kv_heads : {Index{1}, Index{2}, Index{4}}) {
    const Tensor q = numbers({1, 4, 3, 5}, 1), k = numbers({1, kv_heads, 3, 5}, 2), v = numbers({1, kv_heads, 3, 2}, 3);
    std::vector<double> k_all, v_all;
    for (Index h = 0; h < 4; ++h) {
      const auto copy = [&](std::vector<double>& to, const Tensor& t) {
        const std::vector<double> from = load<double>(t);
        const auto n = from.size() / static_cast<std::size_t>(kv_heads),
                   at = static_cast<std::size_t>(h * kv_heads / 4) * n;
        for (std::size_t i = 0; i < n; ++i) to.push_back(from[at + i]);
      };
      copy(k_all, k);
      copy(v_all, v);
    }
    const std::vector<Tensor> repeated{q, Tensor::of<double>(DType::f64, {1, 4, 3, 5}, k_all),
                                       Tensor::of<double>(DType::f64, {1, 4, 3, 2}, v_all)};
    EXPECT_EQ(result({}, {q, k, v}), result({}, repeated));
  }
}

TEST(Pitfalls, P64_ResultHasTheWidthOfTheValues) {
  for (const AttentionLayout layout : {AttentionLayout::bhsd, AttentionLayout::bshd, AttentionLayout::packed}) {
    const bool first = layout == AttentionLayout::bhsd, packed = layout == AttentionLayout::packed;
    const auto operand = [&](Index positions, Index size, unsigned seed) {
      if (packed) return numbers({2, positions, 4 * size}, seed);
      return first ? numbers({2, 4, positions, size}, seed) : numbers({2, positions, 4, size}, seed);
    };
    const std::vector<Tensor> in{operand(2, 5, 1), operand(3, 5, 2), operand(3, 3, 3)};
    const Tensor out = evaluate(graph_of({.layout = layout, .heads = 4}, in), in)[0];
    EXPECT_EQ(out.shape(), operand(2, 3, 4).shape());
  }
}

TEST(Pitfalls, P68_FullyHiddenRowGivesZerosAndNoGradient) {
  const std::vector<Tensor> in{numbers({1, 2, 2, 3}, 1), numbers({1, 2, 4, 3}, 2), numbers({1, 2, 4, 3}, 3)};
  const double inf = std::numeric_limits<double>::infinity();
  const auto hidden = [&](AttentionExtra extra, const Tensor& t) {
    std::vector<Tensor> all = in;
    all.push_back(t);
    const AttentionAttrs a{.extra = extra};
    for (const bool definition : {false, true}) {
      for (const double y : result(a, all, definition)) EXPECT_EQ(y, 0);
    }
    for (const Tensor& g : gradients(a, all)) {
      for (const double y : load<double>(g)) EXPECT_EQ(y, 0);
    }
  };
  hidden(AttentionExtra::keys, Tensor(DType::f64, {1, 4}));
  hidden(AttentionExtra::pairs, Tensor(DType::boolean, {1, 1, 2, 4}));
  hidden(AttentionExtra::bias, Tensor::of<double>(DType::f64, {1, 1, 1, 4}, std::vector<double>(4, -inf)));
}

// A hidden key has weight exactly 0: whatever finite value it holds, no bit changes.
TEST(Attention, HiddenKeysHaveNoWeight) {
  const Tensor mask = Tensor::of<double>(DType::boolean, {1, 3}, {1, 0, 1});
  const auto with = [&](double key, double value, bool definition) {
    return result({.extra = AttentionExtra::keys},
                  {Tensor::of<double>(DType::f64, {1, 1, 1, 1}, {2}),
                   Tensor::of<double>(DType::f64, {1, 1, 3, 1}, {0.5, key, -0.25}),
                   Tensor::of<double>(DType::f64, {1, 1, 3, 1}, {3, value, 5}), mask},
                  definition);
  };
  for (const bool definition : {false, true}) {
    EXPECT_EQ(with(0, 0, definition), with(1e300, 1e300, definition));
    EXPECT_EQ(with(0, 0, definition), with(700, -1e300, definition));
  }
}

}  // namespace
}  // namespace rlx::test
