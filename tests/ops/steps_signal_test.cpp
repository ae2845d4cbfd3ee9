// Steps of fft, det and cofactors on every case and element type, and transforms of many lengths.
#include <gtest/gtest.h>

#include "autodiff/gradient.h"
#include "ops/cumulative/cumulative.h"
#include "ops/det/det.h"
#include "ops/fft/fft.h"
#include "ops/slice/slice.h"
#include "run_step.h"

namespace rlx::test {
namespace {

// 2e-7 a pass, of which there are at most 7 here; sums of 97 products in f64 where the length is that prime.
constexpr Tolerance passes = relative(2e-6, "one rounding a pass over the numbers");

TEST(StepsSignal, Fft) { EXPECT_GT(check_steps(fft_op, passes).ran, 0); }
TEST(StepsSignal, Det) { EXPECT_GT(check_steps(det_op).ran, 0); }
TEST(StepsSignal, Cofactors) { EXPECT_GT(check_steps(cofactors_op).ran, 0); }

Bound transform(DType d, Index length, bool inverse) {
  return bind_case(fft_op, {Attrs(FftAttrs{inverse}), {.inputs = {CaseInput(d, {2, length, 2})}}}, {}, 7);
}

TEST(StepsSignal, TransformsOfEveryLength) {
  for (Index length = 1; length <= 130; ++length) {
    for (const bool inverse : {false, true}) {
      const Bound b = transform(DType::f64, length, inverse);
      const Difference d = compare((*run_node(b, cpu_makers()))[0], evaluate(b.graph, b.inputs)[0], relative(1e-13));
      EXPECT_TRUE(d.ok) << length << ": " << d.where;
    }
  }
  for (const Index length : {480, 512, 1021}) {
    const Bound b = transform(DType::f32, length, false);
    const Difference d = compare((*run_node(b, cpu_makers()))[0], evaluate(b.graph, b.inputs)[0], relative(1e-6));
    EXPECT_TRUE(d.ok) << length << ": " << d.where;
  }
}

// The first elements of exclusive extremes are infinite, which differences cannot show: without them.
TEST(StepsSignal, GradientOfExclusiveExtremes) {
  for (const auto run : {cummax, cummin}) {
    for (const bool reverse : {false, true}) {
      Builder b;
      const Value x = b.input("x", {DType::f64, {3, 6}});
      const Value y = run(x, 1, true, reverse);
      const Graph g = b.finish({reverse ? slice(y, 1, 0, 5) : slice(y, 1, 1, 6)});
      const Tensor t = fill(CaseInput(DType::f64, {3, 6}).ties_free(), {}, 5);
      std::string where;
      EXPECT_LE(gradient_error(g, {t}, {}, where), 1e-6) << where;
    }
  }
}

}  // namespace
}  // namespace rlx::test
