// Products of activations in 8-bit blocks by matrices of codes: every form at every level, against f64 on what both
// decode to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "codecs/codec.h"
#include "encoded_tensors.h"
#include "levels.h"
#include "ops/constant/constant.h"
#include "ops/encode/encode.h"
#include "ops/encoded_product.h"
#include "ops/matmul/coded_form.h"
#include "ops/matmul/matmul.h"
#include "ops/scalar/scalar.h"
#include "run_step.h"

namespace rlx::test {
namespace {

std::vector<const Codec*> coded_formats() {
  std::vector<const Codec*> all;
  for (const Codec* codec : all_codecs()) {
    if (coded_matrix(*codec->encoding)) all.push_back(codec);
  }
  return all;
}

TEST(CodedMatmul, FormatsThatHaveKernels) {
  std::vector<std::string_view> names;
  for (const Codec* codec : coded_formats()) names.push_back(codec->encoding->name);
  for (const std::string_view name : {"q4_0", "q4_1", "q8_0", "q4_k"})
    EXPECT_TRUE(std::ranges::find(names, name) != names.end()) << name;
}

// Blocks taken apart mean what the format decodes to, bit for bit.
TEST(CodedMatmul, FormsMeanTheFormat) {
  for (const Codec* codec : coded_formats()) {
    const IntegerForm& f = *codec->integers;
    const Tensor w = random_blocks(*codec, 1, 64 * f.block, 7);
    SCOPED_TRACE(w.type().text());
    const Tensor dense = decode(w);
    const auto* const want = reinterpret_cast<const float*>(dense.bytes().data());
    for (Index b = 0; b < 64; ++b) {
      IntegerBlock block{};
      f.take(reinterpret_cast<const std::uint8_t*>(w.bytes().data()) + b * codec->encoding->planes[0].bytes, block);
      const auto half = [&](std::uint16_t bits) {
        return static_cast<float>(decode_float(f.is_bfloat ? DType::bf16 : DType::f16, bits));
      };
      for (Index i = 0; i < f.block; ++i) {
        ASSERT_LT(block.codes[i], 1 << f.bits);
        const Index group = i / f.group;
        const float scale = half(block.scale) * (f.grouped ? static_cast<float>(block.scales[group]) : 1.0F);
        const int value = f.values ? f.values[block.codes[i]] : block.codes[i] - f.bias;
        float y = scale * static_cast<float>(value);
        if (f.has_minimum) y += half(block.minimum) * (f.grouped ? static_cast<float>(block.minima[group]) : 1.0F);
        ASSERT_EQ(y, want[b * f.block + i]) << "block " << b << " element " << i;
      }
    }
  }
}

TEST(CodedMatmul, EveryFormTimesBlocksOfActivations) {
  for (const Codec* codec : coded_formats()) {
    const Index k = 3 * std::lcm(codec->encoding->block, Index{64});
    for (const Index n : {1, 16, 67, 129}) {
      const Tensor w = random_blocks(*codec, n, k, 3);
      SCOPED_TRACE(w.type().text());
      for (const Index m : {1, 2, 3, 5, 8, 16, 33}) {
        if (n != 67 && m > 3) continue;
        const Tensor x = encode(numbers({m, k}, 5), *find_codec("a8"));
        const Tensor want = Tensor::of(DType::f32, {m, n}, product(decode(x), w));
        at_every_level([&] {
          const Tensor got = run_product(x, w);
          // One column may be small beside the products that it is the sum of.
          const Difference d = compare(got, want, relative(n == 1 ? 2e-5 : 2e-6));
          EXPECT_TRUE(d.ok) << "rows " << m << " " << d.where;
          EXPECT_TRUE(identical(run_product(x, w, true, 7), got)) << "in pieces, rows " << m;
        });
      }
    }
  }
}

// Row i does not depend on how many rows there are.
TEST(CodedMatmul, RowsHaveTheSameBitsAlone) {
  for (const Codec* codec : coded_formats()) {
    const Index k = 2 * std::lcm(codec->encoding->block, Index{64}), n = 83;
    const Tensor w = random_blocks(*codec, n, k, 3);
    SCOPED_TRACE(w.type().text());
    const Tensor rows = numbers({200, k}, 9);
    const std::vector<double> values = load<double>(rows);
    const Codec& a8 = *find_codec("a8");
    at_every_level([&] {
      const std::vector<double> all = load<double>(run_product(encode(rows, a8), w));
      for (const Index first : {0, 17, 191, 196}) {
        for (const Index count : {1, 2, 3, 4}) {
          const std::vector<double> some(values.begin() + first * k, values.begin() + (first + count) * k);
          const Tensor x = encode(Tensor::of(DType::f32, {count, k}, some), a8);
          const std::vector<double> alone = load<double>(run_product(x, w));
          EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + first * n)) << first << " " << count;
        }
      }
    });
  }
}

// The largest codes of both operands do not overflow what sums are kept in.
TEST(CodedMatmul, NothingSaturates) {
  std::vector<double> large(96, 1.0), signs(96);
  for (std::size_t i = 0; i < signs.size(); ++i) signs[i] = i < 32 ? 1 : -1;
  const Tensor w = encode(Tensor::of(DType::f32, {1, 96}, large), *find_codec("q8_0"));
  const Tensor x = encode(Tensor::of(DType::f32, {1, 96}, signs), *find_codec("a8"));
  const double unit = load<double>(decode(w))[0];
  at_every_level([&] { EXPECT_NEAR(load<double>(run_product(x, w))[0], -32 * unit, 1e-5); });
}

// NaN in a row stays in that row.
TEST(CodedMatmul, NaNStaysInItsRow) {
  const Index k = 64;
  std::vector<double> rows(3 * k, 0.5);
  rows[k + 5] = std::nan("");
  Builder g;
  const Tensor x = Tensor::of(DType::f32, {3, k}, rows);
  const Graph blocks = g.finish({encode(g.input("x", x.type()), "a8")});
  const Tensor encoded = evaluate(blocks, std::vector<Tensor>{x}, {})[0];
  for (const Codec* codec : coded_formats()) {
    if (k % codec->encoding->block != 0) continue;
    const Tensor w = random_blocks(*codec, 5, k, 3);
    at_every_level([&] {
      const std::vector<double> y = load<double>(run_product(encoded, w));
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 5 == 1) << i;
    });
  }
}

}  // namespace
}  // namespace rlx::test
