// ONNX import: operators as they were before version 7 of the standard set, with hand-computed results.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "io/bounded.h"
#include "io/onnx/onnx.h"
#include "io/onnx_models.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

using L = std::vector<double>;

struct Input {
  std::vector<std::int64_t> shape;
  L values;
};

NodeText with(const std::string& op, std::size_t operands, const std::vector<std::string>& attributes) {
  NodeText n{op, {}, {"y"}, attributes};
  for (std::size_t i = 0; i < operands; ++i) n.in.push_back("x" + std::to_string(i));
  return n;
}

// The elements of the result on f32 inputs.
L result(const NodeText& node, const std::vector<Input>& in, std::int64_t opset) {
  std::vector<std::string> infos;
  NamedTensors named;
  for (std::size_t i = 0; i < in.size(); ++i) {
    infos.push_back(value_info(node.in[i], 1, in[i].shape));
    named.emplace(node.in[i], Tensor::of<double>(DType::f32, {in[i].shape.begin(), in[i].shape.end()}, in[i].values));
  }
  return load<double>(evaluate(import_onnx(bytes_of(one_node(node, {}, opset, infos)), "m"), named).at(0));
}

std::string floats(const std::string& name, float value) {
  return bytes_field(1, name) + float_field(2, value) + number_field(20, 1);
}

const Input matrix{{2, 3}, {1, 2, 3, 4, 5, 6}};

TEST(OnnxOlder, BroadcastByAttribute) {
  const std::string broadcast = integer_attribute("broadcast", 1);
  for (const std::int64_t opset : {1, 6}) {
    EXPECT_EQ(result(with("Add", 2, {broadcast}), {matrix, {{3}, {10, 20, 30}}}, opset), (L{11, 22, 33, 14, 25, 36}));
    EXPECT_EQ(result(with("Mul", 2, {broadcast, integer_attribute("axis", 0)}), {matrix, {{2}, {1, 10}}}, opset),
              (L{1, 2, 3, 40, 50, 60}));
    EXPECT_EQ(result(with("Sub", 2, {broadcast, integer_attribute("axis", 1)}), {matrix, {{3}, {1, 1, 2}}}, opset),
              (L{0, 1, 1, 3, 4, 4}));
    EXPECT_EQ(result(with("Div", 2, {broadcast, integer_attribute("axis", -2)}), {matrix, {{2}, {1, 2}}}, opset),
              (L{1, 2, 3, 2, 2.5, 3}));
    EXPECT_EQ(result(with("Pow", 2, {}), {matrix, {{2, 3}, {2, 2, 2, 1, 1, 1}}}, opset), (L{1, 4, 9, 4, 5, 6}));
    EXPECT_EQ(result(with("Less", 2, {broadcast}), {matrix, {{3}, {2, 2, 9}}}, opset), (L{1, 0, 1, 0, 0, 1}));
  }
}

TEST(OnnxOlder, BroadcastThatIsNotAskedForIsRefused) {
  const Input row{{3}, {10, 20, 30}};
  EXPECT_TRUE(refuses([&] { result(with("Add", 2, {}), {matrix, row}, 6); }, "expected the same sizes"));
  EXPECT_TRUE(refuses([&] { result(with("Add", 2, {integer_attribute("axis", 0)}), {matrix, row}, 6); },
                      "axis is given without broadcast"));
  const std::string broadcast = integer_attribute("broadcast", 1);
  EXPECT_TRUE(refuses([&] { result(with("Add", 2, {broadcast, integer_attribute("axis", 2)}), {matrix, row}, 6); },
                      "axis 2 is out of range for rank 2"));
  EXPECT_TRUE(refuses([&] { result(with("Add", 2, {broadcast, integer_attribute("axis", 1)}), {row, matrix}, 6); },
                      "the second may not have more axes"));
  EXPECT_TRUE(refuses([&] { result(with("Add", 2, {broadcast}), {matrix, row}, 7); },
                      "attribute 'broadcast' is not supported"));
}

TEST(OnnxOlder, SlopesOfChannels) {
  const Input x{{1, 2, 2}, {-1, -2, -3, 4}};
  EXPECT_EQ(result(with("PRelu", 2, {}), {x, {{2}, {0.5, 2}}}, 6), (L{-0.5, -1, -6, 4}));
  EXPECT_EQ(result(with("PRelu", 2, {}), {x, {{1}, {0.5}}}, 6), (L{-0.5, -1, -1.5, 4}));
}

TEST(OnnxOlder, GemmBroadcastsItsSum) {
  const Input c{{2}, {1, -1}}, b{{3, 2}, {1, 0, 0, 1, 1, 1}};
  EXPECT_EQ(result(with("Gemm", 3, {integer_attribute("broadcast", 1), floats("alpha", 2)}), {matrix, b, c}, 6),
            (L{9, 9, 21, 21}));
  EXPECT_TRUE(refuses([&] { result(with("Gemm", 3, {}), {matrix, b, c}, 6); }, "expected rank 2 without broadcast"));
}

TEST(OnnxOlder, NormsAndDropoutOfTestRuns) {
  const Input x{{1, 2, 2}, {1, 3, 5, 9}}, two{{2}, {2, 2}}, zero{{2}, {0, 0}}, middle{{2}, {2, 7}}, one{{2}, {1, 1}};
  const std::vector<std::string> test{integer_attribute("is_test", 1), floats("epsilon", 0)};
  EXPECT_EQ(result(with("BatchNormalization", 5, test), {x, two, zero, middle, one}, 6), (L{-2, 2, -4, 4}));
  EXPECT_TRUE(refuses([&] { result(with("BatchNormalization", 5, {}), {x, two, zero, middle, one}, 6); },
                      "training before version 14 is not supported"));
  EXPECT_EQ(result(with("Dropout", 1, {integer_attribute("is_test", 1)}), {matrix}, 6), matrix.values);
  EXPECT_TRUE(refuses([&] { result(with("Dropout", 1, {}), {matrix}, 6); }, "training before version 12"));
}

TEST(OnnxOlder, HintsAboutMemoryAreNoAttributes) {
  const std::string hint = bytes_field(1, "consumed_inputs") + number_field(8, 0) + number_field(20, 7);
  EXPECT_EQ(result(with("Neg", 1, {hint}), {matrix}, 5), (L{-1, -2, -3, -4, -5, -6}));
  EXPECT_TRUE(refuses([&] { result(with("Neg", 1, {hint}), {matrix}, 6); }, "'consumed_inputs' is not supported"));
  EXPECT_NEAR(result(with("Selu", 1, {}), {{{1}, {1}}}, 1)[0], 1.0507, 1e-7);
  EXPECT_NEAR(result(with("Selu", 1, {}), {{{1}, {1}}}, 6)[0], 1.0507009873554805, 1e-7);
}

// x = (o + 0.5) / scale, with no half taken away: rows 0.5/0.6, 1.5/0.6, 2.5/0.6.
TEST(OnnxOlder, ResizeOfVersion11) {
  const std::string word =
      bytes_field(1, "coordinate_transformation_mode") + bytes_field(4, "tf_half_pixel_for_nn") + number_field(20, 3);
  const float scale = 0.6F;
  const std::string scales = raw_tensor("s", 1, {1}, {reinterpret_cast<const char*>(&scale), sizeof scale});
  const std::string roi = raw_tensor("r", 1, {0}, "");
  const NodeText n{"Resize", {"x", "r", "s"}, {"y"}, {word}};
  const auto y = [&](std::int64_t opset) {
    const Graph g = import_onnx(bytes_of(one_node(n, {roi, scales}, opset, {value_info("x", 1, {5})})), "m");
    return load<double>(evaluate(g, {{"x", Tensor::of<double>(DType::f32, {5}, {0, 1, 2, 3, 4})}}).at(0));
  };
  EXPECT_EQ(y(11), (L{1, 2, 4}));
  EXPECT_TRUE(refuses([&] { y(13); }, "'tf_half_pixel_for_nn' is unknown"));
}

}  // namespace
}  // namespace rlx::test
