// Rewriter, rewrite, drop_dead, substitute_symbols, outline and inline_bodies; random graphs and groupings.
#include "ir/rewrite.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "ir/outline.h"
#include "ir/verify.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "probe_ops.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

const Dim steps = Dim::symbol("S", 2, 512), other = Dim::symbol("T", 2, 512);
const TensorType vector_type{DType::f32, {steps}};

TEST(Rewriter, CopiesInputsStatesChecksLabelsNamesAndInstances) {
  Builder b;
  const Value x = b.input("x", vector_type), unused = b.input("unused", {DType::i32, {}}),
              y = b.input("y", {DType::f32, {other}});
  const Value dead = exp(y), sum = b.emit(*registry().find("add"), Attrs(), std::vector{y, x}, {}, 3)[0];
  b.label(sum, "sum");
  b.label(dead, "dead");
  b.label(unused, "an input");
  b.state("s", x, sum);
  const Graph g = b.finish(std::vector{sum}, {"out"}), copy = drop_dead(g);
  verify(copy);
  verify_interface(g, copy);
  EXPECT_EQ(copy.nodes.size(), 4u);
  EXPECT_EQ(copy.nodes[3].instance, 3u);
  EXPECT_EQ(copy.labels, (std::vector<Label>{{{3, 0}, "sum"}, {{1, 0}, "an input"}})) << "labels of dead nodes go";
  EXPECT_EQ(copy.checks, g.checks);
  EXPECT_EQ(copy.output_names, g.output_names);
  EXPECT_TRUE(same(copy, drop_dead(copy)));
}

TEST(Rewriter, RuleReplacesNodes) {
  Builder b;
  const Value x = b.input("x", vector_type);
  const Value y = exp(x), l = log(y), n = neg(y), z = l + n;
  b.label(z, "z");
  b.label(y, "y");
  const Graph g = b.finish({z});
  const OpDef* exp_op = registry().find("exp");
  const Graph after = rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    if (r.from().nodes[id].op != exp_op) return {};
    return Values{tanh(r.operands(id)[0])};
  });
  verify(after);
  EXPECT_EQ(print(after),
            "rlx 1\ngraph(%x: f32[S])\n  dims(S: 2..512) {\n  %0 = tanh %x : f32[S]\n  %1 = log %0 : f32[S]\n"
            "  %2 = neg %0 : f32[S]\n  %3 = add %1, %2 : f32[S]\n  return %3\n} names(%3: \"z\", %0: \"y\")\n");
}

TEST(Rewriter, OneResultOfTwoMayBeReplaced) {
  Builder b;
  const Value x = b.input("x", vector_type);
  const Values r = b.emit(sum_and_product_op, Attrs(), std::vector{x, x});
  const Graph g = b.finish({r[0], r[1]});
  Rewriter w(g);
  w.replace({1, 1}, exp(w.value({0, 0})));
  const Graph after = w.finish();
  verify(after);
  EXPECT_EQ(print(after),
            "rlx 1\ngraph(%x: f32[S])\n  dims(S: 2..512) {\n  %0 = exp %x : f32[S]\n"
            "  %1 = sum_and_product %x, %x : f32[S], f32[S]\n  return %1#0, %0\n}\n");
}

TEST(Rewriter, MisuseIsOurBug) {
  Builder b, stranger;
  const Value x = b.input("x", vector_type);
  const Graph g = b.finish({exp(x)});
  Rewriter w(g);
  EXPECT_NE(internal_error_of([&] { (void)w.value({1, 0}); }), "");
  EXPECT_NE(internal_error_of([&] { w.copy(0); }), "");
  EXPECT_NE(internal_error_of([&] { w.replace({0, 0}, w.value({0, 0})); }), "");
  EXPECT_NE(internal_error_of([&] { w.replace({1, 0}, constant(w.builder(), DType::f32, 1)); }), "") << "another type";
  EXPECT_NE(internal_error_of([&] { w.replace(1, {}); }), "");
  const Value far = stranger.input("x", vector_type);
  EXPECT_EQ(error_of([&] { w.replace({1, 0}, far); }), "a value of another graph, or none, is used as an operand");
}

TEST(Rewriter, TrackedElementsFollow) {
  Builder b;
  const Value x = b.input("x", vector_type);
  const Value s = sizes(b, {steps, 3}), t = reshape(s, {2});
  const Graph g = b.finish({x, reshape(t, {2, 1}), t}), copy = drop_dead(g);
  verify(copy);
  EXPECT_TRUE(same(g, copy));
  const std::vector<Dim> elements{steps, 3};
  EXPECT_EQ(copy.values.at(copy.outputs[2]), elements);
  EXPECT_EQ(copy.values.size(), g.values.size());
}

TEST(SubstituteSymbols, ReachesTypesAttributesChecksBodiesAndElements) {
  const Graph g = parse(R"(rlx 1
graph(%x: f32[S], %y: f32[T])
  dims(S: 2..512, T: 2..512) {
  %0 = sizes {dims=[2*S,T]} : i64[2]
  %1 = add %y, %x : f32[S]
  %2 = fusion %1 : f32[S], f32[3*S] = graph(%a0: f32[S]) {
    %0 = exp %a0 : f32[S]
    %1 = iota {dtype=f32, dims=[3*S]} : f32[3*S]
    return %0, %1
  }
  %3 = knobs %x {size=S, extent=S+1, sizes=[S,4]} : f32[S]
  check T = S "broadcast"
  check T = floordiv(S,3) "by hand"
  state s: %x -> %1
  return %0, %2#0 "e", %3
} names(%1: "sum"))",
                        parse_options());
  const Graph after = substitute_symbols(g, {{"S", other}});
  verify(after);
  EXPECT_EQ(after.symbols, (DimSymbols{{"T", {2, 512}}}));
  ASSERT_EQ(after.checks.size(), 1u) << "the provable one is gone";
  EXPECT_EQ(after.checks[0].right.text(), "floordiv(T,3)");
  EXPECT_EQ(after.values.at(after.outputs[0]), (std::vector<Dim>{other * 2, other}));
  EXPECT_EQ(after.nodes.back().attrs.print(), "size=T, extent=T+1, sizes=[T,4]");
  EXPECT_EQ(after.nodes[4].bodies[0]->symbols, after.symbols);
  EXPECT_NE(error_of([&] { substitute_symbols(g, {{"S", Dim(6)}, {"T", Dim(6)}}); }), "") << "6 is not floordiv(6,3)";
}

TEST(SubstituteSymbols, KeepsStatesLabelsAndNames) {
  Builder b;
  const Value x = b.input("x", vector_type), y = exp(x);
  b.state("s", x, y);
  b.label(y, "y");
  const Graph g = b.finish(std::vector{y}, {"out"}), after = substitute_symbols(g, {{"S", Dim(5)}});
  verify(after);
  EXPECT_EQ(print(after),
            "rlx 1\ngraph(%x: f32[5]) {\n  %0 = exp %x : f32[5]\n  state s: %x -> %0\n  return %0 \"out\"\n"
            "} names(%0: \"y\")\n");
  EXPECT_NE(error_of([&] { substitute_symbols(g, {{"S", Dim(1)}}); }), "") << "outside the bounds of S";
}

// ((x + y) * y, exp of it): nodes 2, 3, 4.
Graph small_graph() {
  Builder b;
  const Value x = b.input("x", vector_type), y = b.input("y", vector_type);
  const Value sum = x + y, product = sum * y, e = exp(product);
  b.label(sum, "sum");
  b.label(product, "product");
  b.label(product, "the product");
  return b.finish({e, product});
}

TEST(Outline, CapturesInOrderOfUseAndResultsInOrderOfNodes) {
  const Graph g = small_graph();
  const Graph o = outline(g, std::vector<Id>{0, 1, 4, 4, 4});
  verify(o);
  verify_interface(g, o);
  EXPECT_EQ(print(o), R"(rlx 1
graph(%x: f32[S], %y: f32[S])
  dims(S: 2..512) {
  %0 = fusion %x, %y : f32[S], f32[S] = graph(%a0: f32[S], %a1: f32[S]) {
    %0 = add %a0, %a1 : f32[S]
    %1 = mul %0, %a1 : f32[S]
    %2 = exp %1 : f32[S]
    return %1, %2
  } names(%0: "sum")
  return %0#1, %0#0
} names(%0#0: "product", %0#0: "the product")
)");
  const Graph back = inline_bodies(o);
  verify(back);
  EXPECT_TRUE(same(g, back));
  std::vector<Label> labels = back.labels;
  std::ranges::sort(labels, {}, [](const Label& l) { return std::pair(l.at.node, l.text); });
  EXPECT_EQ(labels, (std::vector<Label>{{{2, 0}, "sum"}, {{3, 0}, "product"}, {{3, 0}, "the product"}}))
      << "each label once";
}

TEST(Outline, SingleNodesStayAndDeadOnesGo) {
  Builder b;
  const Value x = b.input("x", vector_type), y = exp(x);
  exp(y);
  const Graph g = b.finish({y});
  EXPECT_TRUE(same(drop_dead(g), outline(g, std::vector<Id>{0, 1, 2})));
  EXPECT_TRUE(same(drop_dead(g), outline(g, std::vector<Id>{0, 1, 1}))) << "a dead member does not make a group";
}

TEST(Outline, StatesAndTwoResults) {
  Builder b;
  const Value x = b.input("x", vector_type), y = b.input("y", vector_type);
  const Values r = b.emit(sum_and_product_op, Attrs(), std::vector{x, y});
  const Value next = exp(r[1]);
  b.state("s", x, next);
  const Graph g = b.finish({r[0]});
  const Graph o = outline(g, std::vector<Id>{0, 1, 2, 2});
  verify(o);
  verify_interface(g, o);
  EXPECT_EQ(o.nodes.back().results.size(), 2u);
  EXPECT_EQ(o.states[0].output, (Operand{2, 1}));
  EXPECT_TRUE(same(g, inline_bodies(o)));
}

TEST(Outline, ConstantsAloneMakeAFusionWithoutOperands) {
  Builder b;
  const Value c = constant(b, DType::f32, 2);
  const Graph g = b.finish({exp(c) + c});
  const Graph o = outline(g, std::vector<Id>{2, 2, 2});
  verify(o);
  EXPECT_TRUE(o.nodes[0].operands.empty());
  EXPECT_TRUE(same(g, inline_bodies(o)));
  EXPECT_TRUE(identical(evaluate(g, std::vector<Tensor>{})[0], evaluate(o, std::vector<Tensor>{})[0]));
}

TEST(Outline, ACycleThroughANodeOutsideIsOurBug) {
  const Graph g = small_graph();
  EXPECT_NE(internal_error_of([&] {
              outline(g, std::vector<Id>{0, 1, 2, 3, 2});
            }).find("a group of nodes depends on itself through a node outside"),
            std::string::npos);
  EXPECT_NE(internal_error_of([&] { outline(g, std::vector<Id>{0, 1, 2, 3}); }), "");
  EXPECT_NE(internal_error_of([&] { outline(g, std::vector<Id>{0, 1, 9, 3, 4}); }), "");
  EXPECT_NE(internal_error_of([&] { outline(g, std::vector<Id>{0, 1, 3, 4, 4}); }), "") << "a root of another root";
  EXPECT_NE(internal_error_of([&] { outline(g, std::vector<Id>{4, 1, 2, 3, 4}); }), "") << "an input in a group";
}

TEST(Outline, BodiesCarryTheirChecks) {
  Builder b;
  const Value x = b.input("x", vector_type), y = b.input("y", {DType::f32, {other}});
  const Graph g = b.finish({exp(x + y)});
  const Graph o = outline(g, std::vector<Id>{0, 1, 3, 3});
  verify(o);
  verify_interface(g, o);
  EXPECT_EQ(o.checks, g.checks);
  EXPECT_EQ(error_of([&] { evaluate(o, std::vector{Tensor(DType::f32, {3}), Tensor(DType::f32, {4})}); }),
            "broadcast: S is 3, T is 4, they must be equal");
  EXPECT_TRUE(same(g, inline_bodies(o)));
}

// Random graphs of scalar ops on vectors, with an op of two results.
Graph random_graph(std::size_t size) {
  Builder b;
  Values all{b.input("x", vector_type), b.input("y", vector_type), b.input("z", vector_type)};
  const auto pick = [&] {
    return all[*rc::gen::inRange<std::size_t>(all.size() > 8 ? all.size() - 8 : 0, all.size())];
  };
  for (std::size_t i = 0; i < size; ++i) {
    switch (*rc::gen::inRange(0, 7)) {
      case 0:
        all.push_back(pick() + pick());
        break;
      case 1:
        all.push_back(pick() * pick());
        break;
      case 2:
        all.push_back(tanh(pick()));
        break;
      case 3:
        all.push_back(maximum(pick(), pick()));
        break;
      case 4:
        all.push_back(pick() + constant(b, DType::f32, *rc::gen::inRange(-3, 4)));
        break;
      case 5:
        all.push_back(select(less(pick(), pick()), pick(), pick()));
        break;
      default:
        for (const Value& v : b.emit(sum_and_product_op, Attrs(), std::vector{pick(), pick()})) all.push_back(v);
    }
    if (*rc::gen::inRange(0, 4) == 0) b.label(all.back(), "n" + std::to_string(i));
  }
  Values outputs{all.back(), pick()};
  b.state("s", all[0], pick());
  return b.finish(outputs);
}

// Ranges of consecutive nodes are convex; so are subsets of a range whose complement in it forms no path: here, each
// node joins the group of one of its operands only while no other operand lies behind the group's first member.
std::vector<Id> random_groups(const Graph& g) {
  std::vector<Id> root(g.nodes.size());
  std::iota(root.begin(), root.end(), Id{0});
  std::vector<Id> place(g.nodes.size(), 0);  // groups in an order that respects all edges
  Id next = 1;
  for (Id i = 0; i < g.nodes.size(); ++i) {
    if (is_input(g.nodes[i])) continue;
    Id latest = 0;  // the latest group among the operands
    std::optional<Id> of;
    for (const Operand o : g.nodes[i].operands) {
      if (place[o.node] >= latest && !is_input(g.nodes[o.node])) {
        latest = place[o.node];
        of = o.node;
      }
    }
    if (of && *rc::gen::inRange(0, 3) > 0) {
      root[i] = root[*of];
      place[i] = latest;
    } else {
      place[i] = next++;
    }
  }
  return root;
}

// The graph with its nodes in the order in which a walk from the outputs meets them.
Graph in_walk_order(const Graph& g) {
  Rewriter r(g);
  std::vector<Operand> ends = g.outputs;
  for (const StatePair& s : g.states) ends.push_back(s.output);
  std::vector<std::pair<Id, std::size_t>> stack;
  for (const Operand end : ends) {
    stack.emplace_back(end.node, 0);
    while (!stack.empty()) {
      auto& [id, at] = stack.back();
      if (r.done(id)) {
        stack.pop_back();
      } else if (at < g.nodes[id].operands.size()) {
        stack.emplace_back(g.nodes[id].operands[at++].node, 0);
      } else {
        r.copy(id);
      }
    }
  }
  Graph ordered = r.finish();
  ordered.labels.clear();
  return ordered;
}

std::vector<std::string> label_texts(const Graph& g) {
  std::vector<std::string> all;
  for (const Label& l : g.labels) all.push_back(l.text);
  std::ranges::sort(all);
  return all;
}

RC_GTEST_PROP(OutlineProperty, GroupsEvaluateEqualAndInlineBack, ()) {
  const Graph g = drop_dead(random_graph(*rc::gen::inRange<std::size_t>(1, 40)));
  verify(g);
  const Graph o = outline(g, random_groups(g));
  verify(o);
  verify_interface(g, o);
  round_trip(o);
  const Graph back = inline_bodies(o);
  verify(back);
  RC_ASSERT(same(in_walk_order(g), in_walk_order(back)));
  RC_ASSERT(label_texts(g) == label_texts(back));
  std::vector<Tensor> in;
  for (int i = 0; i < 3; ++i) in.push_back(Tensor::of<double>(DType::f32, {3}, {0.5 * i, -1.25, 3.0 - i}));
  const std::vector<Tensor> want = evaluate(g, in), got = evaluate(o, in),
                            defined = evaluate(o, in, {.definitions = true});
  for (std::size_t i = 0; i < want.size(); ++i) {
    RC_ASSERT(identical(want[i], got[i]));
    RC_ASSERT(identical(want[i], defined[i]));
  }
}

RC_GTEST_PROP(TextProperty, PrintedGraphsReadBackTheSame, ()) {
  const Graph g = random_graph(*rc::gen::inRange<std::size_t>(0, 60));
  const Graph back = round_trip(g);
  RC_ASSERT(same(g, back));
  RC_ASSERT(g.labels == back.labels);
  RC_ASSERT(g.hash() == back.hash());
}

}  // namespace
}  // namespace rlx::test
