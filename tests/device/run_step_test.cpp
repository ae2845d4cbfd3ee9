// The harness of step tests finds steps that break their promises.
#include "run_step.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "ops/softmax/softmax.h"

namespace rlx::test {
namespace {

enum class Fault { none, past_the_end, before_the_start, operand };

// Copies rows, and does what it must not.
template <Fault fault>
std::optional<Step> copy_rows(const StepArgs& n) {
  if (!n.in[0].dense()) return n.decline("dense rows only");
  StepBuilder s("copy_rows");
  const auto x = s.read<float>(n.in[0]);
  const auto y = s.write<float>(n.out[0]);
  s.may_overwrite(y, x);
  return s.run(n.in[0].type.dim(0), 1, [=](const Memory& m, const DimValues&, Range r) {
    const std::size_t cols = 5;
    for (std::size_t i = static_cast<std::size_t>(r.begin) * cols; i < static_cast<std::size_t>(r.end) * cols; ++i) {
      m[y][i] = m[x][i];
    }
    if (fault == Fault::past_the_end) m[y].data()[m[y].size()] = 1;
    if (fault == Fault::before_the_start) m[y].data()[-1] = 1;
    if (fault == Fault::operand) const_cast<float&>(m[x][0]) += 1;
  });
}

Bound rows_of_five() {
  return bind_case(softmax_op, {Attrs(SoftmaxAttrs{}), {.inputs = {CaseInput(DType::f32, {7, 5})}}}, {}, 1);
}

template <Fault fault>
std::optional<std::vector<Tensor>> run(const StepRun& how = {}) {
  MakerTable table;
  table.add({&softmax_op, copy_rows<fault>});
  return run_node(rows_of_five(), table, how);
}

TEST(RunStep, GivesTheResultsHoweverItRuns) {
  const Bound b = rows_of_five();
  for (const unsigned pieces : {0u, 1u, 2u}) {
    for (const bool in_place : {false, true}) {
      const auto got = run<Fault::none>({.pieces = pieces, .in_place = in_place});
      ASSERT_TRUE(got);
      EXPECT_TRUE(identical((*got)[0], b.inputs[0]));
    }
  }
  EXPECT_FALSE(run<Fault::none>({.strided = true}));
}

TEST(RunStep, FindsWritesOutsideTheSlots) {
  EXPECT_NONFATAL_FAILURE(run<Fault::past_the_end>(), "wrote outside buffer 1");
  EXPECT_NONFATAL_FAILURE(run<Fault::before_the_start>(), "wrote outside buffer 1");
  EXPECT_NONFATAL_FAILURE(run<Fault::operand>(), "changed operand 0");
}

}  // namespace
}  // namespace rlx::test
