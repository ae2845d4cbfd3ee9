// Every rule of the verifier: a valid graph, one thing broken by hand, the message.
#include "ir/verify.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "probe_ops.h"

namespace rlx::test {
namespace {

const Dim steps = Dim::symbol("S", 2, 512), other = Dim::symbol("T", 2, 512);

// %0 x, %1 y, %2 x + y (a check), %3 both halves of a constant-size input %4; a state, labels, a fusion %6.
Graph valid() {
  return parse(R"(rlx 1
graph(%x: f32[S], %y: f32[T], %z: f32[8])
  dims(S: 2..512, T: 2..512) {
  %0 = add %y, %x : f32[S]
  %1 = halves %z {axis=0} : f32[4], f32[4]
  %2 = sizes {dims=[S,3]} : i64[2]
  %3 = fusion %0 : f32[S] = graph(%a: f32[S]) {
    %0 = exp %a : f32[S]
    return %0
  }
  check T = S "broadcast"
  state kept: %x -> %3
  return %1#1 "half", %2
} names(%0: "sum"))",
               parse_options());
}

// The message after `breaking` a valid graph and indexing it again.
template <class F>
std::string broken(F breaking, bool index = true) {
  Graph g = valid();
  verify(g);
  breaking(g);
  if (index) g.index();
  return error_of([&] { verify(g); });
}

// The same for the body of the fusion.
template <class F>
std::string broken_body(F breaking) {
  return broken([&](Graph& g) {
    Graph body = *g.nodes[6].bodies[0];
    breaking(body);
    body.index();
    g.nodes[6].bodies[0] = std::make_shared<Graph>(std::move(body));
  });
}

TEST(VerifyError, Inputs) {
  EXPECT_EQ(broken([](Graph& g) { g.input_names.pop_back(); }), "graph: 3 inputs have 2 names");
  EXPECT_EQ(broken([](Graph& g) { g.inputs[2] = 99; }), "graph: input z is node %99, there are 7 nodes");
  EXPECT_EQ(broken([](Graph& g) { g.inputs[2] = 3; }),
            "node %3 = add(f32[T], f32[S]): input rule: listed as input z, but no input node");
  EXPECT_EQ(broken([](Graph& g) { g.inputs[2] = 0; }), "node %0 = input(): input rule: listed twice");
  EXPECT_EQ(broken([](Graph& g) { g.input_names[1] = ""; }), "graph: input %1 has no name");
  EXPECT_EQ(broken([](Graph& g) { g.input_names[1] = "x"; }), "graph: input x is declared twice");
  EXPECT_EQ(broken([](Graph& g) {
              g.inputs.pop_back();
              g.input_names.pop_back();
            }),
            "node %2 = input(): input rule: an input node is not listed");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[2].results.clear(); }, false),
            "node %2 = input(): input rule: 0 results, expected 1");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[2].operands = {{0, 0}}; }),
            "node %2 = input(f32[S]): input rule: an input has no operands or bodies");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[2].bodies = g.nodes[6].bodies; }),
            "node %2 = input(): input rule: an input has no operands or bodies");
}

TEST(VerifyError, AMissingOp) {
  EXPECT_EQ(broken([](Graph& g) { g.nodes[3].op = nullptr; }, false), "node %3: op rule: no op");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[0].op = nullptr; }, false),
            "node %0 = ?(): input rule: listed as input x, but no input node");
}

TEST(VerifyError, Operands) {
  EXPECT_EQ(broken([](Graph& g) { g.nodes[3].operands[1] = {3, 0}; }),
            "node %3 = add(f32[T], f32[S]): order rule: operand %3 does not come earlier");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[3].operands[1] = {77, 0}; }, false),
            "node %3 = add(f32[T], ?): order rule: operand %77 does not come earlier");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[3].operands[1] = {1, 1}; }, false),
            "node %3 = add(f32[T], ?): operand rule: %1 has no result 1");
}

TEST(VerifyError, Types) {
  EXPECT_EQ(broken([](Graph& g) { g.nodes[2].results[0].dims[0] = Dim(-1); }),
            "node %2 = input(): size rule: f32[-1] has a negative size");
  EXPECT_EQ(broken([](Graph& g) {
              g.nodes[2].results[0].encoding = &q4_0;
              g.nodes[2].results[0].block_axis = 1;
            }),
            "node %2 = input(): encoding rule: block axis 1 is out of range for rank 1");
  EXPECT_EQ(broken([](Graph& g) {
              g.nodes[2].results[0].encoding = &q4_0;
              g.nodes[2].results[0].block_axis = -1;
            }),
            "node %2 = input(): encoding rule: block axis -1 is out of range for rank 1");
}

TEST(VerifyError, Attributes) {
  EXPECT_EQ(broken([](Graph& g) { g.nodes[4].attrs = Attrs(); }),
            "node %4 = halves(f32[8]): attribute rule: attributes of another op");
}

TEST(VerifyError, Inference) {
  EXPECT_EQ(broken([](Graph& g) { g.nodes[3].results[0].dtype = DType::f64; }),
            "node %3 = add(f32[T], f32[S]): inference rule: result 0 is stated as f64[S], inferred f32[S]");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[4].results.pop_back(); }, false),
            "node %4 = halves(f32[8]): inference rule: 1 results are stated, 2 inferred");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[4].attrs = Attrs(AxisAttrs{1}); }),
            "node %4 = halves(f32[8]): inference rule: axis 1 is out of range for rank 1");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[3].operands.pop_back(); }),
            "node %3 = add(f32[T]): inference rule: 1 operands are given, expected 2");
}

TEST(VerifyError, TrackedElements) {
  EXPECT_EQ(broken([](Graph& g) { g.values.clear(); }),
            "node %5 = sizes(): tracking rule: known elements of result 0 differ");
  EXPECT_EQ(broken([](Graph& g) { g.values.at({5, 0})[1] = Dim(4); }),
            "node %5 = sizes(): tracking rule: known elements of result 0 differ");
  EXPECT_EQ(
      broken([](Graph& g) { g.values[{3, 0}] = {Dim(4)}; }),
      "node %3 = add(f32[T], f32[S]): tracking rule: elements of result 0 are known that inference does not give");
  EXPECT_EQ(broken([](Graph& g) { g.values[{0, 0}] = {Dim(4)}; }),
            "node %0 = input(): tracking rule: elements of result 0 are known that inference does not give");
  EXPECT_EQ(broken([](Graph& g) { g.values[{70, 0}] = {Dim(4)}; }),
            "graph: tracking rule: elements of %70#0 are known, which does not exist");
}

TEST(VerifyError, Symbols) {
  EXPECT_EQ(broken([](Graph& g) { g.symbols.erase("S"); }), "graph: symbol rule: size symbol S is not declared");
  EXPECT_EQ(broken([](Graph& g) { g.symbols["T"] = {1, 512}; }),
            "graph: symbol rule: size symbol T is declared 1..512 and used with 2..512");
  EXPECT_EQ(broken([](Graph& g) { g.checks.push_back({Dim::symbol("S", 3, 4), other, "x"}); }),
            "graph: symbol rule: size symbol S has bounds 2..512 and 3..4");
  EXPECT_EQ(broken([](Graph& g) { g.checks.push_back({Dim::symbol("Q", 3, 4), other, "x"}); }),
            "graph: symbol rule: size symbol Q is not declared");
  EXPECT_EQ(
      broken_body([](Graph& b) { b.symbols["S"] = {1, 9}; }),
      "node %6 = fusion(f32[S]): body rule: graph: symbol rule: size symbol S is declared 1..9 and used with 2..512");
  EXPECT_EQ(broken_body([](Graph& b) { b.symbols["T"] = {1, 9}; }),
            "node %6 = fusion(f32[S]): body rule: graph: symbol rule: size symbol T has other bounds in a body");
}

TEST(VerifyError, Outputs) {
  EXPECT_EQ(broken([](Graph& g) { g.output_names.pop_back(); }), "graph: 2 outputs have 1 names");
  EXPECT_EQ(broken([](Graph& g) { g.outputs[0] = {4, 2}; }), "graph: output rule: %4#2 does not exist");
  EXPECT_EQ(broken([](Graph& g) { g.outputs[0] = {40, 0}; }, false), "graph: output rule: %40#0 does not exist");
  EXPECT_EQ(broken([](Graph& g) { g.output_names[1] = "half"; }), "graph: output rule: output half is declared twice");
}

TEST(VerifyError, States) {
  EXPECT_EQ(broken([](Graph& g) { g.states[0].output = {3, 1}; }),
            "graph: state rule: a value of state kept does not exist");
  EXPECT_EQ(broken([](Graph& g) { g.states[0].input = {99, 0}; }, false),
            "graph: state rule: a value of state kept does not exist");
  EXPECT_EQ(broken([](Graph& g) { g.states[0].input = {3, 0}; }),
            "graph: state rule: state kept does not begin at a graph input");
  EXPECT_EQ(broken([](Graph& g) { g.states[0].output = {4, 0}; }),
            "graph: state rule: state kept changes type from f32[S] to f32[4]");
  EXPECT_EQ(broken([](Graph& g) { g.states[0].name = ""; }), "graph: state rule: state  is unnamed or declared twice");
  EXPECT_EQ(broken([](Graph& g) { g.states.push_back({"kept", {1, 0}, {1, 0}}); }),
            "graph: state rule: state kept is unnamed or declared twice");
  EXPECT_EQ(broken([](Graph& g) { g.states.push_back({"again", {0, 0}, {0, 0}}); }),
            "graph: state rule: two states begin at input %0");
}

TEST(VerifyError, Labels) {
  EXPECT_EQ(broken([](Graph& g) { g.labels.push_back({{9, 0}, "nine"}); }),
            "graph: label rule: nine labels %9, which does not exist");
}

TEST(VerifyError, Checks) {
  EXPECT_EQ(broken([](Graph& g) { g.checks.clear(); }), "graph: check rule: the check T = S (broadcast) is missing");
  EXPECT_EQ(broken([](Graph& g) { g.checks.push_back({steps, steps + 1, "off by one"}); }),
            "graph: check rule: S is never S+1 (off by one)");
}

TEST(VerifyError, Index) {
  EXPECT_EQ(broken([](Graph& g) { g.outputs[0].result = 0; }, false),
            "graph: index rule: nodes were changed after the graph was finished");
  EXPECT_EQ(broken([](Graph& g) { g.nodes.push_back(g.nodes[3]); }, false),
            "graph: index rule: nodes were changed after the graph was finished");
}

TEST(VerifyError, Bodies) {
  EXPECT_EQ(broken([](Graph& g) { g.nodes[6].bodies[0] = nullptr; }, false),
            "node %6 = fusion(f32[S]): body rule: a body is missing");
  EXPECT_EQ(broken([](Graph& g) { g.nodes[6].bodies.clear(); }),
            "node %6 = fusion(f32[S]): inference rule: 0 bodies are given, expected 1");
  EXPECT_EQ(broken_body([](Graph& b) { b.states.push_back({"s", {0, 0}, {1, 0}}); }),
            "node %6 = fusion(f32[S]): body rule: a body holds state pairs");
  EXPECT_EQ(broken_body([](Graph& b) { b.nodes[1].results[0].dtype = DType::f64; }),
            "node %6 = fusion(f32[S]): body rule: node %1 = exp(f32[S]): inference rule: result 0 is stated as f64[S], "
            "inferred f32[S]");
  EXPECT_EQ(broken_body([](Graph& b) { b.inputs[0] = 55; }),
            "node %6 = fusion(f32[S]): body rule: graph: input a is node %55, there are 2 nodes");
  EXPECT_EQ(broken_body([](Graph& b) { b.outputs[0] = {1, 5}; }),
            "node %6 = fusion(f32[S]): body rule: graph: output rule: %1#5 does not exist");
}

TEST(VerifyError, BodiesNestedTooDeep) {
  GraphPtr inner;
  for (int i = 0; i < 40; ++i) {
    Builder b;
    const Value x = b.input("a", {DType::f32, {}});
    inner = std::make_shared<Graph>(
        b.finish({inner ? b.emit(*registry().find("fusion"), Attrs(), std::vector{x}, {inner})[0] : exp(x)}));
  }
  const std::string message = error_of([&] { verify(*inner); });
  EXPECT_NE(message.find("bodies are nested deeper than 32"), std::string::npos) << message;
}

// Interfaces: what a pass must keep.
template <class F>
std::string changed(F change) {
  Graph after = valid();
  change(after);
  after.index();
  return error_of([&] { verify_interface(valid(), after); });
}

TEST(VerifyInterfaceError, EveryRule) {
  EXPECT_EQ(changed([](Graph&) {}), "");
  const std::string inputs = "interface: inputs were added, removed, renamed or moved";
  EXPECT_EQ(changed([](Graph& g) { std::swap(g.input_names[0], g.input_names[1]); }), inputs);
  EXPECT_EQ(changed([](Graph& g) {
              g.inputs.pop_back();
              g.input_names.pop_back();
            }),
            inputs);
  EXPECT_EQ(changed([](Graph& g) { g.nodes[2].results[0].dtype = DType::f64; }),
            "interface: input z was f32[8] and is f64[8]");
  EXPECT_EQ(changed([](Graph& g) { g.outputs.pop_back(); }), "interface: 2 outputs became 1");
  EXPECT_EQ(changed([](Graph& g) { g.output_names[0] = "other"; }), "interface: outputs were renamed");
  EXPECT_EQ(changed([](Graph& g) { std::swap(g.outputs[0], g.outputs[1]); }),
            "interface: output 0 was f32[4] and is i64[2]");
  EXPECT_EQ(changed([](Graph& g) { g.states.clear(); }), "interface: 1 states became 0");
  EXPECT_EQ(changed([](Graph& g) { g.states[0].name = "lost"; }), "interface: state kept became lost");
  EXPECT_EQ(changed([](Graph& g) { g.states[0].input = {2, 0}; }), "interface: state kept changed its type");
  EXPECT_EQ(changed([](Graph& g) { g.states[0].input = {1, 0}; }), "interface: state kept changed its type");
  EXPECT_EQ(changed([](Graph& g) { g.checks.clear(); }), "interface: the check T = S (broadcast) was lost");
}

}  // namespace
}  // namespace rlx::test
