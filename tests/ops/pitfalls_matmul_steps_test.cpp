// Pitfalls of matrix products in the steps of the CPU.
#include "levels.h"
#include "matmul_product.h"

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

}  // namespace
}  // namespace rlx::test
