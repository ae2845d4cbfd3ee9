// Convolutions by panels of weights and of single channels: the bits of the general step, of references within bounds,
// and with the elementwise ops behind them as one step.
#include <algorithm>
#include <cmath>

#include "levels.h"
#include "matmul_product.h"
#include "ops/conv/conv.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::test {
namespace {

struct Form {
  Index items, channels, high, wide, results, kernel_high, kernel_wide;
  ConvOptions options;
};

std::string text(const Form& f) {
  return fmt::format("{}x{}x{}x{} by {}x{}x{} groups {}", f.items, f.channels, f.high, f.wide, f.results, f.kernel_high,
                     f.kernel_wide, f.options.groups);
}

Tensor image(const Form& f) {
  return fill(CaseInput(DType::f32, {f.items, f.channels, f.high, f.wide}).range(-1, 1), {}, 1);
}
Tensor weights(const Form& f) {
  const Index each = f.channels / f.options.groups;
  return fill(CaseInput(DType::f32, {f.results, each, f.kernel_high, f.kernel_wide}).range(-1, 1), {}, 2);
}

const std::vector<Form>& forms() {
  static const std::vector<Form> all{
      {2, 3, 9, 8, 64, 3, 3, {.before = {1, 1}, .after = {1, 1}}},
      {1, 5, 7, 7, 130, 3, 3, {.before = {1, 1}, .after = {1, 1}}},
      {1, 4, 6, 5, 20, 1, 1, {}},
      {3, 4, 6, 5, 33, 1, 1, {.strides = {2, 2}}},
      {1, 3, 23, 25, 64, 7, 7, {.strides = {2, 2}, .before = {3, 3}, .after = {3, 3}}},
      {1,
       6,
       11,
       12,
       48,
       3,
       2,
       {.strides = {1, 2}, .dilations = {2, 3}, .before = {2, 0}, .after = {1, 4}, .groups = 2}},
      {2, 8, 5, 6, 80, 2, 3, {.before = {0, 1}, .after = {1, 0}, .groups = 2}},
      {1, 2, 3, 900, 17, 3, 5, {.before = {1, 2}, .after = {1, 2}}},   // lines in parts
      {1, 130, 4, 20, 24, 3, 3, {.before = {1, 1}, .after = {1, 1}}},  // sums in parts
      {1, 2, 20, 21, 96, 4, 4, {}},
      {1, 3, 2, 2, 16, 5, 5, {.before = {4, 4}, .after = {4, 4}}},  // more padding than image
      {0, 3, 4, 4, 32, 3, 3, {}},
      {1, 3, 2, 2, 32, 3, 3, {}},  // no window at all
  };
  return all;
}
const std::vector<Form>& single_channels() {
  static const std::vector<Form> all{
      {2, 5, 9, 20, 5, 3, 3, {.before = {1, 1}, .after = {1, 1}, .groups = 5}},
      {1, 3, 8, 33, 6, 3, 3, {.strides = {2, 2}, .before = {1, 1}, .after = {1, 1}, .groups = 3}},
      {1, 2, 13, 16, 2, 5, 5, {.before = {2, 2}, .after = {2, 2}, .groups = 2}},
      {1, 2, 14, 70, 2, 5, 5, {.strides = {2, 2}, .before = {2, 2}, .after = {1, 2}, .groups = 2}},
      {1, 4, 7, 7, 4, 7, 7, {.before = {3, 3}, .after = {3, 3}, .groups = 4}},
      {1, 4, 7, 50, 4, 3, 5, {.strides = {1, 2}, .before = {0, 2}, .after = {0, 2}, .groups = 4}},
      {1, 3, 1, 100, 3, 1, 31, {.before = {0, 15}, .after = {0, 15}, .groups = 3}},
      {1, 3, 1, 150, 3, 1, 70, {.before = {0, 35}, .after = {0, 35}, .groups = 3}},
      {1, 2, 6, 40, 2, 3, 3, {.strides = {3, 3}, .dilations = {1, 2}, .before = {1, 2}, .after = {1, 2}, .groups = 2}},
      {1, 2, 2, 3, 2, 3, 3, {.before = {2, 2}, .after = {2, 2}, .groups = 2}},
  };
  return all;
}

template <class F>
Graph graph_of(const Form& f, bool known, F rest) {
  Builder g;
  const Value x = g.input("x", image(f).type());
  const Value w = known ? constant(g, weights(f)) : g.input("w", weights(f).type());
  return g.finish({rest(g, conv(x, w, f.options))});
}

// Sums in f64, within a bound; and the bits of the general step.
TEST(ConvPanels, AllFormsAgree) {
  for (const std::vector<Form>* list : {&forms(), &single_channels()}) {
    for (const Form& f : *list) {
      SCOPED_TRACE(text(f));
      const auto as_it_is = [](Builder&, Value y) { return y; };
      const Graph known = graph_of(f, true, as_it_is), general = graph_of(f, false, as_it_is);
      const std::vector<Tensor> in{image(f), weights(f)};
      const Tensor want = evaluate(general, in)[0];
      at_every_level([&] {
        for (const unsigned pieces : {0U, 3U}) {
          const Tensor got = by_steps(known, std::span(in).first(1), {}, pieces)[0];
          const Difference d = compare(got, want, relative(4e-6));  // chains of up to 1,170 roundings
          EXPECT_TRUE(d.ok) << d.where;
          if (f.options.groups != f.channels) {
            EXPECT_TRUE(identical(got, by_steps(general, in, {}, 0)[0]));
          }
        }
      });
    }
  }
}

// An image alone gives the bits that it gives among others.
TEST(ConvPanels, ItemsOfABatchAreIndependent) {
  Form f = forms()[0];
  const auto as_it_is = [](Builder&, Value y) { return y; };
  const Tensor two = image(f);
  f.items = 1;
  Tensor one(DType::f32, {1, 3, 9, 8});
  at_every_level([&] {
    Form both = f;
    both.items = 2;
    const Tensor all = by_steps(graph_of(both, true, as_it_is), std::vector<Tensor>{two}, {}, 0)[0];
    for (std::size_t i = 0; i < 2; ++i) {
      const auto from = two.bytes().subspan(i * one.bytes().size(), one.bytes().size());
      std::ranges::copy(from, one.mutable_bytes().begin());
      const Tensor got = by_steps(graph_of(f, true, as_it_is), std::vector<Tensor>{one}, {}, 0)[0];
      EXPECT_TRUE(std::ranges::equal(got.bytes(), all.bytes().subspan(i * got.bytes().size(), got.bytes().size())));
    }
  });
}

template <class F>
void check_fused(F rest) {
  for (const std::vector<Form>* list : {&forms(), &single_channels()}) {
    for (const Form& f : *list) {
      SCOPED_TRACE(text(f));
      const Graph plain = graph_of(f, true, rest), one = fused_by_pass(plain);
      ASSERT_EQ(std::ranges::count_if(one.nodes, [](const Node& n) { return n.op == &conv_op; }), 0);
      std::vector<Tensor> in{image(f)};
      for (std::size_t i = 1; i < plain.inputs.size(); ++i) {
        in.push_back(fill(CaseInput(plain.nodes[plain.inputs[i]].results[0]).range(-2, 2), {}, 7));
      }
      expect_same_bits_by_steps(one, plain, in, {});
    }
  }
}

Value bias(Builder& g, Value y, const char* name = "bias") { return g.input(name, {DType::f32, {y.dim(1), 1, 1}}); }

TEST(BulkConvPanels, BiasAndActivation) {
  check_fused([](Builder& g, Value y) { return y + bias(g, y); });
  check_fused([](Builder& g, Value y) { return relu(bias(g, y) + y); });
  check_fused([](Builder&, Value y) { return relu(y); });
  check_fused([](Builder& g, Value y) { return silu(y + reshape(bias(g, y), {1, y.dim(1), 1, 1})); });
}

Value clip_to_six(Value y) { return maximum(minimum(y, like(y, 6)), like(y, 0)); }
Value leaky(Value y, double slope) { return select(less(y, like(y, 0)), y * like(y, slope), y); }

TEST(BulkConvPanels, Slopes) {
  check_fused([](Builder&, Value y) { return leaky(y, 0.125); });
  check_fused([](Builder& g, Value y) { return leaky(y + bias(g, y), -3); });
  // Alike, but not slopes below 0: another bound, a slope a channel, a second reader of the product.
  check_fused([](Builder& g, Value y) { return select(less(y, like(y, 1)), y * like(y, 2), y) + bias(g, y); });
  check_fused([](Builder& g, Value y) { return select(less(y, like(y, 0)), y * bias(g, y), y); });
  check_fused([](Builder&, Value y) { return y * leaky(y, 0.5); });
  check_fused([](Builder&, Value y) { return y * clip_to_six(y + like(y, 3)); });
}

TEST(BulkConvPanels, WhatTheKernelDoesNotDoItself) {
  check_fused(
      [](Builder& g, Value y) { return relu((y - bias(g, y)) * bias(g, y, "scale") + g.input("rest", y.type())); });
  check_fused([](Builder&, Value y) { return y + like(y, 1); });
  check_fused([](Builder& g, Value y) { return y + g.input("line", {DType::f32, {y.dim(3)}}); });
  check_fused([](Builder&, Value y) { return y + y; });
}

// What is added does not come to -0, and NaN stays.
TEST(ConvPanels, SignsAndNaNOfActivations) {
  Builder g;
  const Value x = g.input("x", {DType::f32, {1, 1, 1, 4}});
  const Value w = constant(g, Tensor::of<double>(DType::f32, {16, 1, 1, 1}, std::vector<double>(16, 1)));
  const Graph plain = g.finish({relu(conv(x, w))});
  const std::vector<Tensor> in{Tensor::of<double>(DType::f32, {1, 1, 1, 4}, {NAN, -1, -0.0, 2})};
  at_every_level([&] {
    const Tensor got = by_steps(fused_by_pass(plain), in, {}, 0)[0];
    const std::vector<double> y = load<double>(got);
    for (std::size_t i = 0; i < 64; i += 4) {
      EXPECT_TRUE(std::isnan(y[i]));
      EXPECT_EQ(y[i + 1], 0);
      EXPECT_FALSE(std::signbit(y[i + 1]));
      EXPECT_FALSE(std::signbit(y[i + 2]));
      EXPECT_EQ(y[i + 3], 2);
    }
  });
}

}  // namespace
}  // namespace rlx::test
