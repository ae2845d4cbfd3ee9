// Steps of the ops that move elements, on every case and element type, at every level, against the references.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/error.h"
#include "ops/concat/concat.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"
#include "run_step.h"

namespace rlx::test {
namespace {

void check(const OpDef& op) {
  const CaseCount n = check_steps(op, exact);
  EXPECT_GT(n.ran, 0);
  EXPECT_EQ(n.ran, n.strided);  // strided operands need no copy first
}

TEST(StepsMove, Transpose) { check(transpose_op); }
TEST(StepsMove, Reshape) { check(reshape_op); }
TEST(StepsMove, Slice) { check(slice_op); }
TEST(StepsMove, Concat) { check(concat_op); }
TEST(StepsMove, Pad) { check(pad_op); }

// Larger than tiles and pieces, sizes that no tile divides.
template <class A>
void check_large(const Op<A>& op, A attrs, const std::vector<TensorType>& types) {
  CaseCommon common;
  for (const TensorType& t : types) common.inputs.emplace_back(t);
  const AnyCase c{Attrs(std::move(attrs)), std::move(common)};
  for (const DType d : {DType::i8, DType::f16, DType::f32, DType::f64, DType::i4, DType::i2}) {
    const Bound b = bind_case(op, c, {{DType::f32, d}}, 1);
    const std::vector<Tensor> want = evaluate(b.graph, b.inputs, {});
    for (const StepRun& how : {StepRun{}, StepRun{.pieces = 1}, StepRun{.pieces = 2, .strided = true}}) {
      const auto got = run_node(b, cpu_makers(), how);
      ASSERT_TRUE(got);
      EXPECT_TRUE(identical((*got)[0], want[0])) << name(d) << " pieces " << how.pieces;
    }
  }
}

TEST(StepsMove, LargeTransposes) {
  check_large(transpose_op, {{1, 0}}, {{DType::f32, {67, 133}}});
  check_large(transpose_op, {{0, 2, 1, 3}}, {{DType::f32, {2, 37, 5, 33}}});
  check_large(transpose_op, {{3, 1, 0, 2}}, {{DType::f32, {2, 37, 5, 33}}});
  check_large(transpose_op, {{2, 1, 0}}, {{DType::f32, {19, 3, 41}}});
}

TEST(StepsMove, LargeSlicesPadsAndJoins) {
  const TensorType x(DType::f32, {41, 7, 53});
  check_large(slice_op, {{3, 6, 51}, {19, 7, 17}, {2, -1, -3}}, {x});
  check_large(slice_op, {{0, 0, 5}, {41, 7, 40}, {}}, {x});
  check_large(pad_op, {{45, 20, 170}, {2, 19, 4}, {1, -3, 3}, 1}, {x});
  check_large(pad_op, {{50, 7, 53}, {4, 0, 0}, {}, 1}, {x});
  check_large(concat_op, {1}, {x, {DType::f32, {41, 1, 53}}, x});
  check_large(concat_op, {-1}, {x, {DType::f32, {41, 7, 1}}, x});
}

TEST(StepsMove, P9_ConcatCopiesElementsOfEveryWidth) {
  for (const DType d : {DType::i64, DType::f64, DType::i32, DType::f16, DType::i8, DType::boolean, DType::c64,
                        DType::f8e4m3, DType::u4, DType::f4e2m1, DType::u2}) {
    std::vector<double> nine(10);
    std::iota(nine.rbegin(), nine.rend(), 0.0);
    const CaseInput in = CaseInput(d, {10}).filled(d == DType::c64 ? std::vector<double>{} : nine);
    const Bound b = bind_case(concat_op, {Attrs(ConcatAttrs{0}), {.inputs = {in, in, in}}}, {}, 1);
    const auto got = run_node(b, cpu_makers(), {.pieces = 1});
    ASSERT_TRUE(got);
    for (Index i = 0; i < 30; ++i) {
      const Tensor& from = b.inputs[static_cast<std::size_t>(i / 10)];
      EXPECT_EQ((*got)[0].code(i), from.code(i % 10)) << name(d) << " " << i;
    }
  }
}

TEST(StepsMove, P35_JoinsRepeatNothingAndDropNothing) {
  // [2,3,4] and [2,1,4] along the inner axis: a small block for every outer row.
  const CaseInput big = CaseInput(DType::f32, {2, 3, 4}), small = CaseInput(DType::f32, {2, 1, 4});
  const Bound b = bind_case(concat_op, {Attrs(ConcatAttrs{-2}), {.inputs = {big, small}}}, {}, 3);
  const auto got = run_node(b, cpu_makers(), {.pieces = 5});
  ASSERT_TRUE(got);
  for (Index o = 0; o < 2; ++o) {
    for (Index r = 0; r < 4; ++r) {
      for (Index c = 0; c < 4; ++c) {
        const std::uint64_t want = r < 3 ? b.inputs[0].code((o * 3 + r) * 4 + c) : b.inputs[1].code(o * 4 + c);
        EXPECT_EQ((*got)[0].code((o * 4 + r) * 4 + c), want);
      }
    }
  }
}

TEST(StepsMove, TooManyAxesAreDeclinedWithAReason) {
  const std::vector<Dim> dims(17, Dim(1));
  std::vector<Index> order(17);
  std::iota(order.rbegin(), order.rend(), Index{0});
  const Bound b = bind_case(transpose_op, {Attrs(TransposeAttrs{order}), {.inputs = {{DType::f32, dims}}}}, {}, 1);
  std::string why;
  EXPECT_FALSE(run_node(b, cpu_makers(), {}, &why));
  EXPECT_EQ(why, "transpose has a kernel for up to 16 axes");
}

}  // namespace
}  // namespace rlx::test
