// Steps of reductions, on every case and element type, at every level, against the references and sums in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/error.h"
#include "levels.h"
#include "ops/reduce/reduce.h"
#include "run_step.h"

namespace rlx::test {
namespace {

Bound bind(const OpDef& op, Attrs attrs, CaseInput x, const std::map<DType, DType>& replace = {}, unsigned seed = 1) {
  return bind_case(op, {std::move(attrs), {.inputs = {std::move(x)}}}, replace, seed);
}

void expect_close(const Bound& b, const Tolerance& tolerance) {
  const std::vector<Tensor> want = evaluate(b.graph, b.inputs, {false, b.dims});
  at_every_level([&] {
    const auto got = run_node(b, cpu_makers());
    ASSERT_TRUE(got);
    const Difference d = compare((*got)[0], want[0], tolerance);
    EXPECT_TRUE(d.ok) << b.inputs[0].type().text() << " " << d.where;
    EXPECT_TRUE(identical((*run_node(b, cpu_makers(), {.pieces = 1}))[0], (*got)[0]));
  });
}

TEST(StepsReduce, EveryCase) { EXPECT_GT(check_steps(reduce_op).ran, 0); }

constexpr ReduceKind kinds[] = {ReduceKind::sum, ReduceKind::mean, ReduceKind::max, ReduceKind::min, ReduceKind::prod};

TEST(StepsReduce, P38_R7_EverySetOfAxes) {
  for (const ReduceKind kind : kinds) {
    for (unsigned set = 0; set < 16; ++set) {
      std::vector<Index> axes;
      for (Index i = 0; i < 4; ++i) {
        if (set >> i & 1) axes.push_back(i);
      }
      const CaseInput x = CaseInput(DType::f32, {3, 5, 2, 37}).range(0.9, 1.1);
      expect_close(bind(reduce_op, Attrs(ReduceAttrs{kind, axes, set % 2 == 0}), x), relative(1e-7));
      const CaseInput i = CaseInput(DType::i32, {3, 5, 2, 37}).range(-9, 9);
      if (kind != ReduceKind::mean) expect_close(bind(reduce_op, Attrs(ReduceAttrs{kind, axes, true}), i), exact);
    }
  }
}

TEST(StepsReduce, EveryLengthOfRowsAndColumns) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::u16, DType::i64}) {
    for (Index n = 1; n <= 133; n += n < 70 ? 1 : 9) {
      for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::min}) {
        const bool whole = is_integer(type);
        const Tolerance t = whole ? exact : relative(1e-7);
        expect_close(bind(reduce_op, Attrs(ReduceAttrs{kind, {1}, false}), CaseInput(type, {3, n}).range(0, 100)), t);
        expect_close(bind(reduce_op, Attrs(ReduceAttrs{kind, {0}, false}), CaseInput(type, {3, n}).range(0, 100)), t);
      }
    }
  }
}

// Columns beyond one piece, rows beyond one group: the bits of every column are those of the column alone.
TEST(StepsReduce, WideMatricesAreSummedColumnByColumn) {
  for (const DType type : {DType::f32, DType::bf16, DType::i32}) {
    for (const Index rows : {1, 7, 8, 9, 15, 16, 17, 31, 40}) {
      for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::max}) {
        const Index columns = rows % 2 ? 4133 : 2048;
        const auto wide =
            bind(reduce_op, Attrs(ReduceAttrs{kind, {0}, false}), CaseInput(type, {rows, columns}).range(-100, 100));
        expect_close(wide, is_integer(type) ? exact : relative(1e-6));
      }
    }
  }
}

TEST(StepsReduce, NaNAndInfinityAtEveryPlace) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const Index n : {5, 32, 67}) {
    for (Index at = 0; at < n; ++at) {
      for (const double special : {nan, inf, -inf}) {
        std::vector<double> v(static_cast<std::size_t>(n));
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i % 7) - 3;
        v[static_cast<std::size_t>(at)] = special;
        for (const ReduceKind kind : kinds) {
          const ReduceAttrs a{kind, {0}, false};
          expect_close(bind(reduce_op, Attrs(a), CaseInput(DType::f32, {n}).filled(v)), relative(1e-6));
          expect_close(bind(reduce_op, Attrs(a), CaseInput(DType::f32, {n, 1}).filled(v)), relative(1e-6));
          expect_close(bind(reduce_op, Attrs(ReduceAttrs{kind, {1}}), CaseInput(DType::f32, {1, n, 1}).filled(v)),
                       relative(1e-6));
        }
      }
    }
  }
}

TEST(StepsReduce, LongSumsThatCancelAreRoundedOnce) {
  // The sum of the magnitudes is 10^7 times the sum.
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<double> v(40000);
  double total = 0;
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(uniform(random));
  for (std::size_t i = v.size() / 2; i < v.size(); ++i) v[i] = -v[i - v.size() / 2];
  v[77] += 0x1p-10;
  for (const double x : v) total += static_cast<float>(x);
  for (const auto& [dims, axis] :
       {std::pair<std::vector<Dim>, Index>{{1, 40000}, 1}, {{40000, 1}, 0}, {{1, 40000, 1}, 1}}) {
    const Bound b = bind(reduce_op, Attrs(ReduceAttrs{ReduceKind::sum, {axis}}), CaseInput(DType::f32, dims).filled(v));
    at_every_level([&] {
      const auto got = run_node(b, cpu_makers());
      ASSERT_TRUE(got);
      EXPECT_NEAR(load<double>((*got)[0])[0], total, std::fabs(total) * 1e-6);
    });
  }
}

// Products that leave the range of f32 on the way, sums that leave that of f16.
TEST(StepsReduce, AccumulatorsHoldMoreThanElements) {
  const CaseInput big = CaseInput(DType::f32, {4}).filled({1e30, 1e30, 1e-30, 1e-30});
  const CaseInput half = CaseInput(DType::f16, {4}).filled({60000, 60000, -60000, -60000});
  at_every_level([&] {
    const auto product =
        run_node(bind(reduce_op, Attrs(ReduceAttrs{ReduceKind::prod, {0}}), big), cpu_makers()).value();
    EXPECT_NEAR(load<double>(product[0])[0], 1, 1e-6);
    const auto sum = run_node(bind(reduce_op, Attrs(ReduceAttrs{ReduceKind::mean, {0}}), half), cpu_makers()).value();
    EXPECT_EQ(load<double>(sum[0])[0], 0);
  });
}

TEST(StepsReduce, ARowDoesNotDependOnTheOthers) {
  for (const Index n : {7, 64, 301}) {
    const Bound all = bind(reduce_op, Attrs(ReduceAttrs{ReduceKind::sum, {1}}), CaseInput(DType::f32, {9, n, 3}));
    const Bound one = bind(reduce_op, Attrs(ReduceAttrs{ReduceKind::sum, {1}}), CaseInput(DType::f32, {1, n, 3}));
    at_every_level([&] {
      const Tensor whole = run_node(all, cpu_makers()).value()[0];
      for (Index r = 0; r < 9; ++r) {
        Bound b = one;
        for (Index i = 0; i < n * 3; ++i) b.inputs[0].set_code(i, all.inputs[0].code(r * n * 3 + i));
        const Tensor alone = run_node(b, cpu_makers()).value()[0];
        for (Index i = 0; i < 3; ++i) EXPECT_EQ(alone.code(i), whole.code(r * 3 + i));
      }
    });
  }
}

// A pack has as many accumulators at every level, which are joined in one order.
TEST(StepsReduce, EveryLevelGivesTheSameBits) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    for (const std::vector<Index>& axes : {std::vector<Index>{0}, {1}, {0, 2}, {0, 1, 2}}) {
      const Bound b = bind(reduce_op, Attrs(ReduceAttrs{ReduceKind::sum, axes}), CaseInput(type, {37, 45, 131}));
      std::vector<Tensor> results;
      at_every_level([&] { results.push_back(run_node(b, cpu_makers()).value()[0]); });
      for (const Tensor& r : results) EXPECT_TRUE(identical(r, results[0])) << name(type);
    }
  }
}

TEST(StepsReduce, R9_SumsOverInteriorPairs) {
  for (const std::vector<Index>& axes : {std::vector<Index>{1, 2}, {2, 3}, {0, 2}, {1, 3}}) {
    const CaseInput x(DType::f64, {4, 3, 5, 2});
    expect_close(bind(reduce_op, Attrs(ReduceAttrs{ReduceKind::sum, axes, false}), x), relative(1e-14));
  }
}

}  // namespace
}  // namespace rlx::test
