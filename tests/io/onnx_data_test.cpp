// ONNX import of operators that move, select, draw and transform elements, with hand-computed results.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "io/bounded.h"
#include "io/onnx/onnx.h"
#include "io/onnx_models.h"
#include "runtime/evaluate.h"
#include "runtime/session.h"

namespace rlx::test {
namespace {

using L = std::vector<double>;
using Ints = std::vector<std::int64_t>;

std::string string_attribute(const std::string& name, const std::string& value) {
  return bytes_field(1, name) + bytes_field(4, value) + number_field(20, 3);
}

int element(DType d) {
  switch (d) {
    case DType::f32:
      return 1;
    case DType::i64:
      return 7;
    case DType::boolean:
      return 9;
    default:
      return 11;  // f64
  }
}

// A model of one node, whose inputs have these tensors as values in a run; `constants` are initialisers.
struct Model {
  NodeText node;
  std::vector<Tensor> in;
  std::vector<std::string> constants = {};
  std::int64_t opset = 20;

  Graph graph() const {
    std::vector<std::string> infos;
    for (std::size_t i = 0; i < in.size(); ++i) {
      infos.push_back(value_info(node.in[i], element(in[i].dtype()), {in[i].shape().begin(), in[i].shape().end()}));
    }
    return import_onnx(bytes_of(one_node(node, constants, opset, infos)), "test");
  }
  NamedTensors named() const {
    NamedTensors all;
    for (std::size_t i = 0; i < in.size(); ++i) all.emplace(node.in[i], in[i]);
    return all;
  }
  // Compiled and evaluated, which must agree.
  Tensor result() const {
    const Graph g = graph();
    const Tensor got = cpu_session({.threads = 1}).compile(g, {}, {.poison = true, .check = true}).run(named()).at(0);
    const Tensor want = evaluate(g, named()).at(0);
    EXPECT_EQ(got.type(), want.type());
    const L a = load<double>(got), b = load<double>(want);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5 * std::max(1.0, std::fabs(b[i])));
    return got;
  }
  L values() const { return load<double>(result()); }
};

Tensor real(std::vector<Index> shape, const L& v) { return Tensor::of<double>(DType::f32, std::move(shape), v); }
Tensor whole(std::vector<Index> shape, const Ints& v) {
  return Tensor::of<Ints::value_type>(DType::i64, std::move(shape), v);
}
Tensor truth(std::vector<Index> shape, const Ints& v) {
  return Tensor::of<Ints::value_type>(DType::boolean, std::move(shape), v);
}

L padded(const std::string& mode, const L& x, const Ints& pads) {
  return Model{{"Pad", {"x", "pads"}, {"y"}, {string_attribute("mode", mode)}},
               {real({static_cast<Index>(x.size())}, x)},
               {i64_tensor("pads", pads)}}
      .values();
}

TEST(OnnxData, PadsOfEveryMode) {
  EXPECT_EQ(padded("edge", {1, 2, 3}, {2, 1}), (L{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(padded("reflect", {1, 2, 3}, {2, 1}), (L{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(padded("wrap", {1, 2, 3}, {2, 1}), (L{2, 3, 1, 2, 3, 1}));
  EXPECT_EQ(padded("constant", {1, 2, 3}, {2, 1}), (L{0, 0, 1, 2, 3, 0}));
  // More than there is: mirrored and wrapped again.
  EXPECT_EQ(padded("reflect", {1, 2}, {3, 3}), (L{2, 1, 2, 1, 2, 1, 2, 1}));
  EXPECT_EQ(padded("wrap", {1, 2}, {3, 3}), (L{2, 1, 2, 1, 2, 1, 2, 1}));
  EXPECT_EQ(padded("reflect", {7}, {2, 1}), (L{7, 7, 7, 7}));
  // A negative pad cuts first.
  EXPECT_EQ(padded("edge", {1, 2, 3}, {-1, 2}), (L{2, 3, 3, 3}));
  EXPECT_EQ(padded("reflect", {1, 2, 3, 4}, {2, -1}), (L{3, 2, 1, 2, 3}));
}

TEST(OnnxData, APadOfAValueThatARunBrings) {
  const Model m{{"Pad", {"x", "pads", "v", "axes"}, {"y"}, {}},
                {real({2, 2}, {1, 2, 3, 4}), real({}, {9})},
                {i64_tensor("pads", {1, 1}), i64_tensor("axes", {-1})}};
  Model ordered = m;
  ordered.node.in = {"x", "pads", "v", "axes"};
  const std::vector<std::string> infos{value_info("x", 1, {2, 2}), value_info("v", 1, {})};
  const Graph g = import_onnx(bytes_of(one_node(m.node, m.constants, 20, infos)), "test");
  const NamedTensors in{{"x", m.in[0]}, {"v", m.in[1]}};
  EXPECT_EQ(load<double>(evaluate(g, in).at(0)), (L{9, 1, 2, 9, 9, 3, 4, 9}));
  EXPECT_EQ(load<double>(cpu_session({.threads = 1}).compile(g).run(in).at(0)), (L{9, 1, 2, 9, 9, 3, 4, 9}));
}

TEST(OnnxData, CentredCropsRoundDown) {
  const auto crop = [](const L& x, std::int64_t size) {
    return Model{
        {"CenterCropPad", {"x", "s"}, {"y"}, {}}, {real({static_cast<Index>(x.size())}, x)}, {i64_tensor("s", {size})}}
        .values();
  };
  EXPECT_EQ(crop({1, 2, 3, 4, 5}, 2), (L{2, 3}));
  EXPECT_EQ(crop({1, 2}, 5), (L{0, 1, 2, 0, 0}));
  EXPECT_EQ(crop({1, 2}, 2), (L{1, 2}));
}

TEST(OnnxData, SequencesAreReversedUpToTheirLengths) {
  const Tensor x = real({3, 2}, {1, 2, 3, 4, 5, 6});
  const Model m{{"ReverseSequence", {"x", "n"}, {"y"}, {}}, {x, whole({2}, {2, 3})}};
  EXPECT_EQ(m.values(), (L{3, 6, 1, 4, 5, 2}));
  const Model other{
      {"ReverseSequence", {"x", "n"}, {"y"}, {integer_attribute("batch_axis", 0), integer_attribute("time_axis", 1)}},
      {x, whole({3}, {1, 2, 0})}};
  EXPECT_EQ(other.values(), (L{1, 2, 4, 3, 5, 6}));
  for (const std::int64_t bad : {std::int64_t{4}, std::int64_t{-1}}) {
    Model wrong = m;
    wrong.in[1] = whole({2}, {2, bad});
    EXPECT_THROW(evaluate(wrong.graph(), wrong.named()), Error) << bad;
  }
}

TEST(OnnxData, CachesAreWrittenWhereEachItemStands) {
  const auto cache = [](const std::string& mode, const Ints& at) {
    return Model{
        {"TensorScatter", {"x", "u", "at"}, {"y"}, {string_attribute("mode", mode), integer_attribute("axis", 1)}},
        {real({2, 3}, {1, 2, 3, 4, 5, 6}), real({2, 2}, {10, 20, 30, 40}), whole({2}, at)},
        {},
        24};
  };
  EXPECT_EQ(cache("linear", {0, 1}).values(), (L{10, 20, 3, 4, 30, 40}));
  EXPECT_EQ(cache("circular", {2, 1}).values(), (L{20, 2, 10, 4, 30, 40}));
  EXPECT_THROW(cache("linear", {2, 1}).values(), Error);
  EXPECT_THROW(cache("linear", {-1, 1}).values(), Error);
}

TEST(OnnxData, GatherNdOfBatches) {
  const auto model = [](const Ints& at) {
    return Model{{"GatherND", {"x", "at"}, {"y"}, {integer_attribute("batch_dims", 1)}},
                 {real({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), whole({2, 1}, at)}};
  };
  EXPECT_EQ(model({1, 0}).values(), (L{3, 4, 5, 6}));
  EXPECT_EQ(model({-1, -2}).values(), (L{3, 4, 5, 6}));
  EXPECT_THROW(model({2, 0}).values(), Error);   // no row of the next batch item
  EXPECT_THROW(model({0, -3}).values(), Error);  // nor of the one before
}

TEST(OnnxData, RunningProducts) {
  const Model m{{"CumProd", {"x", "a"}, {"y"}, {integer_attribute("exclusive", 1), integer_attribute("reverse", 1)}},
                {real({4}, {2, 3, 4, 5})},
                {i64_tensor("a", {0})},
                26};
  EXPECT_EQ(m.values(), (L{60, 20, 5, 1}));
}

TEST(OnnxData, WhatIsNotZero) {
  const Model m{{"NonZero", {"x"}, {"y"}, {}}, {real({2, 3}, {0, 1, 0, 2, 0, 3})}};
  EXPECT_EQ(m.result().shape(), (std::vector<Index>{2, 3}));
  EXPECT_EQ(m.values(), (L{0, 1, 1, 1, 0, 2}));
  const Model none{{"NonZero", {"x"}, {"y"}, {}}, {real({2, 3}, L(6, 0))}};
  EXPECT_EQ(none.result().shape(), (std::vector<Index>{2, 0}));
  const Model scalar{{"NonZero", {"x"}, {"y"}, {}}, {real({}, {5})}};
  EXPECT_EQ(scalar.result().shape(), (std::vector<Index>{0, 1}));
}

TEST(OnnxData, SlicesThatAreKept) {
  const Tensor x = real({2, 3}, {1, 2, 3, 4, 5, 6});
  const Model columns{{"Compress", {"x", "c"}, {"y"}, {integer_attribute("axis", 1)}}, {x, truth({3}, {1, 0, 1})}};
  EXPECT_EQ(columns.values(), (L{1, 3, 4, 6}));
  const Model elements{{"Compress", {"x", "c"}, {"y"}, {}}, {x, truth({5}, {0, 1, 0, 0, 1})}};
  EXPECT_EQ(elements.values(), (L{2, 5}));
}

TEST(OnnxData, DifferentRows) {
  const Model m{{"Unique", {"x"}, {"y", "first", "inverse", "counts"}, {integer_attribute("axis", 0)}},
                {real({4, 2}, {1, 0, 0, 5, 1, 0, 0, 2})}};
  EXPECT_EQ(m.result().shape(), (std::vector<Index>{3, 2}));
  EXPECT_EQ(m.values(), (L{0, 2, 0, 5, 1, 0}));
}

TEST(OnnxData, BoxesWithoutTheirNeighbours) {
  const Model m{{"NonMaxSuppression", {"b", "s", "most", "limit"}, {"y"}, {}},
                {real({1, 3, 4}, {0, 0, 1, 1, 0, 0.1, 1, 1.1, 5, 5, 6, 6}), real({1, 1, 3}, {0.5, 0.9, 0.7}),
                 whole({1}, {10}), real({1}, {0.5})}};
  EXPECT_EQ(m.values(), (L{0, 0, 1, 0, 0, 2}));
}

TEST(OnnxData, RangesWhoseEndsARunBrings) {
  const auto range = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return Model{{"Range", {"a", "b", "c"}, {"y"}, {}}, {a, b, c}}.values();
  };
  const auto n = [](std::int64_t v) { return whole({}, {v}); };
  EXPECT_EQ(range(n(1), n(8), n(3)), (L{1, 4, 7}));
  EXPECT_EQ(range(n(1), n(7), n(3)), (L{1, 4}));
  EXPECT_EQ(range(n(5), n(-1), n(-2)), (L{5, 3, 1}));
  EXPECT_EQ(range(n(5), n(1), n(2)), (L{}));
  EXPECT_EQ(range(n(1), n(5), n(-1)), (L{}));
  EXPECT_EQ(range(real({}, {0.5}), real({}, {2}), real({}, {0.5})), (L{0.5, 1, 1.5}));
  EXPECT_THROW(range(n(1), n(5), n(0)), Error);
}

TEST(OnnxData, SpectraAndBack) {
  const Tensor x = real({1, 4, 1}, {1, 2, 3, 4});
  const Model one{{"DFT", {"x"}, {"y"}, {integer_attribute("onesided", 1)}}, {x}};
  const L y = one.values();
  ASSERT_EQ(y.size(), 6U);
  const L want{10, 0, -2, 2, -2, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[i], want[i], 1e-6);
  const Model back{{"DFT", {"x"}, {"y"}, {integer_attribute("onesided", 1), integer_attribute("inverse", 1)}},
                   {real({1, 3, 2}, want)}};
  EXPECT_EQ(back.result().shape(), (std::vector<Index>{1, 4, 1}));
  const L again = back.values();
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(again[i], static_cast<double>(i + 1), 1e-6);
  const Model longer{{"DFT", {"x", "n"}, {"y"}, {}}, {x}, {i64_tensor("n", {6})}};
  EXPECT_EQ(longer.result().shape(), (std::vector<Index>{1, 6, 2}));
}

TEST(OnnxData, Determinants) {
  const Model m{{"Det", {"x"}, {"y"}, {}}, {real({2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0})}};
  EXPECT_EQ(m.values(), (L{-2, -1}));
}

TEST(OnnxData, RandomNumbersAreTheSameInEveryRun) {
  const Model m{{"RandomUniformLike", {"x"}, {"y"}, {}}, {real({1000}, L(1000, 0))}};
  const L a = m.values(), b = m.values();
  EXPECT_EQ(a, b);
  double sum = 0;
  for (const double v : a) {
    EXPECT_TRUE(0 <= v && v < 1);
    sum += v;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.05);
  Model other = m;
  other.node.out = {"z"};
  EXPECT_NE(
      load<double>(
          evaluate(import_onnx(bytes_of(model(
                                   {{other.node}, {value_info("x", 1, {1000})}, {value_info("z", 1, {1000})}, {}}, 20)),
                               "test"),
                   m.named())
              .at(0)),
      a);
  const Model coin{{"Bernoulli", {"x"}, {"y"}, {}}, {real({4}, {0, 1, 0, 1})}};
  EXPECT_EQ(coin.values(), (L{0, 1, 0, 1}));
}

TEST(OnnxData, ConstantsThatFollowFromConstants) {
  // ConstantOfShape of -(-2), which a Reshape then needs.
  const std::string text = model({{{"Neg", {"a"}, {"n"}, {}, "n1"},
                                   {"ConstantOfShape", {"n"}, {"s"}, {}, "n2"},
                                   {"Cast", {"s"}, {"t"}, {integer_attribute("to", 7)}, "n3"},
                                   {"Sub", {"one", "t"}, {"u"}, {}, "n4"},
                                   {"Reshape", {"x", "u"}, {"y"}, {}, "n5"}},
                                  {value_info("x", 1, {1})},
                                  {value_info("y", 1, {1, 1})},
                                  {i64_tensor("a", {-2}), i64_tensor("one", {1, 1})}},
                                 17);
  const Graph g = import_onnx(bytes_of(text), "test");
  EXPECT_EQ(evaluate(g, {{"x", real({1}, {3})}}).at(0).shape(), (std::vector<Index>{1, 1}));
}

}  // namespace
}  // namespace rlx::test
