// ONNX import: inputs that are fixed to values, and operators with hand-computed results.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "io/bounded.h"
#include "io/onnx/onnx.h"
#include "io/onnx_models.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

std::string refusal(const std::string& text, const OnnxOptions& options) {
  try {
    import_onnx(bytes_of(text), "test", options);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string string_attribute(const std::string& name, const std::string& value) {
  return bytes_field(1, name) + bytes_field(4, value) + number_field(20, 3);
}

// The elements of the only result of a node over these inputs, which have the format's types 1 (f32), 6 (i32), 7 (i64).
std::vector<double> result(const NodeText& node, const std::vector<Tensor>& in, std::int64_t opset = 18) {
  std::vector<std::string> infos;
  NamedTensors named;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const int type = in[i].dtype() == DType::f32 ? 1 : in[i].dtype() == DType::i32 ? 6 : 7;
    infos.push_back(value_info(node.in[i], type, {in[i].shape().begin(), in[i].shape().end()}));
    named.emplace(node.in[i], in[i]);
  }
  return load<double>(evaluate(import_onnx(bytes_of(one_node(node, {}, opset, infos)), "test"), named).at(0));
}

Tensor real(std::vector<Index> shape, const std::vector<double>& v) {
  return Tensor::of<double>(DType::f32, std::move(shape), v);
}
Tensor whole(DType type, std::vector<Index> shape, const std::vector<std::int64_t>& v) {
  return Tensor::of<std::int64_t>(type, std::move(shape), v);
}

using L = std::vector<double>;

TEST(OnnxFixed, InputsBecomeConstants) {
  const std::string text =
      one_node({"Reshape", {"x", "s"}, {"y"}, {}}, {}, 17, {value_info("x", 1, {2, 3}), value_info("s", 7, {2})});
  EXPECT_NE(refusal(text, {}).find("depends on the data of a run"), std::string::npos);
  OnnxOptions options;
  options.fixed.emplace("s", whole(DType::i64, {2}, {3, 2}));
  const Graph g = import_onnx(bytes_of(text), "test", options);
  EXPECT_EQ(g.input_names, std::vector<std::string>{"x"});
  const Tensor y = evaluate(g, {{"x", real({2, 3}, {1, 2, 3, 4, 5, 6})}}).at(0);
  EXPECT_EQ(y.shape(), (std::vector<Index>{3, 2}));
  EXPECT_EQ(load<double>(y), (L{1, 2, 3, 4, 5, 6}));
}

TEST(OnnxFixed, WhatDoesNotFitIsRefused) {
  const std::string text = one_node({"Neg", {"x"}, {"y"}, {}});
  const auto why = [&](const std::string& name, Tensor value) {
    OnnxOptions options;
    options.fixed.emplace(name, std::move(value));
    return refusal(text, options);
  };
  EXPECT_NE(why("z", real({2, 3}, L(6))).find("has no input called 'z', which is to be fixed"), std::string::npos);
  for (const Tensor& t : {real({3, 2}, L(6)), real({6}, L(6)), Tensor(DType::f64, {2, 3})}) {
    const std::string message = why("x", t);
    EXPECT_NE(message.find("input 'x' is fixed to a tensor " + t.type().text()), std::string::npos) << message;
  }
}

// A Squeeze of all sizes of 1 needs numbers; a size that has a name has its number wherever the name stands.
TEST(OnnxShapes, SizesBecomeNumbers) {
  const std::string text = one_node({"Squeeze", {"x"}, {"y"}, {}}, {}, 11, {value_info("x", 1, {-1, 3, -2})});
  EXPECT_NE(refusal(text, {}).find("may be 1 or not"), std::string::npos);
  OnnxOptions options;
  options.shapes["x"] = {1, 3, 2};
  const Graph g = import_onnx(bytes_of(text), "test", options);
  EXPECT_EQ(g.nodes[g.inputs[0]].results[0].text(), "f32[1,3,2]");
  EXPECT_EQ(evaluate(g, {{"x", real({1, 3, 2}, L(6))}}).at(0).shape(), (std::vector<Index>{3, 2}));
  options.shapes["x"] = {-1, 3, 2};
  const std::string negated = one_node({"Neg", {"x"}, {"y"}, {}}, {}, 11, {value_info("x", 1, {-1, 3, -2})});
  const Graph part = import_onnx(bytes_of(negated), "test", options);
  EXPECT_EQ(part.nodes[part.inputs[0]].results[0].text(), "f32[d1,3,2]");
}

TEST(OnnxShapes, WhatDoesNotFitIsRefused) {
  const std::string text = one_node({"Neg", {"x"}, {"y"}, {}}, {}, 11, {value_info("x", 1, {2, 3})});
  const auto why = [&](const std::string& name, std::vector<Index> shape) {
    OnnxOptions options;
    options.shapes[name] = std::move(shape);
    return refusal(text, options);
  };
  EXPECT_NE(why("z", {2, 3}).find("has no input called 'z', which has a shape in the options"), std::string::npos);
  EXPECT_NE(why("x", {2}).find("input 'x' has 2 axes, a shape of 1 is asked for"), std::string::npos);
  EXPECT_NE(why("x", {2, 4}).find("size 1 of input 'x' is 3, asked to be 4"), std::string::npos);
  OnnxOptions options;
  options.shapes["x"] = {1, 2};
  const std::string twice = one_node({"Neg", {"x"}, {"y"}, {}}, {}, 11, {value_info("x", 1, {-1, -1})});
  EXPECT_NE(refusal(twice, options).find("'d1' is asked to be 1 and 2"), std::string::npos);
  EXPECT_NE(why("x", {2, -3}).find("size 1 of input 'x' is asked to be -3"), std::string::npos);
}

TEST(OnnxParts, ShiftsBeyondTheWidth) {
  const Tensor a = whole(DType::i32, {4}, {-8, 8, -8, 8}), b = whole(DType::i32, {4}, {32, 40, -1, 1});
  const auto shift = [&](const std::string& way) {
    return result({"BitShift", {"a", "b"}, {"y"}, {string_attribute("direction", way)}}, {a, b});
  };
  EXPECT_EQ(shift("RIGHT"), (L{-1, 0, -1, 4}));
  EXPECT_EQ(shift("LEFT"), (L{0, 0, 0, 16}));
}

TEST(OnnxParts, RemainderHasTheDivisorsSign) {
  const L y = result({"Mod", {"a", "b"}, {"y"}, {}}, {real({5}, {-4, 7, 5, 4, -4}), real({5}, {3, -3, 8, -2, 2})}, 13);
  EXPECT_EQ(y, (L{2, -2, 5, -0.0, 0}));
  EXPECT_TRUE(std::signbit(y[3]));
  EXPECT_FALSE(std::signbit(y[4]));
}

TEST(OnnxParts, EinsumOfDiagonalsAndThreeOperands) {
  const auto einsum = [](const std::string& equation, const std::vector<std::string>& names,
                         const std::vector<Tensor>& in) {
    return result({"Einsum", names, {"y"}, {string_attribute("equation", equation)}}, in);
  };
  const Tensor a = real({2, 2}, {1, 2, 3, 4}), b = real({2, 2}, {5, 6, 7, 8}), v = real({2}, {10, 100});
  EXPECT_EQ(einsum("ii", {"a"}, {a}), (L{5}));
  EXPECT_EQ(einsum("ii->i", {"a"}, {a}), (L{1, 4}));
  EXPECT_EQ(einsum("ba", {"a"}, {a}), (L{1, 3, 2, 4}));
  EXPECT_EQ(einsum("ij,jk,k->i", {"a", "b", "v"}, {a, b, v}), (L{19 * 10 + 22 * 100, 43 * 10 + 50 * 100}));
  EXPECT_EQ(einsum("i,j->ji", {"v", "w"}, {v, real({2}, {1, 2})}), (L{10, 100, 20, 200}));
  EXPECT_EQ(einsum("...j,j->...", {"a", "v"}, {a, v}), (L{210, 430}));
}

TEST(OnnxParts, IgnoredLabelsWeighNothing) {
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor x = real({3, 2}, {-1, -2, -inf, -4, -5, -6}), w = real({2}, {3, 0.5});
  const auto loss = [&](const std::string& kind, const std::vector<std::int64_t>& labels) {
    return result({"NegativeLogLikelihoodLoss",
                   {"x", "t", "w"},
                   {"y"},
                   {string_attribute("reduction", kind), integer_attribute("ignore_index", -7)}},
                  {x, whole(DType::i64, {3}, labels), w});
  };
  EXPECT_EQ(loss("none", {1, -7, 0}), (L{1, 0, 15}));
  EXPECT_EQ(loss("sum", {1, -7, 0}), (L{16}));
  EXPECT_NEAR(loss("mean", {1, -7, 0})[0], 16 / 3.5, 1e-6);
  EXPECT_EQ(loss("none", {1, 0, 0}), (L{1, inf, 15}));
}

TEST(OnnxParts, HyperbolicFunctionsOverTheWholeRange) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto check = [&](const std::string& op, double (*f)(double), const L& at) {
    const L y = result({op, {"x"}, {"y"}, {}}, {real({static_cast<Index>(at.size())}, at)});
    for (std::size_t i = 0; i < at.size(); ++i) {
      const double want = f(static_cast<double>(static_cast<float>(at[i])));
      if (std::isfinite(want)) {
        EXPECT_NEAR(y[i], want, 1.2e-7 * std::fabs(want)) << op << " of " << at[i];
      } else {
        EXPECT_EQ(y[i], want) << op << " of " << at[i];
      }
    }
  };
  check("Sinh", std::sinh, {-1e-30, -0.0, 0.3, -2, 25, 89, inf, -inf});
  check("Cosh", std::cosh, {-1e-30, -0.0, 0.3, -2, 25, 89, inf, -inf});
  check("Asinh", std::asinh, {-1e-30, 0.3, -2, 1e30, inf, -inf});
  check("Acosh", std::acosh, {1, 1.5, 1e30, inf});
  check("Atanh", std::atanh, {-1e-30, 0.3, -0.9, 1, -1});
  check("Asin", std::asin, {-1, -1e-30, 0.5, 1});
  check("Acos", std::acos, {-1, 0, 0.5, 0.999999, 1});
}

// --- what cannot be imported ---

std::vector<OnnxProblem> problems_of(const std::string& text) {
  std::vector<OnnxProblem> all;
  OnnxOptions options;
  options.on_problem = [&](const OnnxProblem& p) { all.push_back(p); };
  EXPECT_THROW(import_onnx(bytes_of(text), "test", options), Error);
  return all;
}

NodeText node(const std::string& op, const std::vector<std::string>& in, const std::string& out,
              const std::vector<std::string>& attributes = {}, const std::string& domain = "") {
  return {op, in, {out}, attributes, out + "_node", domain};
}

TEST(OnnxProblems, AreAllListedWithWhatTheyRead) {
  GraphText g;
  g.inputs = {value_info("x", 1, {2, 3}), value_info("words", 8, {2})};
  g.nodes = {node("Nothing", {"x", ""}, "a", {integer_attribute("k", 3)}),
             node("Neg", {"x"}, "b", {string_attribute("mode", "soft")}), node("Neg", {"a"}, "c"),
             node("Elsewhere", {"a"}, "d", {}, "org.example"), node("Transpose", {"b"}, "e")};
  g.outputs = {bytes_field(1, "c")};
  const std::vector<OnnxProblem> all = problems_of(model(g));
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].op, "");
  EXPECT_EQ(all[0].name, "words");
  EXPECT_NE(all[0].why.find("STRING"), std::string::npos);
  EXPECT_EQ(all[1].op, "Nothing");
  EXPECT_EQ(all[1].position, "0");
  EXPECT_EQ(all[1].name, "a_node");
  EXPECT_EQ(all[1].version, 17);
  EXPECT_EQ(all[1].why, "the operator is not supported");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(all[1].operands, (Pairs{{"x", "f32[2,3]"}, {"", "left out"}}));
  EXPECT_EQ(all[1].attributes, (Pairs{{"k", "3"}}));
  EXPECT_EQ(all[1].results, std::vector<std::string>{"a"});
  EXPECT_EQ(all[2].position, "1");
  EXPECT_EQ(all[2].why, "attribute 'mode' is not supported");
  EXPECT_EQ(all[2].attributes, (Pairs{{"mode", "'soft'"}}));
  EXPECT_EQ(all[3].position, "3") << "an operator that is missing shows behind another too";
  EXPECT_EQ(all[3].domain, "org.example");
  EXPECT_EQ(all[3].version, -1);
  EXPECT_EQ(all[3].operands, (Pairs{{"a", "?"}}));
}

TEST(OnnxProblems, OfBodiesHaveThePositionOfTheirNode) {
  GraphText body;
  body.nodes = {node("Neg", {"x"}, "p"), node("Nothing", {"p"}, "q")};
  body.outputs = {bytes_field(1, "q")};
  GraphText g;
  g.inputs = {value_info("x", 1, {2, 3}), value_info("c", 9, {})};
  g.nodes = {node("Neg", {"x"}, "a"),
             node("If", {"c"}, "y",
                  {graph_attribute("then_branch", message(body)), graph_attribute("else_branch", message(body))})};
  g.outputs = {bytes_field(1, "y")};
  const std::vector<OnnxProblem> all = problems_of(model(g));
  ASSERT_GE(all.size(), 1U);
  EXPECT_EQ(all[0].op, "Nothing");
  EXPECT_EQ(all[0].position, "1.1");
}

// The message groups at most 60 reasons; the list is whole.
TEST(OnnxProblems, MoreThanTheMessageHolds) {
  GraphText g;
  g.inputs = {value_info("x", 1, {2, 3})};
  for (int i = 0; i < 200; ++i) g.nodes.push_back(node("Nothing" + std::to_string(i), {"x"}, "y" + std::to_string(i)));
  g.outputs = {bytes_field(1, "y0")};
  const std::vector<OnnxProblem> all = problems_of(model(g));
  ASSERT_EQ(all.size(), 200U);
  EXPECT_EQ(all[199].op, "Nothing199");
}

}  // namespace
}  // namespace rlx::test
