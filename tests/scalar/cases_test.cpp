// Every scalar op, cast, broadcast and iota as a step: its case list, all element types, all levels, against the
// reference.
#include <gtest/gtest.h>

#include "conformance.h"
#include "core/error.h"
#include "ir/op_table.h"
#include "levels.h"
#include "step_run.h"

namespace rlx::test {
namespace {

std::vector<std::map<DType, DType>> variants(const AnyCase& c) {
  std::vector<std::map<DType, DType>> all{{}};
  if (!c.common.other_dtypes) return all;
  for (const DType d : {DType::f64, DType::f16, DType::bf16}) all.push_back({{DType::f32, d}});
  for (const DType d : {DType::i64, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8}) {
    all.push_back({{DType::i32, d}});
  }
  return all;
}

// f32 maths is within 4 units of the last place; sums of several roundings come near the cases' own bound.
Tolerance bound_of(const AnyCase& c) {
  return c.common.tolerance.kind == Tolerance::Kind::exact ? exact : relative(5e-7);
}

struct Counts {
  int ran = 0, refused = 0;
};

void check_op(const OpDef& op, Counts& counts) {
  unsigned seed = 1;
  for (const AnyCase& c : op.cases()) {
    for (const auto& replace : variants(c)) {
      std::optional<Bound> b;
      try {
        b = bind_case(op, c, replace, seed += 17);
      } catch (const Error&) {
        ++counts.refused;  // inference refuses this element type
        continue;
      }
      std::string what = std::string(op.name()) + " {" + c.attrs.print() + "}";
      for (const Tensor& t : b->inputs) what += " " + t.type().text();
      SCOPED_TRACE(what);
      const std::vector<Tensor> want = evaluate(b->graph, b->inputs, {false, b->dims});
      const std::vector<Tensor> got = run_steps(b->graph, b->inputs, b->dims);
      ASSERT_EQ(got.size(), want.size());
      const Difference d = compare(got[0], want[0], bound_of(c));
      EXPECT_TRUE(d.ok) << d.where;
      ++counts.ran;
    }
  }
}

std::vector<const OpDef*> folder_ops() {
  std::vector<const OpDef*> all;
  for (const OpFolder& f : op_folders()) {
    if (f.name != std::string_view("scalar") && f.name != std::string_view("cast") &&
        f.name != std::string_view("broadcast") && f.name != std::string_view("iota"))
      continue;
    for (const OpDef* op : f.ops()) all.push_back(op);
  }
  return all;
}

TEST(ScalarSteps, EveryCaseOfEveryOpAtEveryLevel) {
  const std::vector<const OpDef*> ops = folder_ops();
  EXPECT_GE(ops.size(), 60u);
  at_every_level([&] {
    Counts counts;
    for (const OpDef* op : ops) check_op(*op, counts);
    EXPECT_GE(counts.ran, 1500) << counts.refused << " refused";
  });
}

}  // namespace
}  // namespace rlx::test
