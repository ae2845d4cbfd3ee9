// Banks of matrices: every case at every level, and banks of block formats.
#include "ops/grouped_matmul/grouped_matmul.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/error.h"
#include "encoded_tensors.h"
#include "levels.h"
#include "ops/constant/constant.h"
#include "ops/encode/encode.h"
#include "ops/matmul/coded_form.h"
#include "run_step.h"

namespace rlx::test {
namespace {

TEST(GroupedMatmul, EveryCaseAtEveryLevel) {
  const CaseCount count = check_steps(grouped_matmul_op);
  EXPECT_GT(count.ran, 100);
  EXPECT_EQ(count.declined, 0);
}

// A bank of `matrices` matrices [n, k].
Tensor bank(const Codec& codec, Index matrices, Index n, Index k, unsigned seed) {
  const Tensor flat = random_blocks(codec, matrices * n, k, seed);
  return {TensorType(DType::f32, {matrices, n, k}, *codec.encoding, -1), {flat.plane()}};
}

// Rows of a8, and of f32, times banks of every format: the definition, whichever rows there are.
TEST(GroupedMatmul, BanksOfEveryFormat) {
  const Codec& a8 = *find_codec("a8");
  for (const Codec* codec : all_codecs()) {
    if (codec->encoding->planes.size() != 1) continue;
    const Index k = std::lcm(codec->encoding->block, Index{64}), n = 70;
    const Tensor w = bank(*codec, 5, n, k, 3);
    SCOPED_TRACE(w.type().text());
    const Tensor experts = Tensor::of<std::int64_t>(DType::i32, {7, 2}, {0, 3, 3, 1, 4, 0, 0, 3, 1, 1, 3, 4, -1, 0});
    for (const bool blocks : {false, true}) {
      if (blocks && !coded_matrix(*codec->encoding)) continue;
      const Tensor dense = numbers({7, 1, k}, 5), x = blocks ? encode(dense, a8) : dense;
      Builder g;
      const Value a = g.input("x", x.type()), b = constant(g, w), e = g.input("experts", experts.type());
      const Graph graph = g.finish({grouped_matmul(a, b, e, {true})});
      const std::vector<Tensor> in{x, w, experts};
      const Tensor want = evaluate(graph, std::vector<Tensor>{x, experts}, {})[0];
      at_every_level([&] {
        std::string why;
        const auto got = run_node(graph, graph.outputs[0].node, in, {}, cpu_makers(), {}, &why);
        ASSERT_TRUE(got) << why;
        const Difference d = compare((*got)[0], want, relative(2e-6));
        EXPECT_TRUE(d.ok) << d.where;
        const auto again = run_node(graph, graph.outputs[0].node, in, {}, cpu_makers(), {.pieces = 5});
        EXPECT_TRUE(identical((*again)[0], (*got)[0]));
      });
    }
  }
}

Tensor run_grouped(const Tensor& x, const Tensor& w, const std::vector<std::int64_t>& experts, bool transposed) {
  Builder g;
  const Tensor e = Tensor::of(DType::i32, {static_cast<Index>(experts.size())}, experts);
  const Value a = g.input("x", x.type()), b = constant(g, w), c = g.input("experts", e.type());
  const Graph graph = g.finish({grouped_matmul(a, b, c, {transposed})});
  const auto got = run_node(graph, graph.outputs[0].node, std::vector<Tensor>{x, w, e}, {}, cpu_makers());
  EXPECT_TRUE(got);
  return got ? (*got)[0] : Tensor();
}

TEST(Pitfalls, P80_OrientationOfBanks) {
  const Tensor x = Tensor::of<double>(DType::f32, {1, 2}, {1, 10});
  const Tensor w = Tensor::of<double>(DType::f32, {1, 2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(load<double>(run_grouped(x, w, {0}, false)), (std::vector<double>{31, 42}));
  EXPECT_EQ(load<double>(run_grouped(x, w, {0}, true)), (std::vector<double>{21, 43}));
  Builder g;
  const Value a = g.input("x", {DType::f32, {2, 3}}), b = g.input("w", {DType::f32, {4, 5, 3}}),
              c = g.input("experts", {DType::i32, {2}});
  EXPECT_THROW(grouped_matmul(a, b, c), Error);
}

// Rows stay in their order, whichever matrices they name; packed and dense banks agree.
TEST(Pitfalls, P86_PermutationOfAGroupedProduct) {
  const Tensor w = bank(*find_codec("q8_0"), 4, 6, 64, 3), dense = decode(w);
  const std::vector<double> matrices = load<double>(dense);
  for (const std::vector<std::int64_t>& experts :
       {std::vector<std::int64_t>{2, 0, 2, 1}, {1, 1, 1, 1}, {3, -4, 3, -4}, {}}) {
    const auto count = static_cast<Index>(experts.size());
    const Tensor x = numbers({count, 64}, 7);
    const std::vector<double> rows = load<double>(x);
    std::vector<double> want;
    for (Index i = 0; i < count; ++i) {
      const Index e = (experts[static_cast<std::size_t>(i)] + 4) % 4;
      for (Index j = 0; j < 6; ++j) {
        double sum = 0;
        for (Index k = 0; k < 64; ++k)
          sum += rows[static_cast<std::size_t>(i * 64 + k)] * matrices[static_cast<std::size_t>((e * 6 + j) * 64 + k)];
        want.push_back(sum);
      }
    }
    at_every_level([&] {
      const Tensor of_blocks = run_grouped(x, w, experts, true), of_numbers = run_grouped(x, dense, experts, true);
      EXPECT_TRUE(compare(of_numbers, Tensor::of(DType::f32, {count, 6}, want), relative(2e-6)).ok);
      EXPECT_TRUE(identical(of_blocks, of_numbers));
    });
  }
}

TEST(GroupedMatmul, AnExpertThatIsNotThereIsAnError) {
  Builder g;
  const Value a = g.input("x", {DType::f32, {2, 3}}), b = g.input("w", {DType::f32, {4, 3, 5}}),
              e = g.input("experts", {DType::i32, {2}});
  const Graph graph = g.finish({grouped_matmul(a, b, e)});
  const std::vector<Tensor> in{numbers({2, 3}, 1), numbers({4, 3, 5}, 2),
                               Tensor::of<std::int64_t>(DType::i32, {2}, {1, 4})};
  EXPECT_THROW(run_node(graph, graph.outputs[0].node, in, {}, cpu_makers()), Error);
}

}  // namespace
}  // namespace rlx::test
