// Products, rows and gradients of block-quantised matrices: every format, at every level, against f64 on what it
// decodes to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "autodiff/gradient.h"
#include "codecs/codec.h"
#include "encoded_tensors.h"
#include "levels.h"
#include "ops/constant/constant.h"
#include "ops/encode/encode.h"
#include "ops/encoded_product.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"
#include "run_step.h"

namespace rlx::test {
namespace {

TEST(EncodedMatmul, EveryFormatTimesF32) {
  int formats = 0;
  for (const Codec* codec : all_codecs()) {
    const Index k = std::lcm(codec->encoding->block, Index{64});
    const auto w = matrix(*codec, 67, k, 3);
    if (!w) continue;
    ++formats;
    SCOPED_TRACE(w->type().text());
    for (const Index m : {1, 2, 3, 5, 8, 16, 33}) {
      // The many formats of several planes differ in the decoder only.
      if (codec->encoding->planes.size() > 1 && m != 1 && m != 8) continue;
      const Tensor x = numbers({m, k}, 5);
      const Tensor want = Tensor::of(DType::f32, {m, 67}, product(x, *w));
      at_every_level([&] {
        const Tensor got = run_product(x, *w, true);
        const Difference d = compare(got, want, relative(2e-6));
        EXPECT_TRUE(d.ok) << "rows " << m << " " << d.where;
        EXPECT_TRUE(identical(run_product(x, *w, true, 7), got)) << "in pieces, rows " << m;
        if (codec->encoding->planes.size() == 1) {
          EXPECT_TRUE(identical(run_product(x, *w, false), got)) << "not a constant, rows " << m;
        }
      });
    }
  }
  EXPECT_GE(formats, 4);
}

// Row i of a product does not depend on how many rows there are.
TEST(EncodedMatmul, RowsHaveTheSameBitsAlone) {
  for (const Codec* codec : all_codecs()) {
    const Index k = std::lcm(codec->encoding->block, Index{64});
    const auto w = matrix(*codec, 65, k, 3);
    if (!w) continue;
    SCOPED_TRACE(w->type().text());
    const Tensor x = numbers({37, k}, 9);
    at_every_level([&] {
      const std::vector<double> all = load<double>(run_product(x, *w, true));
      const std::vector<double> rows = load<double>(x);
      for (const Index i : {0, 17, 36}) {
        const std::vector<double> row(rows.begin() + i * k, rows.begin() + (i + 1) * k);
        const std::vector<double> alone = load<double>(run_product(Tensor::of(DType::f32, {1, k}, row), *w, true));
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + i * 65)) << "row " << i;
      }
    });
  }
}

// By hand: a block of Q8_0 of scale 1 is its codes.
TEST(EncodedMatmul, ByHand) {
  std::vector<std::byte> blocks;
  for (int row = 0; row < 2; ++row) {
    blocks.push_back(std::byte{0x00});
    blocks.push_back(std::byte{0x3C});  // f16 1
    for (int i = 0; i < 32; ++i) blocks.push_back(static_cast<std::byte>(row == 0 ? i : -i));
  }
  const Bytes bytes = Bytes::allocate(static_cast<Index>(blocks.size()));
  std::copy(blocks.begin(), blocks.end(), const_cast<std::byte*>(bytes.data.data()));
  const Tensor w(TensorType(DType::f32, {2, 32}, *find_codec("q8_0")->encoding, -1), {bytes});
  std::vector<double> ones(32, 1.0), tens(32, 0.0);
  tens[10] = 2;
  ones.insert(ones.end(), tens.begin(), tens.end());
  const Tensor x = Tensor::of(DType::f32, {2, 32}, ones);
  at_every_level([&] { EXPECT_EQ(load<double>(run_product(x, w, true)), (std::vector<double>{496, -496, 20, -20})); });
}

TEST(Pitfalls, R11_GradientOfActivationsBesideAKQuant) {
  for (const char* name : {"q4_k", "q6_k", "q8_0"}) {
    const Tensor w = *matrix(*find_codec(name), 7, 256, 3), x = numbers({3, 256}, 5), u = numbers({3, 7}, 6);
    const auto gradient_of = [&](bool encoded) {
      Builder g;
      const Value a = g.input("x", x.type());
      const Value c = encoded ? constant(g, w) : constant(g, decode(w));
      const Graph graph = g.finish({matmul(a, c, {false, true})});
      return evaluate(gradient(graph), std::vector<Tensor>{x, u}, {})[0];
    };
    EXPECT_TRUE(compare(gradient_of(true), gradient_of(false), relative(1e-6)).ok) << name;
  }
}

// The step of the gradient: blocks along the result's columns.
TEST(EncodedMatmul, BlocksAlongTheColumns) {
  for (const Codec* codec : all_codecs()) {
    const Index columns = 3 * codec->encoding->block;
    const auto w = matrix(*codec, 70, columns, 3);
    if (!w || codec->encoding->planes.size() > 1) continue;  // several planes: constants only
    SCOPED_TRACE(w->type().text());
    const Tensor x = numbers({5, 70}, 5), dense = decode(*w);
    Builder g;
    const Value a = g.input("x", x.type()), b = g.input("w", w->type());
    const Graph encoded = g.finish({matmul(a, b)});
    Builder h;
    const Value c = h.input("x", x.type()), d = h.input("w", dense.type());
    const Graph plain = h.finish({matmul(c, d)});
    const Tensor want = evaluate(plain, std::vector<Tensor>{x, dense}, {})[0];
    at_every_level([&] {
      const std::vector<Tensor> in{x, *w};
      const auto got = run_node(encoded, encoded.outputs[0].node, in, {}, cpu_makers());
      ASSERT_TRUE(got);
      EXPECT_TRUE(compare((*got)[0], want, relative(2e-6)).ok);
    });
  }
}

TEST(EncodedMatmul, RowsOfEveryTable) {
  for (const Codec* codec : all_codecs()) {
    const Index k = 2 * codec->encoding->block;
    const auto table = matrix(*codec, 9, k, 3);
    if (!table) continue;
    SCOPED_TRACE(table->type().text());
    Builder g;
    const Tensor ids = Tensor::of<std::int64_t>(DType::i32, {2, 2}, {8, 0, -1, 3});
    const Value rows_of = constant(g, *table);
    const Graph graph = g.finish({gather(rows_of, g.input("ids", ids.type()))});
    const std::vector<Tensor> in{*table, ids};
    const auto got = run_node(graph, graph.outputs[0].node, in, {}, cpu_makers());
    ASSERT_TRUE(got);
    EXPECT_EQ((*got)[0].shape(), (std::vector<Index>{2, 2, k}));
    const std::vector<double> rows = load<double>(decode(*table)), have = load<double>((*got)[0]);
    const Index at[] = {8, 0, 8, 3};
    for (Index i = 0; i < 4; ++i) {
      EXPECT_TRUE(std::equal(have.begin() + i * k, have.begin() + (i + 1) * k, rows.begin() + at[i] * k)) << i;
    }
  }
}

// Both operands encoded: the definition, and the reference.
TEST(EncodedMatmul, EncodedRowsMeanWhatTheyDecodeTo) {
  const Codec& a8 = *find_codec("a8");
  for (const Codec* codec : all_codecs()) {
    const Index k = std::lcm(codec->encoding->block, Index{64});
    const auto w = matrix(*codec, 9, k, 3);
    if (!w) continue;
    SCOPED_TRACE(w->type().text());
    const Tensor x = encode(numbers({2, 3, k}, 5), a8);
    Builder g;
    const Value a = g.input("x", x.type()), b = g.input("w", w->type());
    const Graph graph = g.finish({matmul(a, b, {false, true})});
    const std::vector<Tensor> in{x, *w};
    const Tensor want = Tensor::of(DType::f32, {2, 3, 9}, product(decode(x), *w));
    EXPECT_TRUE(compare(evaluate(graph, in, {})[0], want, relative(1e-7)).ok);
    EXPECT_TRUE(compare(evaluate(graph, in, {true, {}})[0], want, relative(2e-6)).ok);
  }
}

// NaN and infinite activations are not lost.
TEST(Encode, BlocksThatAreNotFinite) {
  std::vector<double> v(96, 1.0);
  v[3] = std::nan("");
  v[40] = INFINITY;
  v[70] = 1e-38;
  const Tensor x = Tensor::of(DType::f32, {96}, v);
  Builder g;
  const Graph graph = g.finish({encode(g.input("x", x.type()), "a8")});
  at_every_level([&] {
    const auto got = run_node(graph, graph.outputs[0].node, std::vector<Tensor>{x}, {}, cpu_makers());
    ASSERT_TRUE(got);
    EXPECT_TRUE(identical((*got)[0], evaluate(graph, std::vector<Tensor>{x}, {})[0]));
    const std::vector<double> y = load<double>(decode((*got)[0]));
    for (std::size_t i = 0; i < 64; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
    for (std::size_t i = 64; i < 96; ++i) EXPECT_NEAR(y[i], v[i], 1.0 / 254) << i;
  });
}

TEST(Encode, StepsAtEveryLevel) {
  EXPECT_GT(check_steps(encode_op, exact).ran, 10);
  EXPECT_GT(check_steps(decode_op, exact).ran, 10);
}

}  // namespace
}  // namespace rlx::test
