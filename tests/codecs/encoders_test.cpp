// Encoders: their squared error, the importance of columns, and elements that are hard to store.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codecs/codec.h"

namespace rlx {
namespace {

constexpr Index rows = 16, columns = 512;

std::vector<double> normal(unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution;
  std::vector<double> values(rows * columns);
  for (double& v : values) v = 0.02 * distribution(generator);
  return values;
}

double squared_error(const Tensor& a, const Tensor& b, const std::vector<double>& weights = {}) {
  const auto x = load<double>(a), y = load<double>(b);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += (weights.empty() ? 1 : weights[i % weights.size()]) * (x[i] - y[i]) * (x[i] - y[i]);
  }
  return sum;
}

// Of normal numbers, the squared error over the sum of squares; the bounds are 3 % above what was measured.
struct Row {
  const char* name;
  double error;
};
constexpr Row known[]{
    {"q4_0", 0.006531},   {"q4_1", 0.004771},   {"q5_0", 0.001626},  {"q5_1", 0.001141},
    {"q8_0", 2.816e-05},  {"q8_1", 2.816e-05},  {"q2_k", 0.06994},   {"q3_k", 0.02042},
    {"q4_k", 0.004945},   {"q5_k", 0.001277},   {"q6_k", 0.0003044}, {"q8_k", 4.886e-05},
    {"iq4_nl", 0.005466}, {"iq4_xs", 0.005603}, {"mxfp4", 0.01272},  {"nvfp4", 0.009223},
};

TEST(Encoders, LoseNoMoreThanTheyDid) {
  const Tensor x = Tensor::of<double>(DType::f32, {rows, columns}, normal(1));
  const Tensor zero(DType::f32, {rows, columns});
  for (const Row& row : known) {
    const Codec* codec = find_codec(row.name);
    ASSERT_NE(codec, nullptr) << row.name;
    const double error = squared_error(x, decode(encode(x, *codec))) / squared_error(x, zero);
    EXPECT_LT(error, 1.03 * row.error) << row.name;
  }
}

TEST(Encoders, ImportantColumnsAreStoredBetter) {
  const Tensor x = Tensor::of<double>(DType::f32, {rows, columns}, normal(2));
  std::vector<double> weights(columns);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = i % 7 == 0 ? 10 : 0.1;
  const Tensor importance = Tensor::of<double>(DType::f32, {columns}, weights);
  for (const char* name :
       {"q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4"}) {
    const Codec& codec = *find_codec(name);
    const double with = squared_error(x, decode(encode(x, codec, &importance)), weights);
    const double without = squared_error(x, decode(encode(x, codec)), weights);
    EXPECT_LT(with, 0.97 * without) << name;
  }
}

TEST(Encoders, ZerosStayZerosAndEqualElementsStayNear) {
  for (const Codec* codec : all_codecs()) {
    if (!codec->encode) continue;
    const std::vector<Index> shape{2, codec->encoding->block};
    const auto count = static_cast<std::size_t>(2 * codec->encoding->block);
    for (const double value : {0.0, 0.5, -0.5, 2e3, -1e-3}) {
      const Tensor x = Tensor::of<double>(DType::f32, shape, std::vector<double>(count, value));
      for (const double y : load<double>(decode(encode(x, *codec)))) {
        EXPECT_NEAR(y, value, 0.2 * std::fabs(value)) << codec->encoding->name;
      }
    }
  }
}

TEST(Encoders, ExtremesAndOutliersGiveNoNan) {
  const std::vector<std::vector<double>> patterns{
      {3e38, -3e38, 1, 0}, {1e-40, -1e-40, 0, 1e-45}, {1e-7, 2e-7, -1e-7}, {1e6, 1, 0, 0, 0, 0, 0}, {-1e20, 1e-20}};
  for (const Codec* codec : all_codecs()) {
    if (!codec->encode) continue;
    const auto count = static_cast<std::size_t>(codec->encoding->block);
    for (const auto& pattern : patterns) {
      std::vector<double> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = pattern[i % pattern.size()];
      const Tensor x = Tensor::of<double>(DType::f32, {1, codec->encoding->block}, values);
      for (const double y : load<double>(decode(encode(x, *codec)))) {
        EXPECT_FALSE(std::isnan(y)) << codec->encoding->name << ", " << pattern[0];
      }
    }
  }
}

}  // namespace
}  // namespace rlx
