// Every scalar op, cast, broadcast and iota as a step: its case list, all element types, all levels, against the
// reference.
#include <gtest/gtest.h>

#include "ir/op_table.h"
#include "run_step.h"

namespace rlx::test {
namespace {

class ScalarCases : public testing::TestWithParam<const OpDef*> {};

std::vector<const OpDef*> folder_ops() {
  std::vector<const OpDef*> all;
  for (const OpFolder& f : op_folders()) {
    const std::string_view folder = f.name;
    if (folder != "scalar" && folder != "cast" && folder != "broadcast" && folder != "iota") continue;
    for (const OpDef* op : f.ops()) all.push_back(op);
  }
  return all;
}

TEST_P(ScalarCases, AreTheReferenceAtEveryLevel) {
  const bool one_value = GetParam()->cases()[0].common.tolerance.kind == Tolerance::Kind::exact;
  // Results of 4 units of the last place and operands that are rounded once more where f64 maths gives f32.
  const CaseCount n = check_steps(*GetParam(), one_value ? exact : relative(5e-7));
  EXPECT_GT(n.ran, 0);
  EXPECT_EQ(n.declined, 0);
  EXPECT_EQ(n.ran, n.strided);  // strided operands need no copy first
}

INSTANTIATE_TEST_SUITE_P(All, ScalarCases, testing::ValuesIn(folder_ops()),
                         [](const auto& each) { return std::string(each.param->name()); });

}  // namespace
}  // namespace rlx::test
