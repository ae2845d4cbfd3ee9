// ONNX graphs that are not ones, and operators with arguments that no run could honour.
#include <gtest/gtest.h>

#include <limits>

#include "io/onnx_hostile.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

constexpr Index mebi = Index{1} << 20;
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

std::string bounded(const std::string& bytes, std::string_view part) { return import_bounded(bytes, part, 192); }

/// A graph of these nodes over x, f32[2,3], with the output y.
std::string nodes(std::vector<NodeText> list, std::vector<std::string> initializers = {}, std::int64_t opset = 17) {
  GraphText g;
  g.nodes = std::move(list);
  g.inputs = {value_info("x", 1, {2, 3})};
  g.initializers = std::move(initializers);
  g.outputs = {bytes_field(1, "y")};
  return model(g, opset);
}

NodeText node(const std::string& op, std::vector<std::string> in, std::vector<std::string> attributes = {},
              std::vector<std::string> out = {"y"}) {
  return {op, std::move(in), std::move(out), std::move(attributes)};
}

// --- names ---

TEST(OnnxHostile, NamesAreDefinedOnceAndBefore) {
  EXPECT_TRUE(refused(nodes({node("Neg", {"y"})}), "reads 'y', which nothing before it defines"));
  EXPECT_TRUE(refused(nodes({node("Add", {"x", "b"}, {}, {"a"}), node("Neg", {"a"}, {}, {"b"}), node("Neg", {"b"})}),
                      "reads 'b', which nothing before it defines"));
  EXPECT_TRUE(refused(nodes({node("Neg", {"z"})}), "node 'n' (Neg) reads 'z'"));
  EXPECT_TRUE(refused(nodes({node("Neg", {"x"}), node("Abs", {"x"})}), "the name 'y' is defined twice"));
  EXPECT_TRUE(refused(nodes({node("Neg", {"x"}, {}, {"x"}), node("Neg", {"x"})}), "the name 'x' is defined twice"));
  EXPECT_TRUE(refused(nodes({node("Split", {"x"}, {}, {"y", "y"})}), "the name 'y' is defined twice"));
  EXPECT_TRUE(refused(nodes({node("Neg", {"x"}, {}, {"z"})}), "an output reads 'y'"));
  const std::string w = raw_tensor("w", 1, {}, std::string(4, '\0'));
  EXPECT_TRUE(refused(nodes({node("Neg", {"x"})}, {w, w}), "initializer 'w' is there twice"));
  GraphText g;
  g.nodes = {node("Neg", {"x"})};
  g.inputs = {value_info("x", 1, {2}), value_info("x", 1, {2})};
  g.outputs = {bytes_field(1, "y")};
  EXPECT_TRUE(refused(model(g), "input 'x' is declared twice"));
  g.inputs.pop_back();
  g.outputs.push_back(g.outputs[0]);
  EXPECT_TRUE(refused(model(g), "output y is declared twice"));
  g.outputs.clear();
  EXPECT_TRUE(refused(model(g), "the graph has no outputs"));
}

TEST(OnnxHostile, ShadowedNames) {
  GraphText inner;
  inner.nodes = {{"Neg", {"x"}, {"x2"}, {}}, {"Neg", {"x2"}, {"x"}, {}}};
  inner.outputs = {bytes_field(1, "x")};
  const std::string branch = message(inner);
  EXPECT_TRUE(refused(
      nodes({node("If", {"c"}, {graph_attribute("then_branch", branch), graph_attribute("else_branch", branch)})},
            {raw_tensor("c", 9, {}, "\1")}),
      "the name 'x' is defined twice"));
}

TEST(OnnxHostile, InputsThatAreNoTensors) {
  const auto with_input = [](const std::string& info) { return one_node(node("Neg", {"x"}), {}, 17, {info}); };
  EXPECT_TRUE(refused(with_input(bytes_field(1, "x")), "of no stated type"));
  const std::string tensor = bytes_field(1, number_field(1, 1));
  EXPECT_TRUE(refused(with_input(bytes_field(1, "x") + bytes_field(2, bytes_field(4, bytes_field(1, tensor)))),
                      "is a sequence, expected a tensor"));
  EXPECT_TRUE(refused(with_input(bytes_field(1, "x") + bytes_field(2, tensor)), "has no declared shape"));
  EXPECT_TRUE(refused(with_input(value_info("x", 8, {2})), "element type STRING"));
  const std::string negative = bytes_field(2, bytes_field(1, number_field(1, ~1ull)));
  EXPECT_TRUE(refused(with_input(bytes_field(1, "x") + bytes_field(2, bytes_field(1, number_field(1, 1) + negative))),
                      "has the size -2 along axis 0"));
  EXPECT_TRUE(refused(with_input(value_info("x", 1, {1ll << 62, 4})), "overflow"));
}

/// A function of domain d that calls another one `times` times in a row.
std::string function(const std::string& name, const std::string& calls, int times, const std::string& domain = "d") {
  std::string f = bytes_field(1, name) + bytes_field(4, "a") + bytes_field(5, "b" + std::to_string(times));
  for (int i = 0; i < times; ++i) {
    const NodeText call{calls, {i == 0 ? "a" : "b" + std::to_string(i)}, {"b" + std::to_string(i + 1)}, {}, "", domain};
    f += bytes_field(7, message(call));
  }
  return bytes_field(25, f + bytes_field(9, bytes_field(1, "d") + number_field(2, 1)) +
                             bytes_field(9, number_field(2, 17)) + bytes_field(10, "d"));
}

/// A model that calls f0 and has these functions.
std::string calling(const std::string& functions) {
  return nodes({NodeText{"f0", {"x"}, {"y"}, {}, "n", "d"}}) +
         bytes_field(8, bytes_field(1, "d") + number_field(2, 1)) + functions;
}

TEST(OnnxHostile, FunctionsThatCallThemselves) {
  EXPECT_EQ(bounded(calling(function("f0", "Neg", 3, "")), ""), "");
  EXPECT_EQ(bounded(calling(function("f0", "f0", 1)), "functions call each other deeper than 24"), "");
  EXPECT_EQ(bounded(calling(function("f0", "f1", 1) + function("f1", "f0", 1)), "deeper than 24"), "");
  EXPECT_TRUE(refused(calling(function("f0", "f1", 1) + function("f0", "f1", 1)), "function 'f0' is there twice"));
}

// Each of 20 functions calls the next one ten times.
TEST(BulkOnnxHostile, FunctionsThatMultiply) {
  std::string bomb = function("f20", "Neg", 10, "");
  for (int i = 0; i < 20; ++i) bomb += function("f" + std::to_string(i), "f" + std::to_string(i + 1), 10);
  EXPECT_EQ(bounded(calling(bomb), "take too much memory"), "");
}

// --- what the fuzzer found ---

TEST(OnnxHostile, SizesOfBlockedWeightsBeyondAllNumbers) {
  GraphText g;
  g.nodes = {{"MatMulNBits",
              {"x", "b", "s"},
              {"y"},
              {integer_attribute("K", std::numeric_limits<std::int64_t>::max()), integer_attribute("N", 6),
               integer_attribute("bits", 4), integer_attribute("block_size", 16)},
              "n",
              "com.microsoft"}};
  g.inputs = {value_info("x", 1, {2, 3}), value_info("b", 2, {6, 2, 8}), value_info("s", 1, {6, 2})};
  g.outputs = {bytes_field(1, "y")};
  EXPECT_TRUE(refused(model(g) + bytes_field(8, bytes_field(1, "com.microsoft") + number_field(2, 1)),
                      "expected 1 to 1099511627776"));
}

// --- operator sets ---

TEST(OnnxHostile, OperatorSets) {
  const std::string neg = nodes({node("Neg", {"x"})}, {}, 0);
  EXPECT_TRUE(refused(neg, "versions 6 to 28 are supported"));
  EXPECT_TRUE(refused(nodes({node("Neg", {"x"})}, {}, 1'000'000'000), "Neg (version 1000000000): versions 6 to 28"));
  EXPECT_TRUE(refused(nodes({node("Neg", {"x"})}, {}, -1), "the model imports no operators of domain ''"));
  GraphText g;
  g.nodes = {node("Neg", {"x"})};
  g.inputs = {value_info("x", 1, {2})};
  g.outputs = {bytes_field(1, "y")};
  EXPECT_TRUE(refused(number_field(1, 8) + bytes_field(7, message(g)), "the model imports no operators of domain ''"));
  g.nodes[0].domain = "nobody";
  EXPECT_TRUE(refused(model(g), "nobody.Neg (version -1): the model imports no operators of domain 'nobody'"));
  EXPECT_TRUE(refused(nodes({node("Gelu", {"x"})}), "Gelu (version 17): the operator exists from version 20"));
  std::string many = model(g);
  for (int i = 0; i < 101; ++i) many += bytes_field(8, number_field(2, 17));
  EXPECT_TRUE(refused(many, "imports more than 100 operator sets"));
}

TEST(OnnxHostile, EveryUnsupportedNodeIsListedAtOnce) {
  const std::string bytes = nodes(
      {node("Loop", {"x"}, {}, {"a"}), node("StringConcat", {"x"}, {}, {"b"}), node("StringConcat", {"x"}, {}, {"c"}),
       node("Einsum", {"x"}, {}, {"d"}), node("NonMaxSuppression", {"x"}, {}, {"e"}), node("Resize", {"x"}, {}, {"f"}),
       node("Add", {"a", "b"}, {}, {"g"}), node("Softmax", {"x"}, {integer_attribute("axis", 2)}, {"h"}),
       node("Neg", {"x"}, {integer_attribute("odd", 1)}), node("Neg", {"", "x"}, {}, {"i"})});
  try {
    import_text(bytes);
    ADD_FAILURE() << "it was accepted";
  } catch (const Error& e) {
    const std::string text = e.what();
    for (const char* part : {"'m': 9 of 10 nodes cannot be imported, 1 more read their results",
                             "2 x StringConcat (version 17): the operator is not supported: node 'n', 'n'", "1 x Loop",
                             "1 x Einsum", "1 x NonMaxSuppression", "1 x Resize", "axis 2 is out of range for rank 2",
                             "attribute 'odd' is not supported", "expected 1 to 1"}) {
      EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
    }
  }
}

TEST(OnnxHostile, OtherDomainsAreNamed) {
  NodeText svm = node("SVMClassifier", {"x"});
  svm.domain = "ai.onnx.ml";
  const std::string bytes = nodes({svm}) + bytes_field(8, bytes_field(1, "ai.onnx.ml") + number_field(2, 3));
  EXPECT_TRUE(refused(bytes, "1 x ai.onnx.ml.SVMClassifier (version 3): the operator is not supported"));
}

// --- arguments ---

struct Bad {
  NodeText node;
  std::vector<std::string> initializers;
  std::string part;
};

std::string scalar(const std::string& name, std::int64_t value) {
  return raw_tensor(name, 7, {}, {reinterpret_cast<const char*>(&value), 8});
}

TEST(OnnxHostile, ArgumentsThatNoRunCouldHonour) {
  const auto i64 = i64_tensor;
  const std::vector<Bad> all{
      {node("Reshape", {"x", "s"}), {i64("s", {1ll << 62})}, "elements of a reshape: 6 is not 4611686018427387904"},
      {node("Reshape", {"x", "s"}), {i64("s", {-1, -1})}, "two sizes are -1"},
      {node("Reshape", {"x", "s"}), {i64("s", {-5, 2})}, "size 0 is -5"},
      {node("Reshape", {"x", "s"}), {i64("s", {0, 0, 0})}, "size 2 is 0 and the operand has rank 2"},
      {node("Reshape", {"x", "s"}), {i64("s", {4, -1})}, "elements of a reshape"},
      {node("Reshape", {"x", "x"}), {}, "expected integers"},
      {node("Reshape", {"x", ""}), {}, "operand 1 is left out"},
      {node("Reshape", {"x"}), {}, "1 operands are given, expected 2 to 2"},
      {node("Pad", {"x", "p"}), {i64("p", {least, 0, 0, 0})}, "a pad is -9223372036854775808"},
      {node("Pad", {"x", "p"}), {i64("p", {0, most, 0, most})}, "a pad is 9223372036854775807"},
      {node("Pad", {"x", "p"}), {i64("p", {1, 1})}, "2 pads are given for 2 axes"},
      {node("Slice", {"x", "a", "b", "c", "d"}),
       {i64("a", {0}), i64("b", {1}), i64("c", {0}), i64("d", {0})},
       "step of axis 0 is 0"},
      {node("Slice", {"x", "a", "b", "c"}),
       {i64("a", {0, 0}), i64("b", {1, 1}), i64("c", {0, 0})},
       "axis 0 is listed twice"},
      {node("Slice", {"x", "a", "b", "c"}), {i64("a", {0}), i64("b", {1}), i64("c", {2})}, "axis 2 is out of range"},
      {node("Slice", {"x", "a", "b"}), {i64("a", {0}), i64("b", {1, 1})}, "1 starts, 2 ends"},
      {node("Gather", {"x", "i"}), {i64("i", {7})}, "index 7 is out of range for axis 0 of size 2"},
      {node("Split", {"x", "s"}, {}, {"y", "z"}), {i64("s", {1, 2})}, "end of axis 0: 3 is more than 2"},
      {node("Split", {"x", "s"}, {}, {"y"}), {i64("s", {1})}, "sum of the parts of a split: 1 is not 2"},
      {node("Split", {"x", "s"}, {}, {"y"}), {i64("s", {1, 1})}, "2 parts, the node has 1 results"},
      {node("Split", {"x"}, {}, {"y", "z", "w"}), {}, "sum of the parts of a split: 0 is not 2"},
      {node("TopK", {"x", "k"}, {}, {"y", "z"}), {i64("k", {4})}, "k along axis 1: 4 is more than 3"},
      {node("TopK", {"x", "k"}, {}, {"y", "z"}), {i64("k", {-1})}, "k: 0 is more than -1"},
      {node("Softmax", {"x"}, {integer_attribute("axis", 2)}), {}, "axis 2 is out of range for rank 2"},
      {node("Softmax", {"x"}, {integers_attribute("axis", {1})}), {}, "attribute 'axis' is of type ints, expected int"},
      {node("Transpose", {"x"}, {integers_attribute("perm", {0, 0})}), {}, "transpose"},
      {node("Squeeze", {"x"}), {}, ""},
      {node("Squeeze", {"x", "a"}), {i64("a", {0})}, "size of the squeezed axis 0: 2 is not 1"},
      {node("Unsqueeze", {"x", "a"}), {i64("a", {0, 0})}, "an axis is listed twice"},
      {node("Unsqueeze", {"x", "a"}), {i64("a", {5})}, "axis 5 is out of range"},
      {node("Concat", {"x", "x"}), {}, "attribute 'axis' is missing"},
      {node("Concat", {"x", "x"}, {integer_attribute("axis", most)}), {}, "out of range"},
      {node("Cast", {"x"}, {integer_attribute("to", 8)}), {}, "element type STRING is not supported"},
      {node("Cast", {"x"}, {integer_attribute("to", most)}), {}, "element type 9223372036854775807 is not supported"},
      {node("Range", {"a", "b", "c"}), {scalar("a", 0), scalar("b", 5), scalar("c", 0)}, "the step of the range is 0"},
      {node("Range", {"a", "b", "c"}),
       {scalar("a", 0), scalar("b", 5), scalar("c", least)},
       "step of the range is -922337"},
      {node("Expand", {"x", "s"}), {i64("s", {3, 3})}, "expand: 2 is not 3"},
      {node("Expand", {"x", "s"}), {i64("s", {-1, 3})}, "expand: 2 is not -1"},
      {node("Tile", {"x", "s"}), {i64("s", {-1, 1})}, "repeat 0 is -1"},
      {node("ConstantOfShape", {"s"}), {i64("s", {-1})}, "size -1 is negative"},
      {node("ConstantOfShape", {"s"}), {i64("s", {most, most})}, "overflow"},
      {node("CumSum", {"x", "a"}), {scalar("a", 7)}, "axis 7 is out of range"},
      {node("ReduceSum", {"x", "a"}), {i64("a", {0, 0})}, "listed twice"},
      {node("Gemm", {"x", "x"}), {}, "inner sizes of a matmul: 3 is not 2"},
      {node("MatMul", {"x", "x"}), {}, "inner sizes of a matmul: 3 is not 2"},
      {node("Constant", {}), {}, "the constant is none of value"},
      {node("Constant", {}, {bytes_field(1, "sparse_value") + bytes_field(22, "") + number_field(20, 11)}),
       {},
       "the constant is none"},
      {node("If", {"x"}), {}, "attribute 'then_branch' is missing"},
  };
  for (const Bad& b : all) {
    if (b.part.empty()) {
      EXPECT_EQ(bounded(nodes({b.node}, b.initializers), ""), "") << b.node.op;
    } else {
      EXPECT_TRUE(refused(nodes({b.node}, b.initializers), b.part)) << b.node.op << ": " << b.part;
    }
  }
}

// Results that no machine could hold are types only: no memory is taken until a run asks for them.
TEST(OnnxHostile, BombsCostNothing) {
  const std::int64_t tera = 1'000'000'000'000;
  EXPECT_EQ(bounded(nodes({node("ConstantOfShape", {"s"})}, {i64_tensor("s", {tera})}), ""), "");
  EXPECT_EQ(
      bounded(nodes({node("Range", {"a", "b", "c"})}, {scalar("a", 0), scalar("b", tera * 1000), scalar("c", 1)}), ""),
      "");
  EXPECT_EQ(bounded(nodes({node("Expand", {"x", "s"})}, {i64_tensor("s", {tera, 2, 3})}), ""), "");
  EXPECT_EQ(bounded(nodes({node("Tile", {"x", "s"})}, {i64_tensor("s", {tera, 100})}), ""), "");
  EXPECT_EQ(bounded(nodes({node("Pad", {"x", "s"})}, {i64_tensor("s", {0, tera, 0, tera})}), ""), "");
  EXPECT_EQ(bounded(nodes({node("OneHot", {"i", "d", "v"})},
                          {i64_tensor("i", {1, 2}), scalar("d", tera), i64_tensor("v", {0, 1})}),
                    ""),
            "");
  const Graph g = import_text(nodes({node("ConstantOfShape", {"s"})}, {i64_tensor("s", {tera * 1000})}));
  EXPECT_TRUE(
      refuses([&] { evaluate(g, std::vector<Tensor>{Tensor(DType::f32, {2, 3})}); }, "does not fit into memory"));
}

/// `count` nodes, each made from the ones before it.
std::string chain(int count, const std::function<NodeText(int)>& make, std::vector<std::string> initializers,
                  const std::string& input) {
  GraphText g;
  for (int i = 0; i < count; ++i) g.nodes.push_back(make(i));
  g.inputs = {input};
  g.initializers = std::move(initializers);
  g.outputs = {bytes_field(1, "v" + std::to_string(count))};
  return model(g);
}

TEST(BulkOnnxHostile, ManyNodes) {
  const auto name = [](int i) { return "v" + std::to_string(i); };
  const auto neg = [&](int i) { return NodeText{"Neg", {name(i)}, {name(i + 1)}, {}, ""}; };
  EXPECT_EQ(bounded(chain(50'000, neg, {}, value_info("v0", 1, {-1, 3})), ""), "");
  EXPECT_EQ(
      bounded(chain(400'000, neg, {}, value_info("v0", 1, {-1, 3})), "the description of the model takes more than"),
      "");
}

TEST(OnnxHostile, SizesThatGrow) {
  const auto name = [](int i) { return "v" + std::to_string(i); };
  // Every element of the shape is multiplied with itself, or added to another: the expressions have limits.
  for (const char* op : {"Mul", "Add", "Max", "Min", "Div"}) {
    const auto grow = [&](int i) -> NodeText {
      if (i == 0) return {"Shape", {"v0"}, {"v1"}, {}, ""};
      return {op, {name(i), i == 1 ? "k" : name(i - 1)}, {name(i + 1)}, {}, ""};
    };
    const std::string bytes = chain(300, grow, {i64_tensor("k", {3, 5, 7})}, value_info("v0", 1, {-1, -2, -3}));
    const std::string wrong = run_bounded(0, 1, 192 * mebi, [&](Index) -> std::string {
      try {
        import_text(bytes);
      } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
      }
      return "";
    });
    EXPECT_EQ(wrong, "") << op;
  }
}

TEST(OnnxHostile, RepeatedConcatenation) {
  const auto name = [](int i) { return "v" + std::to_string(i); };
  const auto twice = [&](int i) {
    return NodeText{"Concat", {name(i), name(i)}, {name(i + 1)}, {integer_attribute("axis", 0)}, ""};
  };
  EXPECT_EQ(bounded(chain(40, twice, {}, value_info("v0", 1, {1024})), ""), "");
  EXPECT_EQ(bounded(chain(70, twice, {}, value_info("v0", 1, {1024})), "overflow"), "");
}

}  // namespace
}  // namespace rlx::test
