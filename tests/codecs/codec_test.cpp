// The list of codecs, whole tensors through them, and what is rejected.
#include "codecs/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"

namespace rlx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor wave(std::vector<Index> shape) {
  Tensor t(DType::f32, std::move(shape));
  std::vector<double> values(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.37 * static_cast<double>(i));
  store(t, values);
  return t;
}

TEST(Codec, EveryEncodingIsFoundByItsNameAndItsAddress) {
  std::set<std::string_view> names;
  for (const Codec* codec : all_codecs()) {
    EXPECT_TRUE(names.insert(codec->encoding->name).second) << codec->encoding->name;
    EXPECT_EQ(find_codec(codec->encoding->name), codec);
    EXPECT_EQ(&codec_of(*codec->encoding), codec);
    EXPECT_NE(codec->decode, nullptr);
    EXPECT_FALSE(codec->source.empty());
  }
  EXPECT_TRUE(names.contains("q4_0") && names.contains("q4_k"));
  EXPECT_EQ(find_codec("q4"), nullptr);
}

TEST(Codec, WholeTensorsKeepTheirShape) {
  for (const Codec* codec : all_codecs()) {
    if (!codec->encode) continue;
    const Index block = codec->encoding->block;
    const Tensor x = wave({2, 3, 2 * block});
    const Tensor coded = encode(x, *codec);
    EXPECT_EQ(coded.type(), TensorType(DType::f32, {2, 3, 2 * block}, *codec->encoding, 2));
    const Tensor y = decode(coded);
    EXPECT_EQ(y.shape(), x.shape());
    const auto a = load<double>(x), b = load<double>(y);
    double error = 0, power = 0;
    for (std::size_t i = 0; i < a.size(); ++i) error += (a[i] - b[i]) * (a[i] - b[i]), power += a[i] * a[i];
    EXPECT_LT(error, 0.3 * power) << codec->encoding->name;
    const Tensor none = encode(wave({0, 2 * block}), *codec);
    EXPECT_EQ(decode(none).shape(), (std::vector<Index>{0, 2 * block}));
  }
}

TEST(Codec, RejectsWhatItCannotStore) {
  const Codec& q8 = *find_codec("q8_0");
  EXPECT_THAT([&] { encode(wave({4, 33}), q8); }, ThrowsMessage<Error>(HasSubstr("no multiple of the 32 elements")));
  EXPECT_THAT([&] { encode(Tensor::scalar(DType::f32, 1), q8); }, ThrowsMessage<Error>(HasSubstr("rank 0")));
  EXPECT_THAT([&] { encode(Tensor(DType::f64, {32}), q8); }, ThrowsMessage<Error>(HasSubstr("expected f32")));
  EXPECT_THAT([&] { decode(wave({32})); }, ThrowsMessage<Error>(HasSubstr("is not encoded")));
  const Tensor weights(DType::f32, {31});
  EXPECT_THAT([&] { encode(wave({4, 32}), q8, &weights); }, ThrowsMessage<Error>(HasSubstr("importance is f32[31]")));
  Tensor bad = wave({2, 32});
  store(bad, std::vector<double>(64, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_THAT([&] { encode(bad, q8); }, ThrowsMessage<Error>(HasSubstr("element 0 of a tensor to encode is nan")));
  const Codec only_read{.encoding = q8.encoding, .decode = q8.decode};
  EXPECT_THAT([&] { encode(wave({32}), only_read); }, ThrowsMessage<Error>(HasSubstr("is only read")));
}

}  // namespace
}  // namespace rlx
