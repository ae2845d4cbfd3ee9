// Steps of running sums, orders, coordinates and sizes, on every case and element type, at every level.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "core/error.h"
#include "ops/arg_reduce/arg_reduce.h"
#include "ops/cumulative/cumulative.h"
#include "ops/iota/iota.h"
#include "ops/sizes/sizes.h"
#include "ops/topk/topk.h"
#include "run_step.h"

namespace rlx::test {
namespace {

const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");

// Each rounded once from sums in f64: the same bits as the reference, which also adds one element after the other.
TEST(StepsOrder, Cumulative) { EXPECT_GT(check_steps(cumulative_op, exact).ran, 0); }
TEST(StepsOrder, ArgReduce) { EXPECT_GT(check_steps(arg_reduce_op, exact).ran, 0); }
TEST(StepsOrder, Topk) { EXPECT_GT(check_steps(topk_op, exact).ran, 0); }
TEST(StepsOrder, Sizes) { EXPECT_GT(check_steps(sizes_op, exact).ran, 0); }
TEST(StepsOrder, Iota) { EXPECT_GT(check_steps(iota_op, exact).ran, 0); }

Bound bind(const OpDef& op, Attrs attrs, std::vector<CaseInput> inputs) {
  return bind_case(op, {std::move(attrs), {.inputs = std::move(inputs)}}, {}, 1);
}

void expect_identical(const Bound& b) {
  const std::vector<Tensor> want = evaluate(b.graph, b.inputs, {});
  for (const unsigned pieces : {0u, 1u}) {
    const auto got = run_node(b, cpu_makers(), {.pieces = pieces});
    ASSERT_TRUE(got);
    for (std::size_t r = 0; r < want.size(); ++r) EXPECT_TRUE(identical((*got)[r], want[r])) << "result " << r;
  }
}

TEST(StepsOrder, IotaOfEveryElementType) {
  int types = 0;
  for (const DType d : all_dtypes()) {
    for (const Index axis : {0, 1, 2}) {
      try {
        const Bound b = bind(iota_op, Attrs(IotaAttrs{d, {3, 300, 2}, axis}), {});
        expect_identical(b);
        ++types;
      } catch (const Error&) {
        EXPECT_TRUE(bits(d) < 8 || d == DType::boolean || d == DType::e8m0 || is_complex(d)) << name(d);
      }
    }
  }
  EXPECT_EQ(types, 3 * 16);
}

TEST(StepsOrder, LongLinesAlongEveryAxis) {
  for (const DType d : {DType::f32, DType::f16, DType::i8, DType::u64}) {
    for (const Index axis : {0, 1, 2}) {
      const CaseInput x = CaseInput(d, {5, 67, 71}).range(is_float(d) ? -2 : 0, 9);
      for (const auto kind : {CumulativeKind::sum, CumulativeKind::prod, CumulativeKind::max, CumulativeKind::min}) {
        expect_identical(bind(cumulative_op, Attrs(CumulativeAttrs{kind, axis, axis == 1, axis == 2}), {x}));
      }
      expect_identical(bind(arg_reduce_op, Attrs(ArgReduceAttrs{ArgKind::max, axis, false}), {x}));
      expect_identical(bind(arg_reduce_op, Attrs(ArgReduceAttrs{ArgKind::min, axis, true}), {x}));
      expect_identical(bind(topk_op, Attrs(TopkAttrs{4, axis, true}), {x}));
      expect_identical(bind(topk_op, Attrs(TopkAttrs{5, axis, false}), {x}));
    }
  }
}

std::vector<Tensor> sorted(const std::vector<double>& v, Dim k, bool largest) {
  const CaseInput x = CaseInput(DType::f32, {static_cast<Index>(v.size())}).filled(v);
  return run_node(bind(topk_op, Attrs(TopkAttrs{std::move(k), 0, largest}), {x}), cpu_makers()).value();
}

TEST(StepsOrder, P39_NaNHasAPlaceInTheOrder) {
  const auto up = sorted({3, nan, 1, 2}, 4, false), down = sorted({3, nan, 1, 2}, 4, true);
  EXPECT_EQ(load<Index>(up[1]), (std::vector<Index>{2, 3, 0, 1}));
  EXPECT_EQ(load<Index>(down[1]), (std::vector<Index>{1, 0, 3, 2}));
  EXPECT_TRUE(std::isnan(load<double>(up[0])[3]));
  EXPECT_TRUE(std::isnan(load<double>(down[0])[0]));
}

TEST(StepsOrder, P39_ManyRandomValuesWithNaNAreSorted) {
  std::mt19937 random(9);
  std::vector<double> v(100000);
  for (double& x : v) x = random() % 10 == 0 ? nan : static_cast<double>(random() % 1000);
  for (const bool largest : {false, true}) {
    const auto got = sorted(v, static_cast<Index>(v.size()), largest);
    std::vector<Index> want(v.size());
    std::iota(want.begin(), want.end(), Index{0});
    std::ranges::sort(want, [&](Index i, Index j) {
      const double a = v[static_cast<std::size_t>(i)], b = v[static_cast<std::size_t>(j)];
      const double x = std::isnan(a) ? inf : a, y = std::isnan(b) ? inf : b;
      return x != y ? (largest ? x > y : x < y) : i < j;
    });
    EXPECT_EQ(load<Index>(got[1]), want);
  }
}

TEST(StepsOrder, P40_IndicesAreDistinct) {
  EXPECT_EQ(load<Index>(sorted({-inf, 5, -inf, -inf}, 3, true)[1]), (std::vector<Index>{1, 0, 2}));
  EXPECT_EQ(load<Index>(sorted({2, 7, 7, 1}, 2, true)[1]), (std::vector<Index>{1, 2}));
  for (const double same : {nan, -inf, 0.0}) {
    const std::vector<Index> all = load<Index>(sorted(std::vector<double>(50, same), 50, true)[1]);
    EXPECT_EQ(std::set<Index>(all.begin(), all.end()).size(), 50U);
  }
}

}  // namespace
}  // namespace rlx::test
