// Known traps of graphs as a whole: refusals, names, threads, identity, inputs by name, states, ops of users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "core/error.h"
#include "ir/op_table.h"
#include "ir/print.h"
#include "ops/attention/attention.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter_add/scatter_add.h"
#include "ops/softmax/softmax.h"
#include "ops/topk/topk.h"
#include "ops/transpose/transpose.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Shape = std::vector<Index>;

std::vector<const OpDef*> every_op() {
  std::vector<const OpDef*> all;
  for (const OpFolder& f : op_folders()) {
    for (const OpDef* op : f.ops()) all.push_back(op);
  }
  return all;
}

TEST(Pitfalls, P102_WhatCannotRunIsAnErrorWithTheNameOfTheOp) {
  std::size_t refused = 0;
  for (const OpDef* op : every_op()) {
    EXPECT_TRUE(op->has_reference() || op->has_definition()) << op->name();
    for (const AnyFailure& f : op->failures()) {
      Builder b;
      Values operands;
      for (const TensorType& t : f.types) operands.push_back(b.input("a" + std::to_string(operands.size()), t));
      EXPECT_THAT([&] { b.emit(*op, f.attrs, operands); },
                  ThrowsMessage<Error>(AllOf(HasSubstr(std::string(op->name())), HasSubstr(f.message))));
      ++refused;
    }
  }
  EXPECT_GT(refused, 100u);
  Builder b;
  const auto in = [&](DType d, std::vector<Dim> dims) {
    return b.input("x" + std::to_string(b.graph().inputs.size()), {d, std::move(dims)});
  };
  const Value x = in(DType::f32, {2, 3, 4}), i = in(DType::i32, {2, 3}), flag = in(DType::boolean, {2, 3});
  EXPECT_THAT([&] { transpose(x, {0, 0, 2}); }, ThrowsMessage<Error>(HasSubstr("transpose")));
  EXPECT_THAT([&] { transpose(x, {0, 1}); }, ThrowsMessage<Error>(HasSubstr("transpose")));
  EXPECT_THAT([&] { softmax(x, 3); }, ThrowsMessage<Error>(HasSubstr("softmax")));
  EXPECT_THAT([&] { softmax(i, 0); }, ThrowsMessage<Error>(HasSubstr("softmax")));
  EXPECT_THAT([&] { layer_norm(i); }, ThrowsMessage<Error>(HasSubstr("layer_norm")));
  EXPECT_THAT([&] { matmul(x, flag); }, ThrowsMessage<Error>(HasSubstr("matmul")));
  EXPECT_THAT([&] { reshape(x, {5, 5}); }, ThrowsMessage<Error>(HasSubstr("reshape")));
  EXPECT_THAT([&] { broadcast(x, {2, 3, 5}); }, ThrowsMessage<Error>(HasSubstr("broadcast")));
  EXPECT_THAT([&] { topk(x, 5); }, ThrowsMessage<Error>(HasSubstr("topk")));
  EXPECT_THAT([&] { attention(x, x, x); }, ThrowsMessage<Error>(HasSubstr("attention")));
  EXPECT_THAT([&] { rope(x, i, i); }, ThrowsMessage<Error>(HasSubstr("rope")));
  EXPECT_THAT([&] { mean(flag, {0}); }, ThrowsMessage<Error>(HasSubstr("reduce")));
}

// Neither reference nor definition: nothing can run it.
constinit const Op<NoAttrs> unknown_meaning{{
    .name = "unknown_meaning",
    .doc = "An op that is only a name.",
    .infer = [](const NoAttrs&, Types in) { return in[0]; },
}};

TEST(Pitfalls, P102_AnOpWithoutMeaningIsNoNoOp) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2}});
  const Graph g = b.finish({b.emit_one(unknown_meaning, NoAttrs{}, {x})});
  EXPECT_THAT([&] { evaluate(g, std::vector<Tensor>{floats({2}, {1, 2})}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("%1"), HasSubstr("unknown_meaning"))));
  EXPECT_THAT([&] { gradient(g); }, ThrowsMessage<Error>(HasSubstr("unknown_meaning")));
}

TEST(Pitfalls, P105_EveryOpHasAStableName) {
  const OpRegistry registry;
  std::set<std::string_view> names;
  for (const OpDef* op : every_op()) {
    const std::string name(op->name());
    EXPECT_TRUE(names.insert(op->name()).second) << name;
    EXPECT_TRUE(name.size() > 2 || name == "or") << name;
    EXPECT_NE(name, "other");
    EXPECT_EQ(registry.find(name), op);
  }
  // The input is a name of the text form and no op of a folder.
  EXPECT_GE(registry.all().size(), names.size());
}

TEST(Pitfalls, P104_OneGraphRunsOnManyThreads) {
  const std::vector<Tensor> shapes{Tensor(DType::f32, {2, 5, 7}), Tensor(DType::f32, {7, 7}), Tensor(DType::f32, {7})};
  const Graph g = fused(graph_of(shapes, [](const Values& v) {
    return Values{layer_norm(softmax(matmul(v[0], v[1])) + v[2], {-1, 1e-5}), sum(v[0], {0, 2})};
  }));
  const auto inputs = [](Index seed) {
    return std::vector<Tensor>{counted({2, 5, 7}, static_cast<double>(seed), 0.125),
                               counted({7, 7}, -1, 0.0625 * static_cast<double>(seed + 1)), counted({7}, 0, 1)};
  };
  std::vector<std::vector<Tensor>> alone, together(8);
  for (Index i = 0; i < 8; ++i) alone.push_back(evaluate(g, inputs(i)));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] { together[i] = evaluate(g, inputs(static_cast<Index>(i))); });
    }
  }
  for (std::size_t i = 0; i < 8; ++i) {
    ASSERT_EQ(together[i].size(), 2u);
    for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(identical(together[i][k], alone[i][k])) << i;
    EXPECT_EQ(identical(alone[i][0], alone[0][0]), i == 0);
  }
}

struct PickAttrs {
  double weight = 1;
  std::string tag;
  static void fields(auto& a, auto&& f) {
    f("weight", a.weight);
    f("tag", a.tag);
  }
};

// A user's op of two element types whose stated gradient is ten times the derivative.
constinit const Op<PickAttrs> pick_op{{
    .name = "user_pick",
    .doc = "Elements of f64 values by i32 positions, times a weight.",
    .infer =
        [](const PickAttrs&, Types in) {
          require(in[0].dtype == DType::f64 && in[1].dtype == DType::i32, "expected f64 and i32");
          return TensorType{DType::f64, in[1].dims};
        },
    .vjp = [](const PickAttrs& a, const VjpArgs& v) -> Grads {
      const Value u = v.dout() * like(v.dout(), 10 * a.weight);
      return {scatter_add(u, v.in[1], 0, v.in[0].dim(0)), std::nullopt};
    },
    .reference =
        [](const PickAttrs& a, const RefArgs& r) {
          const std::vector<double> x = load<double>(r.in[0]);
          std::vector<double> y;
          for (const Index i : load<Index>(r.in[1])) y.push_back(a.weight * x[static_cast<std::size_t>(i)]);
          store(r.out[0], y);
        },
}};

TEST(Pitfalls, P106_OpsOfUsers) {
  const std::string text = R"(rlx 1
graph(%x: f64[3], %i: i32[2]) {
  %0 = user_pick %x, %i {weight=0.5, tag="a \"b\" \\"} : f64[2]
  return %0
}
)";
  EXPECT_THAT([&] { parse(text); }, ThrowsMessage<Error>(HasSubstr("user_pick")));
  OpRegistry ops;
  ops.add(pick_op);
  static constinit const Op<NoAttrs> twin{{.name = "user_pick", .doc = ""}};
  EXPECT_THROW(ops.add(twin), Error);
  const Graph g = parse(text, {.ops = &ops});
  EXPECT_EQ(print(g), text);
  EXPECT_EQ(g.nodes.back().attrs.as<PickAttrs>().tag, "a \"b\" \\");
  const std::vector<Tensor> in{floats({3}, {1, 0.1, 1e300}, DType::f64), ints(DType::i32, {2}, {2, 1})};
  EXPECT_THAT(reals(run_graph(g, in)[0]), ElementsAre(0.5e300, 0.05));
  EXPECT_THAT(reals(pull_back(g, in, {floats({2}, {1, 3}, DType::f64)})[0]), ElementsAre(0, 15, 5));
  Builder b;
  const Value x = b.input("x", {DType::f32, {3}}), i = b.input("i", {DType::i32, {2}});
  EXPECT_THAT([&] { b.emit_one(pick_op, PickAttrs{}, {x, i}); },
              ThrowsMessage<Error>(AllOf(HasSubstr("user_pick"), HasSubstr("expected f64 and i32"))));
}

TEST(Pitfalls, P71_R25_TheTwoFormsThatAreComparedDiffer) {
  const std::vector<Tensor> in{counted({3, 5}, -1, 0.25), counted({5}, 0, 1)};
  const Graph g = graph_of(in, [](const Values& v) { return Values{gelu(v[0] + v[1]), exp(v[0])}; });
  const Graph one = fused(g);
  const auto bodies = [](const Graph& f) {
    return std::ranges::count_if(f.nodes, [](const Node& n) { return n.op == &fusion_op(); });
  };
  EXPECT_EQ(bodies(g), 0);
  EXPECT_EQ(bodies(one), 1);
  EXPECT_EQ(one.nodes.size(), in.size() + 1);
  EXPECT_FALSE(same(g, one));
  EXPECT_TRUE(same(inline_bodies(one), g));
}

TEST(Pitfalls, R13_AParameterOfTwoBranchesDeclaredLate) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2, 4}}), y = relu(x) + x, w = b.input("w", {DType::f32, {4}});
  const Graph g = b.finish({x * w, y * w});
  const Tensor data = floats({2, 4}, {1, -2, 3, -4, 5, -6, 7, -8});
  for (const double scale : {1.0, 10.0}) {
    const Tensor weight = floats({4}, {scale, 2 * scale, 3 * scale, 4 * scale});
    const std::vector<Tensor> out = evaluate(g, NamedTensors{{"x", data}, {"w", weight}});
    for (std::size_t i = 0; i < 8; ++i) {
      const double v = reals(data)[i], t = scale * static_cast<double>(1 + i % 4);
      EXPECT_EQ(reals(out[0])[i], v * t);
      EXPECT_EQ(reals(out[1])[i], (std::max(v, 0.0) + v) * t);
    }
    const Tensor ones = floats({2, 4}, std::vector<double>(8, 1.0));
    const std::vector<Tensor> grads = pull_back(g, {data, weight}, {ones, ones});
    EXPECT_THAT(reals(grads[1]), ElementsAre(6 + 12, -8 - 8, 10 + 20, -12 - 12));
  }
}

TEST(Pitfalls, R15_GraphsThatDifferALittleAreNotTheSame) {
  const auto with = [](DType d, double number, double epsilon, Index size, bool keep) {
    Builder b;
    const Value x = b.input("x", {d, {2, size}});
    const Value y = layer_norm(x + constant(b, d, number), {-1, epsilon});
    return b.finish({sum(y, {1}, keep)});
  };
  Builder other;
  const Value x = other.input("x", {DType::f32, {2, 3}});
  const Value y = rms_norm(x + constant(other, DType::f32, 1.0), {-1, 1e-5});
  const Graph graphs[] = {
      with(DType::f32, 1, 1e-5, 3, false),   with(DType::f32, 1.0000001, 1e-5, 3, false),
      with(DType::f32, 0.0, 1e-5, 3, false), with(DType::f32, -0.0, 1e-5, 3, false),
      with(DType::f32, 1, 1e-6, 3, false),   with(DType::f16, 1, 1e-5, 3, false),
      with(DType::f64, 1, 1e-5, 3, false),   with(DType::f32, 1, 1e-5, 4, false),
      with(DType::f32, 1, 1e-5, 3, true),    other.finish({sum(y, {1})}),
  };
  for (const Graph& a : graphs) {
    for (const Graph& b : graphs) {
      EXPECT_EQ(same(a, b), &a == &b);
      EXPECT_EQ(a.hash() == b.hash(), &a == &b);
    }
  }
  const Graph again = with(DType::f32, 1, 1e-5, 3, false);
  EXPECT_TRUE(same(again, graphs[0]));
  EXPECT_EQ(again.hash(), graphs[0].hash());
}

TEST(Pitfalls, R17_WrongInputsAreErrorsAndChangeNothing) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2, 3}}), w = b.input("w", {DType::f32, {3}});
  const Value total = b.input("total", {DType::f32, {2, 3}});
  b.state("sum", total, total + x * w);
  const Graph g = b.finish({x * w});
  State state(g, {});
  state.set("sum", floats({2, 3}, {1, 1, 1, 1, 1, 1}));
  const Tensor data = floats({2, 3}, {1, 2, 3, 4, 5, 6}), weight = floats({3}, {1, 10, 100});
  const auto refused = [&](const NamedTensors& in, const std::string& message) {
    EXPECT_THAT([&] { evaluate(g, in, &state); }, ThrowsMessage<Error>(HasSubstr(message)));
    EXPECT_EQ(reals(state.at("sum")), std::vector<double>(6, 1.0));
  };
  refused({{"x", data}}, "input w is missing");
  refused({{"x", data}, {"w", floats({4}, {1, 2, 3, 4})}}, "input w is f32[4]");
  refused({{"x", data}, {"w", floats({2}, {1, 2})}}, "input w is f32[2]");
  refused({{"x", data}, {"w", floats({1, 3}, {1, 2, 3})}}, "input w is f32[1,3], expected f32[3]");
  refused({{"x", data}, {"w", floats({3}, {1, 2, 3}, DType::f64)}}, "input w is f64[3], expected f32[3]");
  refused({{"x", data}, {"w", weight}, {"v", weight}}, "the graph has no input \"v\"");
  EXPECT_THROW(state.set("sum", floats({3, 2}, {1, 2, 3, 4, 5, 6})), Error);
  EXPECT_THROW(state.set("mean", floats({2, 3}, {1, 2, 3, 4, 5, 6})), Error);
  EXPECT_EQ(reals(state.at("sum")), std::vector<double>(6, 1.0));
  EXPECT_THAT(reals(evaluate(g, NamedTensors{{"x", data}, {"w", weight}}, &state)[0]),
              ElementsAre(1, 20, 300, 4, 50, 600));
  EXPECT_THAT(reals(state.at("sum")), ElementsAre(2, 21, 301, 5, 51, 601));
}

TEST(Pitfalls, R21_NamedMistakes) {
  const Tensor x = floats({3, 2}, {1, 200, 2, 0, 3, -200});
  const std::vector<double> y = reals(run({x}, [](const Values& v) { return softmax(v[0], 0); }));
  const double total = std::exp(-2) + std::exp(-1) + 1;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(y[2 * i], std::exp(static_cast<double>(i) - 2) / total, 1e-7);
    EXPECT_EQ(y[2 * i + 1], i == 0);
  }
  const Tensor a = counted({2, 1, 3, 4}, 0, 1), b = counted({5, 4, 2}, -3, 1);
  const Tensor c = run({a, b}, [](const Values& v) { return matmul(v[0], v[1]); });
  ASSERT_EQ(c.shape(), (Shape{2, 5, 3, 2}));
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t outer = i / 30, batch = i / 6 % 5, row = i / 2 % 3, column = i % 2;
    double want = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      want += static_cast<double>(outer * 12 + row * 4 + k) * (static_cast<double>(batch * 8 + k * 2 + column) - 3);
    }
    EXPECT_EQ(reals(c)[i], want) << i;
  }
  const std::vector<Tensor> choice{ints(DType::boolean, {2, 1, 3}, {1, 0, 1, 0, 1, 0}), counted({2, 4, 3}, 0, 1),
                                   floats({4, 1}, {-1, -2, -3, -4})};
  const std::vector<double> chosen = reals(run(choice, [](const Values& v) { return select(v[0], v[1], v[2]); }));
  for (std::size_t i = 0; i < 24; ++i) {
    const bool on = (i / 12 == 0) == (i % 3 != 1);
    EXPECT_EQ(chosen[i], on ? static_cast<double>(i) : -static_cast<double>(1 + i / 3 % 4)) << i;
  }
  const Tensor big = ints(DType::i32, {2}, {16777216, 16777217}), one = ints(DType::i32, {}, {1});
  const std::vector<Tensor> exact = run_all({big, one}, [](const Values& v) {
    return Values{v[0] + v[1],
                  v[0] * v[1],
                  maximum(v[0], v[1]),
                  sum(v[0], {0}),
                  reshape(transpose(concat({reshape(v[0], {1, 2}), reshape(v[0], {1, 2})}, 0), {1, 0}), {4}),
                  equal(v[0], v[0] + v[1])};
  });
  EXPECT_THAT(wholes(exact[0]), ElementsAre(16777217, 16777218));
  EXPECT_THAT(wholes(exact[1]), ElementsAre(16777216, 16777217));
  EXPECT_THAT(wholes(exact[2]), ElementsAre(16777216, 16777217));
  EXPECT_THAT(wholes(exact[3]), ElementsAre(33554433));
  EXPECT_THAT(wholes(exact[4]), ElementsAre(16777216, 16777216, 16777217, 16777217));
  EXPECT_THAT(wholes(exact[5]), ElementsAre(0, 0));
}

TEST(Pitfalls, P29_MomentumStepsInEveryWriting) {
  const std::vector<double> rates{0.1, 0.2, 0.05};
  for (const bool uniform : {true, false}) {
    for (const bool commuted : {false, true}) {
      for (const bool read_twice : {false, true}) {
        Builder b;
        const TensorType t{DType::f64, {2, 3}};
        const Value p = b.input("p", t), v = b.input("v", t), g = b.input("g", t);
        const Value lr = uniform ? constant(b, DType::f64, 0.1) : constant(b, floats({3}, rates, DType::f64));
        const Value momentum = constant(b, DType::f64, 0.9);
        const Value next = commuted ? g + momentum * v : v * momentum + g;
        b.state("p", p, p - (commuted ? lr * next : next * lr));
        b.state("v", v, next);
        const Graph graph = b.finish(read_twice ? Values{next + next, p} : Values{p});
        State state(graph, {});
        std::vector<double> at(6), speed(6, 0.0);
        for (std::size_t i = 0; i < 6; ++i) at[i] = 1 + static_cast<double>(i);
        state.set("p", floats({2, 3}, at, DType::f64));
        for (int step = 0; step < 3; ++step) {
          const std::vector<double> before = at;
          std::vector<double> slope;
          for (std::size_t i = 0; i < 6; ++i) {
            slope.push_back(at[i] * 0.5 + step);
            speed[i] = speed[i] * 0.9 + slope[i];
            at[i] -= speed[i] * (uniform ? 0.1 : rates[i % 3]);
          }
          const std::vector<Tensor> out =
              evaluate(graph, NamedTensors{{"g", floats({2, 3}, slope, DType::f64)}}, &state);
          expect_near(state.at("p"), at, 1e-14);
          expect_near(state.at("v"), speed, 1e-14);
          expect_near(out.back(), before, 1e-14);
          for (std::size_t i = 0; i < 6 && read_twice; ++i) EXPECT_NEAR(reals(out[0])[i], 2 * speed[i], 1e-14);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rlx::test
