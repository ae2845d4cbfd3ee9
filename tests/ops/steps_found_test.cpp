// Steps of scatter, of ops that find how much there is, and of random numbers, on every case and element type.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "ops/nms/nms.h"
#include "ops/nonzero/nonzero.h"
#include "ops/philox/philox.h"
#include "ops/sample/sample.h"
#include "ops/scatter/scatter.h"
#include "ops/unique/unique.h"
#include "run_step.h"

namespace rlx::test {
namespace {

TEST(StepsFound, Scatter) { EXPECT_GT(check_steps(scatter_op).ran, 0); }
TEST(StepsFound, Nonzero) { EXPECT_GT(check_steps(nonzero_op, exact).ran, 0); }
TEST(StepsFound, Unique) { EXPECT_GT(check_steps(unique_op, exact).ran, 0); }
TEST(StepsFound, Nms) { EXPECT_GT(check_steps(nms_op, exact).ran, 0); }
TEST(StepsFound, Philox) { EXPECT_GT(check_steps(philox_op, exact).ran, 0); }
TEST(StepsFound, Sample) { EXPECT_GT(check_steps(sample_op, exact).ran, 0); }

Bound bind(const OpDef& op, Attrs attrs, std::vector<CaseInput> inputs) {
  return bind_case(op, {std::move(attrs), {.inputs = std::move(inputs)}}, {}, 3);
}

void expect_identical(const Bound& b) {
  const std::vector<Tensor> want = evaluate(b.graph, b.inputs, {});
  for (const unsigned pieces : {0u, 1u, 3u}) {
    const auto got = run_node(b, cpu_makers(), {.pieces = pieces});
    ASSERT_TRUE(got);
    for (std::size_t r = 0; r < want.size(); ++r) EXPECT_TRUE(identical((*got)[r], want[r])) << "result " << r;
  }
}

TEST(StepsFound, ManyElements) {
  expect_identical(bind(nonzero_op, Attrs(), {CaseInput(DType::i32, {300, 7}).range(0, 1)}));
  for (const bool sorted : {false, true}) {
    for (const DType d : {DType::f32, DType::bf16, DType::boolean, DType::u64}) {
      const bool few = d == DType::boolean;
      expect_identical(bind(unique_op, Attrs(UniqueAttrs{sorted}), {CaseInput(d, {400, 2}).range(0, few ? 1 : 9)}));
    }
  }
  expect_identical(bind(philox_op, Attrs(PhiloxAttrs{{5003}}),
                        {CaseInput(DType::u32, {2}).range(0, 1e9), CaseInput(DType::u32, {4}).range(0, 4e9)}));
  const auto scalar = [](DType d, double v) { return CaseInput(d, {}).filled({v}); };
  for (const bool centered : {false, true}) {
    expect_identical(bind(nms_op, Attrs(NmsAttrs{centered}),
                          {CaseInput(DType::f32, {2, 60, 4}).range(0.1, 1), CaseInput(DType::f32, {2, 3, 60}),
                           scalar(DType::i64, 40), scalar(DType::f32, 0.4), scalar(DType::f32, -1)}));
  }
  expect_identical(bind(sample_op, Attrs(SampleAttrs{0.7, 50, 0.9}),
                        {CaseInput(DType::f32, {40, 200}), CaseInput(DType::f32, {40}).range(0, 0.999)}));
}

TEST(StepsFound, BadLogitsAndIndicesAreErrors) {
  const CaseInput half = CaseInput(DType::f32, {1}).filled({0.5});
  const auto refused = [](const Bound& b) { EXPECT_THROW(run_node(b, cpu_makers()), Error); };
  refused(bind(sample_op, Attrs(SampleAttrs{}), {CaseInput(DType::f32, {1, 2}).filled({0, std::nan("")}), half}));
  refused(
      bind(sample_op, Attrs(SampleAttrs{}), {CaseInput(DType::f32, {1, 2}), CaseInput(DType::f32, {1}).filled({1})}));
  refused(bind(scatter_op, Attrs(ScatterAttrs{ScatterKind::max, 0}),
               {CaseInput(DType::f32, {3}), CaseInput(DType::f32, {1}), CaseInput(DType::i64, {1}).filled({3})}));
}

}  // namespace
}  // namespace rlx::test
