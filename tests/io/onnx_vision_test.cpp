// Published node tests of the package onnx for convolutions, pools and images, and cases that these lack: by the
// references, and as programs of the CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "core/error.h"
#include "io/bounded.h"
#include "io/onnx/onnx.h"
#include "io/onnx_archive.h"
#include "io/onnx_models.h"
#include "runtime/session.h"

namespace rlx::test {
namespace {

// Published answers that have four digits only.
bool has_few_digits(const std::string& name) {
  static const std::set<std::string> all{"averagepool_2d_ceil_last_window_starts_on_pad", "gridsample_bicubic",
                                         "roialign_aligned_false", "roialign_aligned_true"};
  return all.contains(name);
}

// Integers and 8-bit results are equal, others close.
std::string difference(const std::string& name, const Tensor& got, const Tensor& want) {
  const Difference d = compare(got, want, relative(has_few_digits(name) ? 2e-4 : 2e-6));
  return d.ok ? "" : d.where;
}

TEST(OnnxVision, PublishedAndOwnCases) { expect_answers("vision.npz", 220, difference); }

constexpr int f32_type = 1, u8_type = 2, i64_type = 7;

std::string floats_of(const std::vector<float>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float)};
}
std::string string_attribute(const std::string& name, const std::string& value) {
  return bytes_field(1, name) + bytes_field(4, value) + number_field(20, 3);
}

std::vector<double> compiled(const std::string& model, const NamedTensors& inputs) {
  const Graph g = import_onnx(bytes_of(model), "m");
  return load<double>(cpu_session().compile(g, {}, {.poison = true}).run(inputs)[0]);
}

// Nearest neighbours of an image lie beside each other; the image is not repeated as a whole.
TEST(OnnxVision, P15_R8_ResizeOfEveryItemByItself) {
  const std::string scales = raw_tensor("s", f32_type, {4}, floats_of({1, 1, 2, 2}));
  const std::string m = one_node({"Resize", {"x", "", "s"}, {"y"}, {string_attribute("mode", "nearest")}}, {scales}, 13,
                                 {value_info("x", f32_type, {-1, 1, -2, -3})});
  const std::vector<double> one{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4};
  std::vector<double> in, want;
  for (int item = 0; item < 3; ++item) {
    for (const double v : {1, 2, 3, 4}) in.push_back(v + 10 * item);
    for (const double v : one) want.push_back(v + 10 * item);
  }
  EXPECT_EQ(compiled(m, {{"x", Tensor::of<double>(DType::f32, {3, 1, 2, 2}, in)}}), want);
}

// Channels are the second axis; their values lie around 1e4 and keep their digits.
TEST(OnnxVision, P32_P45_NormsOfChannelsFarFromZero) {
  constexpr int n = 2, c = 4, area = 15;
  std::vector<double> in;
  for (int i = 0; i < n * c * area; ++i) in.push_back(10000 * (i / area % c + 1) + i * 7 % 11);
  const Tensor x = Tensor::of<double>(DType::f32, {n, c, 3, 5}, in);
  const std::vector<float> scale{1, -2, 0.5, 3}, bias{0, 1, -1, 7};
  const auto normal = [&](bool batch, int groups) {
    std::vector<double> y(in.size());
    for (int i = 0; i < n * c * area; ++i) {
      const auto same = [&](int k) {
        const int channel = k / area % c, mine = i / area % c;
        return batch ? channel == mine : k / area / c == i / area / c && channel * groups / c == mine * groups / c;
      };
      double count = 0, sum = 0, spread = 0;
      const auto at = [&](int k) { return in[static_cast<std::size_t>(k)]; };
      for (int k = 0; k < n * c * area; ++k) count += same(k), sum += same(k) ? at(k) : 0;
      for (int k = 0; k < n * c * area; ++k) spread += same(k) ? std::pow(at(k) - sum / count, 2) : 0;
      const auto mine = static_cast<std::size_t>(i / area % c);
      y[static_cast<std::size_t>(i)] =
          (at(i) - sum / count) / std::sqrt(spread / count + 1e-5) * scale[mine] + bias[mine];
    }
    return y;
  };
  const auto vector = [](const std::string& name, const std::vector<float>& v) {
    return raw_tensor(name, f32_type, {c}, floats_of(v));
  };
  const std::vector<std::string> channels{vector("s", scale), vector("b", bias), vector("m", {0, 0, 0, 0})};
  const std::vector<std::string> image{value_info("x", f32_type, {n, c, 3, 5})};
  const auto expect = [&](const NodeText& node, const std::vector<double>& want) {
    const std::vector<double> got = compiled(one_node(node, channels, 22, image), {{"x", x}});
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5) << node.op << " " << i;
  };
  expect({"BatchNormalization", {"x", "s", "b", "m", "m"}, {"y"}, {integer_attribute("training_mode", 1)}},
         normal(true, 0));
  expect({"InstanceNormalization", {"x", "s", "b"}, {"y"}, {}}, normal(false, c));
  expect({"GroupNormalization", {"x", "s", "b"}, {"y"}, {integer_attribute("num_groups", 2)}}, normal(false, 2));
}

// What lies around an image counts as its zero point, so nothing is added to the bias there.
TEST(OnnxVision, P90_PaddingOfIntegerConvolutions) {
  const std::string w = raw_tensor("w", u8_type, {2, 1, 3, 3}, std::string(18, '\x35')), zero = std::string(1, '\x05');
  const std::string pads = integers_attribute("pads", {1, 1, 1, 1});
  const Tensor x = Tensor::of<double>(DType::u8, {1, 1, 3, 3}, std::vector<double>(9, 5));
  const std::string known =
      one_node({"ConvInteger", {"x", "w", "z"}, {"y"}, {pads}}, {w, raw_tensor("z", u8_type, {}, zero)}, 10,
               {value_info("x", u8_type, {1, 1, 3, 3})});
  EXPECT_EQ(compiled(known, {{"x", x}}), std::vector<double>(18, 0));
  const std::string given = one_node({"ConvInteger", {"x", "w", "z"}, {"y"}, {pads}}, {w}, 10,
                                     {value_info("x", u8_type, {1, 1, 3, 3}), value_info("z", u8_type, {})});
  EXPECT_EQ(compiled(given, {{"x", x}, {"z", Tensor::of<double>(DType::u8, {}, {5})}}), std::vector<double>(18, 0));
  const auto f = [](float v) { return raw_tensor(v == 2 ? "a" : "b", f32_type, {}, floats_of({v})); };
  const std::string bias = raw_tensor("bias", 6, {2}, std::string("\x0A\0\0\0\xFB\xFF\xFF\xFF", 8));
  const std::string linear =
      one_node({"QLinearConv", {"x", "a", "z", "w", "a", "v", "b", "z", "bias"}, {"y"}, {pads}},
               {w, f(2), f(4), raw_tensor("z", u8_type, {}, zero), raw_tensor("v", u8_type, {}, "\x11"), bias}, 10,
               {value_info("x", u8_type, {1, 1, 3, 3})});
  std::vector<double> want(9, 15);  // 10 * 2 * 2 / 4 + 5
  want.resize(18, 0);               // -5 + 5
  EXPECT_EQ(compiled(linear, {{"x", x}}), want);
}

// Only whole blocks and groups, known ways, sizes that are there.
TEST(OnnxVision, WhatCannotBeIsRefused) {
  const std::vector<std::string> image{value_info("x", f32_type, {1, 6, 4, 5})};
  const auto refused = [&](const NodeText& node, const std::vector<std::string>& constants, const std::string& part,
                           Index opset = 22) {
    const std::string m = one_node(node, constants, opset, image);
    EXPECT_TRUE(refuses([&] { import_onnx(bytes_of(m), "m"); }, part)) << node.op << ": " << part;
  };
  const std::string w = raw_tensor("w", f32_type, {2, 4, 1, 1}, std::string(32, '\0'));
  const auto kernel = [](const std::vector<std::int64_t>& v) { return integers_attribute("kernel_shape", v); };
  refused({"Conv", {"x", "w"}, {"y"}, {}}, {w}, "channels of w times groups, and of x: 4 is not 6");
  refused({"Conv", {"x", "w"}, {"y"}, {string_attribute("auto_pad", "SAME")}}, {w}, "auto_pad 'SAME' is unknown");
  refused({"MaxPool", {"x"}, {"y"}, {kernel({2})}}, {}, "a kernel of 1 axes over f32[1,6,4,5]");
  refused({"MaxPool", {"x"}, {"y"}, {}}, {}, "attribute \"kernel_shape\" is missing");
  refused({"MaxPool", {"x"}, {"y"}, {kernel({2, 0})}}, {}, "\"kernel_shape\" has the element 0");
  refused({"MaxPool", {"x"}, {"y"}, {kernel({2, 2}), integers_attribute("strides", {1, 0})}}, {}, "has the element 0");
  refused({"AveragePool", {"x"}, {"y"}, {kernel({2, 2}), integers_attribute("pads", {0, 0, 0})}}, {},
          "has 3 elements, expected 4");
  refused({"DepthToSpace", {"x"}, {"y"}, {integer_attribute("blocksize", 2)}}, {}, "whole blocks");
  refused({"SpaceToDepth", {"x"}, {"y"}, {integer_attribute("blocksize", 2)}}, {}, "whole blocks");
  refused({"GroupNormalization", {"x", "s", "s"}, {"y"}, {integer_attribute("num_groups", 4)}},
          {raw_tensor("s", f32_type, {6}, std::string(24, '\0'))}, "channels of the groups of a norm");
  refused({"Upsample", {"x", "s"}, {"y"}, {}}, {raw_tensor("s", f32_type, {4}, floats_of({1, 1, 2, 2}))},
          "Upsample ends with version 9");
  refused({"Resize", {"x", "", "s"}, {"y"}, {}}, {raw_tensor("s", f32_type, {4}, floats_of({1, 1, -1, 2}))},
          "a scale is -1");
  refused({"Resize", {"x"}, {"y"}, {}}, {}, "neither scales nor sizes are given");
  refused({"GridSample", {"x", "g"}, {"y"}, {string_attribute("mode", "bilinear")}},
          {raw_tensor("g", f32_type, {1, 1, 1, 2}, std::string(8, '\0'))}, "mode 'bilinear' is unknown");
  refused({"GridSample", {"x", "g"}, {"y"}, {}}, {raw_tensor("g", f32_type, {1, 1, 1, 3}, std::string(12, '\0'))},
          "the grid is f32[1,1,1,3]");
  refused({"CenterCropPad", {"x", "s"}, {"y"}, {}}, {i64_tensor("s", {1, 2})}, "2 sizes are given for 4 axes");
  refused({"RoiAlign", {"x", "r", "i"}, {"y"}, {}},
          {raw_tensor("r", f32_type, {1, 5}, std::string(20, '\0')), i64_tensor("i", {0})},
          "regions are f32[1,5], expected [R, 4]");
}

// Indices of images that are not there are found in the run.
TEST(OnnxVision, P93_RegionsOfImagesThatAreNotThere) {
  const std::string m = one_node(
      {"RoiAlign", {"x", "r", "i"}, {"y"}, {integer_attribute("sampling_ratio", 1)}}, {}, 22,
      {value_info("x", f32_type, {2, 1, 3, 3}), value_info("r", f32_type, {1, 4}), value_info("i", i64_type, {1})});
  const Tensor x = Tensor::of<double>(DType::f32, {2, 1, 3, 3}, std::vector<double>(18, 3));
  const Tensor r = Tensor::of<double>(DType::f32, {1, 4}, {0, 0, 2, 2});
  const auto item = [](std::int64_t i) { return Tensor::of<std::int64_t>(DType::i64, {1}, {i}); };
  EXPECT_EQ(compiled(m, {{"x", x}, {"r", r}, {"i", item(1)}}), std::vector<double>{3});
  EXPECT_TRUE(refuses([&] { compiled(m, {{"x", x}, {"r", r}, {"i", item(2)}}); }, "2"));
}

}  // namespace
}  // namespace rlx::test
