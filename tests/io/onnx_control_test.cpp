// Control flow, sequences and recurrent operators of ONNX: answers of ONNX Runtime, reference and compiled; what is
// resolved at import; what is refused, and why.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "io/onnx/onnx.h"
#include "io/onnx_archive.h"
#include "io/onnx_hostile.h"
#include "io/onnx_models.h"
#include "ir/control.h"
#include "ir/print.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

double distance(const Tensor& got, const Tensor& want) {
  if (got.type() != want.type()) return INFINITY;
  const auto a = load<double>(got), b = load<double>(want);
  double scale = 1e-30, worst = 0;
  for (const double v : b) scale = std::max(scale, std::fabs(v));
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]) / scale);
  return worst;
}

std::ptrdiff_t count_of(const Graph& g, const OpDef& op) {
  return std::ranges::count_if(g.nodes, [&](const Node& n) { return n.op == &op; });
}

TEST(OnnxControl, AnswersOfOnnxRuntime) {
  expect_answers("control.npz", 37, [](const std::string&, const Tensor& got, const Tensor& want) {
    const double d = distance(got, want);
    return d <= 2e-6 ? "" : fmt::format("difference {}", d);
  });
}

TEST(OnnxControl, WhatIsKnownIsResolvedAtImport) {
  const auto counts = [&](const std::string& name) {
    const Graph g = archive_case("control.npz", name).graph;
    return std::vector<std::ptrdiff_t>{count_of(g, if_op()), count_of(g, while_op()), count_of(g, scan_op())};
  };
  EXPECT_EQ(counts("if_data_0"), (std::vector<std::ptrdiff_t>{1, 0, 0}));
  EXPECT_EQ(counts("loop_while_0"), (std::vector<std::ptrdiff_t>{0, 1, 0}));
  EXPECT_EQ(counts("loop_for"), (std::vector<std::ptrdiff_t>{0, 0, 1}));
  EXPECT_EQ(counts("loop_over_length"), (std::vector<std::ptrdiff_t>{0, 0, 1}));
  EXPECT_EQ(counts("loop_grows"), (std::vector<std::ptrdiff_t>{0, 0, 0}));
  EXPECT_EQ(counts("sequence_in_loop"), (std::vector<std::ptrdiff_t>{0, 0, 0}));
  EXPECT_EQ(counts("lstm_both"), (std::vector<std::ptrdiff_t>{0, 0, 2}));
}

NodeText node(const std::string& op, const std::vector<std::string>& in, const std::vector<std::string>& out,
              const std::vector<std::string>& attributes = {}) {
  return {op, in, out, attributes, "", ""};
}
std::string named(const std::string& name) { return bytes_field(1, name); }
std::string flag_tensor(const std::string& name, bool value) {
  return raw_tensor(name, 9, {}, value ? "\1" : std::string(1, '\0'));
}
std::string trips(const std::string& name, std::int64_t value) {
  return raw_tensor(name, 7, {}, std::string(reinterpret_cast<const char*>(&value), 8));
}

// x carried through a loop whose body is `nodes`; inputs n (i64), c (bool), x (f32[2,3]).
std::string loop_model(std::vector<NodeText> nodes, const std::vector<std::string>& outputs, bool known_trips,
                       const std::vector<std::string>& results) {
  GraphText body;
  body.nodes = std::move(nodes);
  for (const char* i : {"i", "go", "s"}) body.inputs.push_back(named(i));
  for (const std::string& o : outputs) body.outputs.push_back(named(o));
  GraphText g;
  g.nodes = {node("Loop", {"n", "", "x"}, results, {graph_attribute("body", message(body))})};
  g.inputs = {value_info("x", 1, {2, 3})};
  if (known_trips) {
    g.initializers = {trips("n", 3)};
  } else {
    g.inputs.push_back(value_info("n", 7, {}));
  }
  for (const std::string& r : results) g.outputs.push_back(named(r));
  return model(g);
}

Graph import_text(const std::string& bytes) { return import_onnx(bytes_of(bytes), "m"); }
bool refused(const std::string& bytes, std::string_view part) {
  return refuses([&] { import_text(bytes); }, part);
}

TEST(OnnxControl, StackedResultsNeedAKnownNumberOfTrips) {
  const std::vector<NodeText> body{node("Identity", {"go"}, {"on"}), node("Exp", {"s"}, {"t"})};
  EXPECT_EQ(count_of(import_text(loop_model(body, {"on", "t", "t"}, true, {"y", "z"})), scan_op()), 1);
  EXPECT_EQ(count_of(import_text(loop_model(body, {"on", "t"}, false, {"y"})), while_op()), 1);
  EXPECT_TRUE(refused(loop_model(body, {"on", "t", "t"}, false, {"y", "z"}),
                      "result 1 has as many slices as there are trips, which depends on the data of a run"));
}

TEST(OnnxControl, ACarriedValueThatChangesItsTypeNeedsAKnownNumberOfTrips) {
  const std::vector<NodeText> body{node("Identity", {"go"}, {"on"}),
                                   node("Concat", {"s", "s"}, {"t"}, {integer_attribute("axis", 0)})};
  EXPECT_EQ(import_text(loop_model(body, {"on", "t"}, true, {"y"})).type({0, 0}).text(), "f32[2,3]");
  EXPECT_TRUE(refused(loop_model(body, {"on", "t"}, false, {"y"}),
                      "carried value 1 is f32[2,3] before a trip and f32[4,3] after it"));
}

TEST(OnnxControl, NodesOfBodiesThatAreNotSupportedAreListed) {
  const std::vector<NodeText> body{node("Identity", {"go"}, {"on"}), node("Nonsense", {"s"}, {"t"})};
  for (const bool known : {true, false}) EXPECT_TRUE(refused(loop_model(body, {"on", "t"}, known, {"y"}), "Nonsense"));
}

TEST(OnnxControl, BodiesThatDoNotFitTheirNode) {
  const std::vector<NodeText> body{node("Identity", {"go"}, {"on"}), node("Exp", {"s"}, {"t"})};
  EXPECT_TRUE(refused(loop_model(body, {"on"}, true, {"y"}), "the body has 3 inputs and 1 results"));
  EXPECT_TRUE(refused(loop_model(body, {"t", "t"}, true, {"y"}), "the next condition is f32[2,3], expected bool"));
  EXPECT_TRUE(
      refused(loop_model(body, {"on", "missing"}, true, {"y"}), "reads 'missing', which nothing before it defines"));
}

TEST(OnnxControl, LoopsInLoopsDoNotMultiplyTheWork) {
  // Each level fails as a scan and as a while, and is then unrolled: the report must come all the same.
  std::string inner;
  for (int depth = 0; depth < 12; ++depth) {
    GraphText body;
    const std::string d = std::to_string(depth);
    body.inputs = {named("i" + d), named("go" + d), named("s" + d)};
    const NodeText last = depth == 0 ? node("Nonsense", {"s0"}, {"t0"})
                                     : node("Loop", {"n", "", "s" + d}, {"t" + d}, {graph_attribute("body", inner)});
    body.nodes = {node("Identity", {"go" + d}, {"on" + d}), last};
    body.outputs = {named("on" + d), named("t" + d)};
    inner = message(body);
  }
  GraphText g;
  g.nodes = {node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", inner)})};
  g.inputs = {value_info("x", 1, {2, 3})};
  g.initializers = {trips("n", 3)};
  g.outputs = {named("y")};
  EXPECT_EQ(import_bounded(model(g), "Nonsense", 192), "");
}

TEST(OnnxControl, SequencesThatAreInputsExpand) {
  GraphText g;
  const std::string element = bytes_field(1, number_field(1, 1));
  const std::string list = bytes_field(1, "s") + bytes_field(2, bytes_field(4, bytes_field(1, element)));
  g.nodes = {node("SequenceLength", {"s"}, {"n"}), node("SequenceInsert", {"s", "x", "n"}, {"t"})};
  g.inputs = {list, value_info("x", 1, {2})};
  g.outputs = {named("t"), named("n")};
  OnnxOptions options;
  options.sequences["s"] = {TensorType(DType::f32, {2}), TensorType(DType::f32, {4})};
  const Graph made = import_onnx(bytes_of(model(g)), "m", options);
  EXPECT_EQ(made.input_names, (std::vector<std::string>{"s.0", "s.1", "x"}));
  EXPECT_EQ(made.output_names, (std::vector<std::string>{"t.0", "t.1", "t.2", "n"}));
  EXPECT_TRUE(refused(model(g), "input 's' is a sequence, expected a tensor"));
  options.sequences["q"] = {};
  EXPECT_TRUE(refuses([&] { import_onnx(bytes_of(model(g)), "m", options); }, "has no input called 'q'"));
}

TEST(OnnxControl, SequencesWhereTensorsAreExpected) {
  GraphText g;
  g.nodes = {node("SequenceConstruct", {"x", "x"}, {"s"}), node("Exp", {"s"}, {"y"})};
  g.inputs = {value_info("x", 1, {2})};
  g.outputs = {named("y")};
  EXPECT_TRUE(refused(model(g), "operand 0 is a sequence, expected a tensor"));
  g.nodes[1] = node("SequenceAt", {"s", "p"}, {"y"});
  g.initializers = {trips("p", 2)};
  EXPECT_TRUE(refused(model(g), "position 2 is out of range for 2 places"));
  g.initializers = {trips("p", -2)};
  EXPECT_EQ(count_of(import_text(model(g)), input_op()), 1);
  g.initializers = {};
  g.inputs.push_back(value_info("p", 7, {}));
  EXPECT_TRUE(refused(model(g), "depends on the data of a run"));
  g.nodes = {node("SequenceConstruct", {"x", "p"}, {"y"})};
  EXPECT_TRUE(refused(model(g), "a sequence of f32 takes no i64"));
}

TEST(OnnxControl, ASequenceChosenByDataIsRefused) {
  GraphText yes, no;
  yes.nodes = {node("SequenceConstruct", {"x"}, {"a"})};
  yes.outputs = {named("a")};
  no.nodes = {node("SequenceConstruct", {"x", "x"}, {"b"})};
  no.outputs = {named("b")};
  GraphText g;
  g.nodes = {node("If", {"c"}, {"s"},
                  {graph_attribute("then_branch", message(yes)), graph_attribute("else_branch", message(no))}),
             node("SequenceLength", {"s"}, {"y"})};
  g.inputs = {value_info("x", 1, {2}), value_info("c", 9, {})};
  g.outputs = {named("y")};
  EXPECT_TRUE(refused(model(g), "a result of a branch is a sequence, which depends on the data of a run"));
  g.inputs.pop_back();
  g.initializers = {flag_tensor("c", false)};
  EXPECT_EQ(load<std::int64_t>(evaluate(import_text(model(g)), NamedTensors{{"x", Tensor(DType::f32, {2})}})[0]),
            (std::vector<std::int64_t>{2}));
}

}  // namespace
}  // namespace rlx::test
