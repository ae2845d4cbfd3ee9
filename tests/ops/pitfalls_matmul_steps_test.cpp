// Pitfalls of matrix products in the steps of the CPU.
#include <algorithm>

#include "ir/outline.h"
#include "levels.h"
#include "matmul_product.h"
#include "ops/scalar/scalar.h"

namespace rlx::test {
namespace {

TEST(Pitfalls, P21_R21_OneMatrixServesTheBatchOfAStep) {
  for (const DType d : {DType::f32, DType::f64}) {
    const Tensor many = numbers(d, {3, 2, 2}, 1), one = numbers(d, {1, 2, 2}, 2), matrix = one.reshaped({2, 2});
    const auto nth = [](const Tensor& t, Index i) { return rows_of(t.reshaped({6, 2}), 2 * i, 2); };
    at_every_level([&] {
      for (const bool packed : {false, true}) {
        const Tensor right = product(many, one, {}, packed), left = product(one, many, {}, packed);
        for (Index i = 0; i < 3; ++i) {
          EXPECT_TRUE(identical(nth(right, i), product(nth(many, i), matrix)));
          EXPECT_TRUE(identical(nth(left, i), product(matrix, nth(many, i))));
        }
      }
    });
  }
}

TEST(Pitfalls, P22_EveryBatchOfAStepHasItsOwnMatrix) {
  const Tensor q = numbers(DType::f32, {2, 3, 4}, 3), k = numbers(DType::f32, {2, 4, 3}, 4);
  const Tensor a = numbers(DType::f32, {2, 2}, 5), b = numbers(DType::f32, {3, 2, 4}, 6);
  const auto nth = [](const Tensor& t, Index i) {
    return rows_of(t.reshaped({t.shape()[0] * t.shape()[1], t.shape()[2]}), i * t.shape()[1], t.shape()[1]);
  };
  at_every_level([&] {
    for (const bool packed : {false, true}) {
      const Tensor scores = product(q, k, {}, packed), c = product(a, b, {}, packed);
      for (Index i = 0; i < 2; ++i) EXPECT_TRUE(identical(nth(scores, i), product(nth(q, i), nth(k, i))));
      for (Index i = 0; i < 3; ++i) EXPECT_TRUE(identical(nth(c, i), product(a, nth(b, i))));
    }
  });
}

TEST(Pitfalls, P24_StepsFollowTheTransposeFlags) {
  for (const DType d : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    const Tensor a = numbers(d, {2, 3}, 7), b = numbers(d, {3, 5}, 8);
    at_every_level([&] {
      const Tensor want = product(a, b);
      for (const bool packed : {false, true}) {
        EXPECT_TRUE(identical(product(transposed(a), b, {true, false}, packed), want));
        EXPECT_TRUE(identical(product(a, transposed(b), {false, true}, packed), want));
        EXPECT_TRUE(identical(product(transposed(a), transposed(b), {true, true}, packed), want));
      }
    });
  }
}

// A product that is an output too, biases of one element, and a residual that is smaller or larger than the product.
TEST(Pitfalls, R12_AFusedProductKeepsWhatOthersRead) {
  Builder g;
  const Value x = g.input("x", {DType::f32, {3, 4}}), w = g.input("w", {DType::f32, {4, 20}});
  const Value one = g.input("one", {DType::f32, {1}}), row = g.input("row", {DType::f32, {1, 20}});
  const Value many = g.input("many", {DType::f32, {2, 3, 20}});
  const Value c = matmul(x, w), d = matmul(x * like(x, 2), w), e = matmul(x * like(x, 3), w);
  const Graph plain = g.finish({c, c + one, d + one, d * row, (e + one) * row + many});
  const Graph after = fused_by_pass(plain);
  const auto count = [&](const OpDef& op) {
    return std::ranges::count_if(after.nodes, [&](const Node& n) { return n.op == &op; });
  };
  EXPECT_EQ(count(matmul_op), 2);    // of c and d
  EXPECT_EQ(count(fusion_op()), 1);  // e and its row
  std::vector<Tensor> in;
  for (const Id id : plain.inputs) in.push_back(fill(CaseInput(plain.nodes[id].results[0]), {}, id + 1));
  at_every_level([&] {
    const std::vector<Tensor> want = by_steps(plain, in, {}, 0), got = by_steps(after, in, {}, 1);
    ASSERT_EQ(got.size(), 5U);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], want[i])) << i;
  });
}

}  // namespace
}  // namespace rlx::test
