// Every op, compiled: each case of its list, with every element type, at every level of the machine, against the
// reference evaluator; with all passes, and with the passes off that do not serve the device.
#include "conformance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "levels.h"

namespace rlx::test {
namespace {

class Compiled : public testing::TestWithParam<const OpDef*> {};

CompileOptions only_legalise() {
  CompileOptions options;
  for (const Pass& p : default_passes()) {
    if (p.name != "legalise") options.disabled.emplace(p.name);
  }
  return options;
}

std::vector<std::map<DType, DType>> element_types(const AnyCase& c) {
  std::vector<std::map<DType, DType>> all{{}};
  if (!c.common.other_dtypes) return all;
  for (const DType d : {DType::f64, DType::f16, DType::bf16}) all.push_back({{DType::f32, d}});
  for (const DType d : {DType::i64, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8})
    all.push_back({{DType::i32, d}});
  return all;
}

// Kernels sum in another order than the reference and have elementary functions of their own.
Tolerance kernel_tolerance(Tolerance t) {
  if (t.kind == Tolerance::Kind::exact) return t;
  return relative(std::max(2e-6, t.kind == Tolerance::Kind::relative ? t.bound : 0));
}

void check(const Session& session, const AnyCase& c, const Bound& b, const CompileOptions& passes) {
  NamedTensors in;
  for (std::size_t i = 0; i < b.inputs.size(); ++i) in.emplace(b.graph.input_names[i], b.inputs[i]);
  const std::vector<Tensor> want = evaluate(b.graph, b.inputs, {false, b.dims});
  const Executable exe = session.compile(b.graph, passes, {.poison = true, .check = true});
  const std::vector<Tensor> got = exe.run(in, {.dims = &b.dims}), again = exe.run(in, {.dims = &b.dims});
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    ASSERT_EQ(got[r].type().text(), want[r].type().text());
    const Difference d = compare(got[r], want[r], kernel_tolerance(c.common.tolerance));
    EXPECT_TRUE(d.ok) << "result " << r << " " << d.where;
    EXPECT_TRUE(identical(got[r], again[r])) << "result " << r << " differs between runs";
  }
}

TEST_P(Compiled, CasesAtEveryLevel) {
  const OpDef& op = *GetParam();
  const CompileOptions plain = only_legalise();
  int compiled = 0;
  at_every_level([&] {
    const Session session = cpu_session({.threads = 1});
    unsigned seed = 1;
    const std::vector<AnyCase> cases = op.cases();
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (const auto& replace : element_types(cases[i])) {
        SCOPED_TRACE("case " + std::to_string(i) + " {" + cases[i].attrs.print() + "}" +
                     (replace.empty() ? "" : " as " + std::string(name(replace.begin()->second))));
        std::optional<Bound> b;
        try {
          b = program_of(bind_case(op, cases[i], replace, seed += 17));
        } catch (const Error&) {
          continue;  // the op refuses this element type
        }
        try {
          check(session, cases[i], *b, {});
          check(session, cases[i], *b, plain);
          ++compiled;
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
        }
      }
    }
  });
  EXPECT_GT(compiled, 0);
  RecordProperty("compiled", compiled);
}

INSTANTIATE_TEST_SUITE_P(Ops, Compiled, testing::ValuesIn(all_ops()),
                         [](const auto& p) { return std::string(p.param->name()); });

}  // namespace
}  // namespace rlx::test
