// Steps of the indexing ops, on every case and element type, at every level, against the references.
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "ops/gather/gather.h"
#include "ops/scatter_add/scatter_add.h"
#include "ops/scatter_add_along/scatter_add_along.h"
#include "ops/take_along/take_along.h"
#include "run_step.h"

namespace rlx::test {
namespace {

TEST(StepsIndex, Gather) { EXPECT_GT(check_steps(gather_op, exact).ran, 0); }
TEST(StepsIndex, TakeAlong) {
  const CaseCount n = check_steps(take_along_op, exact);
  EXPECT_GT(n.ran, 0);
}
TEST(StepsIndex, ScatterAdd) { EXPECT_GT(check_steps(scatter_add_op).ran, 0); }
TEST(StepsIndex, ScatterAddAlong) { EXPECT_GT(check_steps(scatter_add_along_op).ran, 0); }

Bound bind(const OpDef& op, Attrs attrs, std::vector<CaseInput> inputs) {
  return bind_case(op, {std::move(attrs), {.inputs = std::move(inputs)}}, {}, 1);
}

// An index that nothing knows at compile time is refused in every piece of the work, before that piece writes.
void expect_refused(const Bound& b, const std::string& message) {
  for (const unsigned pieces : {0u, 1u, 2u}) {
    try {
      run_node(b, cpu_makers(), {.pieces = pieces});
      ADD_FAILURE() << "accepts what must fail with: " << message;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), message);
    }
  }
}

TEST(StepsIndex, IndicesOutOfRangeAreErrors) {
  const CaseInput table(DType::f32, {3, 4});
  const auto indices = [](DType d, const std::vector<double>& v) {
    return CaseInput(d, {static_cast<Index>(v.size())}).filled(v);
  };
  for (const DType d : {DType::i32, DType::i64}) {
    expect_refused(bind(gather_op, Attrs(GatherAttrs{0}), {table, indices(d, {0, 1, 3})}),
                   "gather: index 3 at [2] is out of range for axis 0 of size 3");
    expect_refused(bind(gather_op, Attrs(GatherAttrs{1}), {table, indices(d, {0, -5, 3})}),
                   "gather: index -5 at [1] is out of range for axis 1 of size 4");
    expect_refused(bind(gather_op, Attrs(GatherAttrs{0}), {CaseInput(DType::u4, {3, 3}), indices(d, {0, 7})}),
                   "gather: index 7 at [1] is out of range for axis 0 of size 3");
    const CaseInput two = CaseInput(d, {2, 4}).filled({0, 1, 2, -3, 2, 1, 0, 3});
    expect_refused(bind(take_along_op, Attrs(TakeAlongAttrs{0}), {table, two}),
                   "take_along: index 3 at [1,3] is out of range for axis 0 of size 3");
    expect_refused(bind(scatter_add_op, Attrs(ScatterAddAttrs{0, 3}), {table, indices(d, {0, -4, 3})}),
                   "scatter_add: index -4 at [1] is out of range for axis 0 of size 3");
    const CaseInput half(DType::bf16, {2, 4});
    expect_refused(bind(scatter_add_along_op, Attrs(ScatterAddAlongAttrs{0, {3, 4}}), {half, two}),
                   "scatter_add_along: index 3 at [1,3] is out of range for axis 0 of size 3");
    // Nothing is written, the index is wrong all the same.
    expect_refused(bind(gather_op, Attrs(GatherAttrs{0}), {CaseInput(DType::f32, {3, 0}), indices(d, {3})}),
                   "gather: index 3 at [0] is out of range for axis 0 of size 3");
    expect_refused(bind(gather_op, Attrs(GatherAttrs{0}), {CaseInput(DType::f32, {0, 2}), indices(d, {0})}),
                   "gather: index 0 at [0] is out of range for axis 0 of size 0");
  }
  const CaseInput extreme = CaseInput(DType::i64, {1}).filled({-9223372036854775808.0});
  expect_refused(bind(gather_op, Attrs(GatherAttrs{0}), {table, extreme}),
                 "gather: index -9223372036854775808 at [0] is out of range for axis 0 of size 3");
}

TEST(StepsIndex, P13_BothIndexTypesGiveTheSameBits) {
  const auto run = [](const OpDef& op, const Attrs& attrs, const CaseInput& x, CaseInput indices) {
    std::vector<std::vector<Tensor>> results;
    for (const DType d : {DType::i32, DType::i64}) {
      indices.type.dtype = d;
      results.push_back(run_node(bind(op, attrs, {x, indices}), cpu_makers(), {.pieces = 1}).value());
    }
    EXPECT_TRUE(identical(results[0][0], results[1][0])) << op.name();
  };
  run(gather_op, Attrs(GatherAttrs{0}), CaseInput(DType::f32, {5, 3}), CaseInput(DType::i32, {7, 2}).range(-5, 4));
  run(take_along_op, Attrs(TakeAlongAttrs{1}), CaseInput(DType::f32, {5, 3}),
      CaseInput(DType::i32, {4, 9}).range(-3, 2));
  run(scatter_add_op, Attrs(ScatterAddAttrs{0, 4}), CaseInput(DType::f32, {9, 3}),
      CaseInput(DType::i32, {9}).range(-4, 3));
  run(scatter_add_along_op, Attrs(ScatterAddAlongAttrs{1, {5, 4}}), CaseInput(DType::f32, {5, 9}),
      CaseInput(DType::i32, {5, 9}).range(-4, 3));
}

// Many updates of one element, in more pieces than columns fit in a block.
TEST(StepsIndex, SumsAreTheSameInAnyPieces) {
  for (const DType d : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::c64, DType::f64}) {
    const CaseInput x = CaseInput(d, {500, 133}).range(0, 3), at = CaseInput(DType::i64, {500}).range(0, 2);
    const Bound b = bind(scatter_add_op, Attrs(ScatterAddAttrs{0, 3}), {x, at});
    const Bound along = bind(scatter_add_along_op, Attrs(ScatterAddAlongAttrs{0, {3, 140}}),
                             {x, CaseInput(DType::i32, {500, 133}).range(-3, 2)});
    for (const Bound& each : {b, along}) {
      const std::vector<Tensor> whole = run_node(each, cpu_makers()).value();
      const Difference difference = compare(whole[0], evaluate(each.graph, each.inputs, {})[0], relative(2e-6));
      EXPECT_TRUE(difference.ok) << name(d) << " " << difference.where;
      for (const unsigned pieces : {1u, 2u, 3u}) {
        EXPECT_TRUE(identical(run_node(each, cpu_makers(), {.pieces = pieces}).value()[0], whole[0])) << name(d);
      }
    }
  }
}

TEST(StepsIndex, R16_GatherOnAnInnerAxis) {
  const Bound b = bind(gather_op, Attrs(GatherAttrs{1}),
                       {CaseInput(DType::f32, {2, 3, 4}), CaseInput(DType::i64, {5}).filled({2, 0, -1, 1, -3})});
  const auto got = run_node(b, cpu_makers(), {.pieces = 1});
  ASSERT_TRUE(got);
  EXPECT_EQ((*got)[0].shape(), (std::vector<Index>{2, 5, 4}));
  const Index at[] = {2, 0, 2, 1, 0};
  for (Index o = 0; o < 2; ++o) {
    for (Index i = 0; i < 5; ++i) {
      for (Index k = 0; k < 4; ++k) {
        EXPECT_EQ((*got)[0].code((o * 5 + i) * 4 + k), b.inputs[0].code((o * 3 + at[i]) * 4 + k));
      }
    }
  }
}

}  // namespace
}  // namespace rlx::test
