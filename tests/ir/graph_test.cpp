// Builder and graph: two results, symbolic sizes, states, block encodings; interning, instances, labels, hash.
#include "ir/graph.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "probe_ops.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

const Dim batch = Dim::symbol("B", 1, 8), steps = Dim::symbol("S", 2, 512);

Graph checked(Graph g) {
  verify(g);
  EXPECT_TRUE(same(g, round_trip(g)));
  return g;
}

TEST(Graph, TwoResults) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {batch, steps * 2}});
  const Values h = b.emit(halves_op, Attrs(AxisAttrs{1}), std::vector{x});
  ASSERT_EQ(h.size(), 2u);
  EXPECT_EQ(h[1].type().text(), "f32[B,S]");
  const Graph g = checked(b.finish({h[1], h[0] * h[1]}));
  EXPECT_EQ(g.nodes[1].results.size(), 2u);
  EXPECT_EQ(g.outputs[0], (Operand{1, 1}));
  const Tensor in = Tensor::of<double>(DType::f32, {1, 4}, {1, 2, 3, 4});
  EXPECT_EQ(error_of([&] { evaluate(g, std::vector{in}); }), "size symbol S has no value: no input shows it alone");
  const std::vector<Tensor> out = evaluate(g, std::vector{in}, {.dims = {{"S", 2}}});
  EXPECT_EQ(load<double>(out[0]), (std::vector<double>{3, 4}));
  EXPECT_EQ(load<double>(out[1]), (std::vector<double>{3, 8}));
}

TEST(Graph, SymbolicBatch) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {batch, 4}}), w = b.input("w", {DType::f32, {1, 4}});
  const Value flat = reshape(x + w, {batch * 4});
  const Graph g = checked(b.finish({flat, sizes(b, {batch * 4})}));
  EXPECT_EQ(g.symbols, (DimSymbols{{"B", {1, 8}}}));
  EXPECT_EQ(g.type(g.outputs[0]).text(), "f32[4*B]");
  const std::vector<Dim> elements{batch * 4};
  EXPECT_EQ(g.values.at(g.outputs[1]), elements);
}

TEST(Graph, StatePair) {
  Builder b;
  const Value kv = b.input("kv", {DType::f32, {batch, 2}}), x = b.input("x", {DType::f32, {batch, 2}});
  const Value next = kv + x;
  b.state("cache", kv, next);
  const Graph g = checked(b.finish({exp(kv)}));
  ASSERT_EQ(g.states.size(), 1u);
  EXPECT_EQ(g.states[0], (StatePair{"cache", kv.at, next.at}));
  EXPECT_TRUE(g.is_output(next.at.node)) << "the new value of a state escapes";
  EXPECT_TRUE(live_nodes(g)[next.at.node]);
}

TEST(Graph, BlockEncodedType) {
  Builder b;
  const Value w = b.input("w", TensorType(DType::f32, {steps, 64}, q4_0, -1));
  const Value dense = b.emit_one(decode_op, NoAttrs{}, {w});
  const Graph g = checked(b.finish({dense}));
  EXPECT_EQ(w.builder, &b);
  EXPECT_EQ(g.nodes[0].results[0].text(), "f32:q4_0@1[S,64]");
  const Tensor data = encode_q4_0({2, 64}, 0.5, 3);
  const Tensor out = evaluate(g, std::vector{data})[0];
  EXPECT_EQ(out.type().text(), "f32[2,64]");
  const unsigned first = std::to_integer<unsigned>(data.bytes()[2]) & 15;
  EXPECT_EQ(load<double>(out)[0], (static_cast<double>(first) - 8) * 0.5);
  EXPECT_EQ(error_of([&] { evaluate(g, std::vector{Tensor(DType::f32, {2, 64})}); }),
            "input w is f32[2,64], expected f32:q4_0@1[S,64]");
}

TEST(Graph, EncodedConstantGoesToTheSideFile) {
  Builder b;
  const Value w = constant(b, encode_q4_0({2, 64}, 0.5, 3));
  const Graph g = checked(b.finish({b.emit_one(decode_op, NoAttrs{}, {w})}));
  ConstantSink sink;
  EXPECT_NE(print(g, &sink).find("{data=@k0} : f32:q4_0@1[2,64]"), std::string::npos);
  EXPECT_EQ(evaluate(g, std::vector<Tensor>{})[0].count(), 128);
}

TEST(Interning, EqualNodesAreOne) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), y = b.input("y", {DType::f32, {4}});
  EXPECT_EQ((x + y).at, (x + y).at);
  EXPECT_NE((x + y).at, (y + x).at);
  EXPECT_NE((x + y).at, (x - y).at);
  EXPECT_EQ(constant(b, DType::f32, 1).at, constant(b, DType::f32, 1).at);
  EXPECT_NE(constant(b, DType::f32, 1).at, constant(b, DType::f64, 1).at);
  EXPECT_NE(constant(b, DType::f32, 0.0).at, constant(b, DType::f32, -0.0).at) << "bits decide";
  EXPECT_EQ(constant(b, DType::f32, std::nan("")).at, constant(b, DType::f32, std::nan("")).at);
  const std::size_t before = b.graph().nodes.size();
  b.emit(halves_op, Attrs(AxisAttrs{0}), std::vector{x});
  b.emit(halves_op, Attrs(AxisAttrs{0}), std::vector{x});
  EXPECT_EQ(b.graph().nodes.size(), before + 1);
}

TEST(Interning, InstancesKeepCopiesApart) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  const OpDef& op = *registry().find("exp");
  const Value e0 = b.emit(op, Attrs(), std::vector{x})[0], e1 = b.emit(op, Attrs(), std::vector{x}, {}, 1)[0];
  EXPECT_NE(e0.at, e1.at);
  EXPECT_EQ(b.emit(op, Attrs(), std::vector{x}, {}, 1)[0].at, e1.at);
  const Graph g = checked(b.finish({e0, e1}));
  EXPECT_EQ(g.nodes.size(), 3u);
  EXPECT_EQ(drop_dead(g).nodes[2].instance, 1u);
}

TEST(Interning, LargeConstantsByStorage) {
  Builder b;
  const Tensor big(DType::f32, {17}), other(DType::f32, {17}), small(DType::f32, {16}), equal(DType::f32, {16});
  EXPECT_EQ(constant(b, big).at, constant(b, big).at);
  EXPECT_NE(constant(b, big).at, constant(b, other).at) << "above 64 bytes contents are not compared";
  EXPECT_EQ(constant(b, small).at, constant(b, equal).at);
  EXPECT_NE(constant(b, big).at, constant(b, big.reshaped({17, 1})).at);
}

TEST(Interning, BodiesByStructure) {
  const auto body = [](DType d) {
    Builder b;
    const Value x = b.input("a0", {d, {4}});
    return std::make_shared<Graph>(b.finish({exp(x)}));
  };
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  const Values one = b.emit(*registry().find("fusion"), Attrs(), std::vector{x}, {body(DType::f32)});
  const Values two = b.emit(*registry().find("fusion"), Attrs(), std::vector{x}, {body(DType::f32)});
  EXPECT_EQ(one[0].at, two[0].at);
  EXPECT_TRUE(same(*body(DType::f32), *body(DType::f32)));
  EXPECT_FALSE(same(*body(DType::f32), *body(DType::f64)));
}

TEST(Graph, HashSeesEverythingButLabels) {
  const auto make = [](double number, const TensorType& type, bool labelled, bool state, const char* name = "x") {
    Builder b;
    const Value x = b.input(name, type);
    const Value y = b.emit_one(knobs_op, KnobAttrs{.ratio = number}, {x});
    if (labelled) b.label(y, "y");
    if (state) b.state("s", x, y);
    return b.finish({y});
  };
  const TensorType f{DType::f32, {batch, 64}}, q(DType::f32, {batch, 64}, q4_0, 1),
      q0(DType::f32, {batch, 64}, q4_0, 0);
  const Graph g = make(1, f, false, false);
  EXPECT_EQ(g.hash(), make(1, f, true, false).hash());
  EXPECT_TRUE(same(g, make(1, f, true, false)));
  EXPECT_NE(g.hash(), make(2, f, false, false).hash());
  EXPECT_NE(g.hash(), make(1, f.with(0, Dim(3)), false, false).hash());
  EXPECT_NE(g.hash(), make(1, q, false, false).hash());
  EXPECT_NE(make(1, q0, false, false).hash(), make(1, q, false, false).hash());
  EXPECT_NE(g.hash(), make(1, f, false, true).hash());
  EXPECT_FALSE(same(g, make(1, f, false, false, "z")));
}

TEST(Graph, Users) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  const Value y = exp(x), z = y * y;
  const Graph g = b.finish({z + x});
  const auto users = [&](Value v) { return std::vector<Id>(g.users(v.at.node).begin(), g.users(v.at.node).end()); };
  EXPECT_EQ(users(x), (std::vector<Id>{1, 3}));
  EXPECT_EQ(users(y), (std::vector<Id>{2, 2})) << "once for every operand";
  EXPECT_TRUE(g.is_output(3));
  EXPECT_FALSE(g.is_output(2));
}

TEST(Builder, ChecksOfUnprovedSizes) {
  const Dim t = Dim::symbol("T", 1, 512);
  Builder b;
  const Value x = b.input("x", {DType::f32, {steps}}), y = b.input("y", {DType::f32, {t}});
  const Value z = x + y;
  b.check(t, steps, "the caller's");
  b.check(t, steps, "the caller's");
  const Graph g = checked(b.finish({z}));
  ASSERT_EQ(g.checks.size(), 2u);
  EXPECT_EQ(g.checks[0], (Check{steps, t, "broadcast"}));
  EXPECT_EQ(g.checks[1], (Check{t, steps, "the caller's"}));
  const auto run = [&](Index n, Index m) {
    return evaluate(g, std::vector{Tensor(DType::f32, {n}), Tensor(DType::f32, {m})}).size();
  };
  EXPECT_EQ(run(3, 3), 1u);
  EXPECT_EQ(error_of([&] { run(3, 4); }), "broadcast: S is 3, T is 4, they must be equal");
}

TEST(Builder, ProvableChecksLeaveNoTrace) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}});
  b.check(steps + 1, steps + 1, "trivial");
  const Graph g = checked(b.finish({x}));
  EXPECT_TRUE(g.checks.empty());
  EXPECT_TRUE(g.symbols.empty());
}

TEST(Builder, AFailedCallChangesNothing) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {steps, 4}});
  const Dim unseen = Dim::symbol("Q", 1, 4), clash = Dim::symbol("S", 1, 3);
  EXPECT_NE(error_of([&] { reshape(x, {unseen, Dim(5000)}); }), "") << "more elements than x can have";
  EXPECT_NE(error_of([&] { b.input("y", {DType::f32, {unseen, clash}}); }), "");
  EXPECT_NE(error_of([&] { iota(b, DType::f32, {unseen, clash}, 0); }), "");
  EXPECT_NE(error_of([&] { b.check(unseen, unseen + 1, "never"); }), "");
  const Value y = b.input("y", {DType::f32, {4}});
  const Graph g = checked(b.finish({x + y}));
  EXPECT_EQ(g.symbols, (DimSymbols{{"S", {2, 512}}}));
  EXPECT_EQ(g.nodes.size(), 3u);
  EXPECT_TRUE(g.checks.empty());
}

TEST(Builder, GraphWithoutOutputsOrInputs) {
  Builder b;
  EXPECT_EQ(print(checked(b.finish({}))), "rlx 1\ngraph() {\n  return\n}\n");
}

TEST(InlineGraph, BringsNodesChecksAndLabels) {
  const Dim t = Dim::symbol("T", 1, 512);
  Builder inner;
  const Value p = inner.input("p", {DType::f32, {steps}}), q = inner.input("q", {DType::f32, {t}});
  const Value sum = p + q;
  inner.label(sum, "sum");
  const Graph body = inner.finish({sum, p});

  Builder b;
  const Value x = b.input("x", {DType::f32, {steps}}), y = b.input("y", {DType::f32, {t}});
  const Values out = b.inline_graph(body, std::vector{x, y});
  EXPECT_EQ(out[1].at, x.at);
  const Graph g = checked(b.finish({out[0]}));
  EXPECT_EQ(g.checks.size(), 1u);
  EXPECT_EQ(g.labels, (std::vector<Label>{{out[0].at, "sum"}}));
}

}  // namespace
}  // namespace rlx::test
