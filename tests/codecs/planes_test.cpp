// Formats with several planes: against fingerprints of models of their specifications, and by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "codecs/codec.h"
#include "core/error.h"
#include "golden.h"

namespace rlx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Bytes bytes_of(const std::vector<std::uint8_t>& values) {
  Bytes bytes = Bytes::allocate(static_cast<Index>(values.size()));
  if (!values.empty()) std::memcpy(const_cast<std::byte*>(bytes.data.data()), values.data(), values.size());
  return bytes;
}

Bytes numbers(const std::vector<float>& values) {
  std::vector<std::uint8_t> bytes(4 * values.size());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes_of(bytes);
}

TensorType type_of(std::string_view name, Index rows, Index columns) {
  const Codec* codec = find_codec(name);
  require(codec != nullptr, "no codec {}", name);
  return {DType::f32, {rows, columns}, *codec->encoding, 1};
}

// Groups 7 c + 3 of columns c; random codes; multiples of 1/256 for the f32.
Bytes plane_to_test(const TensorType& type, std::size_t i, Index blocks) {
  const Plane& plane = type.encoding->planes[i];
  const auto count = static_cast<std::size_t>(type.plane_bytes(i).constant());
  const auto seed = static_cast<std::uint64_t>(11 + i);
  if (plane.name == "groups") {
    std::vector<std::uint8_t> bytes(count);
    for (std::size_t c = 0; 4 * c < count; ++c)
      bytes[4 * c] = static_cast<std::uint8_t>((7 * c + 3) % static_cast<std::size_t>(blocks));
    return bytes_of(bytes);
  }
  if (plane.name.starts_with("codes") || plane.name == "indices") return bytes_of(random_bytes(count, seed));
  const auto halves = random_bytes(count / 2, seed);
  std::vector<float> values(count / 4);
  for (std::size_t j = 0; j < values.size(); ++j) {
    std::int16_t half = 0;
    std::memcpy(&half, halves.data() + 2 * j, 2);
    values[j] = static_cast<float>(half) / 256;
  }
  return numbers(values);
}

Tensor tensor_to_test(std::string_view name, Index rows, Index columns) {
  const TensorType type = type_of(name, rows, columns);
  std::vector<Bytes> planes;
  for (std::size_t i = 0; i < type.plane_count(); ++i) {
    planes.push_back(plane_to_test(type, i, columns / type.encoding->block));
  }
  return {type, std::move(planes)};
}

std::span<const float> floats_of(const Tensor& t) {
  return {reinterpret_cast<const float*>(t.bytes().data()), static_cast<std::size_t>(t.count())};
}

TEST(Planes, EveryFormatDecodesAsItsModel) {
  std::ifstream file(RLX_TEST_DATA "/codecs/planes.txt");
  std::size_t seen = 0, expected = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.front() == '#') continue;
    std::istringstream words(line);
    std::string name;
    Index rows = 0, columns = 0;
    std::uint64_t known = 0;
    ASSERT_TRUE(words >> name >> rows >> columns >> std::hex >> known) << line;
    EXPECT_EQ(fingerprint(floats_of(decode(tensor_to_test(name, rows, columns)))), known) << name;
    ++seen;
  }
  for (const Codec* codec : all_codecs()) expected += codec->encoding->planes.size() > 1 ? 1 : 0;
  EXPECT_EQ(seen, expected);
}

TEST(Planes, P81_EightBitFloatsWithAScale) {
  const Tensor y =
      decode(Tensor(type_of("f8e4m3_tensor", 2, 3), {bytes_of({0x78, 0x7E, 0x7F, 0x08, 0x01, 0xFF}), numbers({2})}));
  EXPECT_EQ(floats_of(y)[0], 512.0F);
  EXPECT_EQ(floats_of(y)[1], 896.0F);
  EXPECT_TRUE(std::isnan(floats_of(y)[2]));
  EXPECT_EQ(floats_of(y)[3], 0x1p-5F);
  EXPECT_EQ(floats_of(y)[4], 0x1p-8F);
  EXPECT_TRUE(std::isnan(floats_of(y)[5]));
  const Tensor z = decode(Tensor(type_of("f8e5m2_tensor", 1, 2), {bytes_of({0x7B, 0x3C}), numbers({0.5F})}));
  EXPECT_EQ(floats_of(z)[0], 28672.0F);
  EXPECT_EQ(floats_of(z)[1], 0.5F);
}

TEST(Planes, P82_FourBitCodesAreUnsignedFromTheLowEnd) {
  std::vector<std::uint8_t> codes(16);
  codes[0] = 0x3A;
  const TensorType type = type_of("zero_b4_g32", 1, 32);
  const Tensor symmetric = decode(Tensor(type, {bytes_of(codes), numbers({1}), numbers({0})}));
  EXPECT_EQ(floats_of(symmetric)[0], 10.0F);
  EXPECT_EQ(floats_of(symmetric)[1], 3.0F);
  const Tensor moved = decode(Tensor(type, {bytes_of(codes), numbers({1}), numbers({8})}));
  EXPECT_EQ(floats_of(moved)[0], 2.0F);
  EXPECT_EQ(floats_of(moved)[1], -5.0F);
  EXPECT_EQ(floats_of(moved)[2], -8.0F);
}

TEST(Planes, P83_NibblesOfMxfp4InOrderAreNeighbours) {
  std::vector<std::uint8_t> codes(16);
  codes[0] = 0x21;
  const Tensor y = decode(Tensor(type_of("mxfp4_linear", 1, 32), {bytes_of(codes), bytes_of({127})}));
  EXPECT_EQ(floats_of(y)[0], 0.5F);
  EXPECT_EQ(floats_of(y)[1], 1.0F);
  EXPECT_EQ(floats_of(y)[16], 0.0F);
}

TEST(Planes, CodesOfThreeBitsCrossBytes) {
  std::vector<std::uint8_t> codes(12);
  codes[0] = 0b10001000, codes[1] = 0b11000110, codes[2] = 0b11111010;  // 0 1 2 3 4 5 6 7
  const Tensor y = decode(Tensor(type_of("mlx_b3_g32", 1, 32), {bytes_of(codes), numbers({2}), numbers({-1})}));
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(floats_of(y)[i], 2 * static_cast<float>(i) - 1) << i;
}

TEST(Planes, AGroupIndexMayBeReadInParts) {
  const Index columns = 128;
  const Tensor t = tensor_to_test("gptq_b4_g32", 1, columns);
  const auto whole = floats_of(decode(t));
  const Codec& codec = *find_codec("gptq_b4_g32");
  const Tensor dense = decode(t);
  for (Index first = 0; first < columns; first += 32) {
    const std::byte* planes[]{t.bytes(0).data() + first / 2, t.bytes(1).data() + 4 * (first / 32),
                              t.bytes(2).data() + 4 * (first / 32), t.bytes(3).data() + 4 * first};
    std::vector<float> part(32);
    codec.decode({planes, 1, 32, first, columns}, part.data());
    for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(part[i], floats_of(dense)[static_cast<std::size_t>(first) + i]);
  }
  EXPECT_EQ(whole.size(), 128U);
}

TEST(Planes, AGroupThatDoesNotExistIsAnError) {
  for (const int group : {2, 255}) {
    Tensor t = tensor_to_test("gptq_b4_g32", 2, 64);
    t.mutable_bytes(3)[4 * 5] = static_cast<std::byte>(group);
    EXPECT_THAT([&] { decode(t); }, ThrowsMessage<Error>(HasSubstr("the group of column 5 is")));
  }
}

TEST(Planes, TheSecondLevelOfFp4HoldsTheRest) {
  std::mt19937 generator(3);
  std::normal_distribution<double> distribution;
  std::vector<double> values(64 * 64);
  for (double& v : values) v = distribution(generator);
  const Tensor x = Tensor::of<double>(DType::f32, {64, 64}, values);
  for (const char* name : {"fp4x2_g16", "fp4x2_g32", "fp4x2_g64"}) {
    Tensor coded = encode(x, *find_codec(name));
    const auto error = [&] {
      const auto y = load<double>(decode(coded));
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += (y[i] - values[i]) * (y[i] - values[i]);
      return std::sqrt(sum);
    };
    const double both = error();
    std::ranges::fill(coded.mutable_bytes(3), std::byte{0});
    EXPECT_GT(error(), 4 * both) << name;
  }
}

TEST(Planes, MoreBitsLoseLess) {
  std::mt19937 generator(4);
  std::normal_distribution<double> distribution;
  std::vector<double> values(16 * 128);
  for (double& v : values) v = distribution(generator);
  const Tensor x = Tensor::of<double>(DType::f32, {16, 128}, values);
  for (const char* group : {"32", "64", "128"}) {
    double before = 1e9;
    for (const char* bits : {"2", "3", "4", "5", "6", "8"}) {
      const auto y = load<double>(decode(encode(x, *find_codec(std::string("mlx_b") + bits + "_g" + group))));
      double error = 0;
      for (std::size_t i = 0; i < y.size(); ++i) error += (y[i] - values[i]) * (y[i] - values[i]);
      EXPECT_LT(error, 0.35 * before) << bits << " bits, groups of " << group;
      before = error;
    }
  }
}

}  // namespace
}  // namespace rlx
