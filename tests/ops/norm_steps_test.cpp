// Steps of softmax, log_softmax, layer_norm and rms_norm at every level: the cases of the ops, all element types, bits
// that do not depend on other rows or on pieces, sums in front of norms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "conformance.h"
#include "core/error.h"
#include "levels.h"
#include "node_steps.h"
#include "ops/attention/attention.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/scalar/scalar.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

const std::map<DType, DType> element_types[] = {
    {}, {{DType::f32, DType::f64}}, {{DType::f32, DType::f16}}, {{DType::f32, DType::bf16}}};

// Runs every case of an op through its steps; returns how many ran, by element type of the first operand.
std::map<DType, int> run_cases(const OpDef& op, const std::map<DType, DType>& replace) {
  std::map<DType, int> ran;
  unsigned seed = 3;
  std::size_t index = 0;
  for (const AnyCase& c : op.cases()) {
    SCOPED_TRACE("case " + std::to_string(index++) + " {" + c.attrs.print() + "}");
    std::optional<Bound> b;
    try {
      b = bind_case(op, c, replace, seed += 7);
    } catch (const Error&) {
      continue;  // inference refuses the element type
    }
    if (!replace.empty() && !c.common.other_dtypes) continue;
    std::string why;
    const auto got = run_node(b->graph, placed(b->inputs), b->dims, 0, false, &why);
    if (!got) {
      EXPECT_EQ(b->inputs[0].dtype(), DType::f64) << why;
      continue;
    }
    const std::vector<Tensor> want = evaluate(b->graph, b->inputs, {false, b->dims});
    const Difference d = compare((*got)[0], want[0], c.common.tolerance);
    EXPECT_TRUE(d.ok) << d.where;
    for (const Index piece : {1, 3}) {
      const auto again = run_node(b->graph, placed(b->inputs), b->dims, piece, true);
      EXPECT_TRUE(identical((*again)[0], (*got)[0])) << "in pieces of " << piece;
    }
    ++ran[b->inputs[0].dtype()];
  }
  return ran;
}

TEST(NormSteps, RunTheCasesOfTheirOps) {
  at_every_level([] {
    for (const OpDef* op : {(const OpDef*)&softmax_op, (const OpDef*)&log_softmax_op, (const OpDef*)&layer_norm_op,
                            (const OpDef*)&rms_norm_op}) {
      SCOPED_TRACE(op->name());
      for (const auto& replace : element_types) {
        const std::map<DType, int> ran = run_cases(*op, replace);
        ASSERT_EQ(ran.size(), 1U);
        EXPECT_GE(ran.begin()->second, 12);
      }
    }
  });
}

TEST(AttentionSteps, RunTheCasesOfTheOp) {
  at_every_level([] {
    for (const auto& replace : element_types) {
      const std::map<DType, int> ran = run_cases(attention_op, replace);
      if (!replace.empty() && replace.begin()->second == DType::f64) {
        EXPECT_TRUE(ran.empty());
      } else {
        ASSERT_EQ(ran.size(), 1U);
        EXPECT_GE(ran.begin()->second, 100);
      }
    }
  });
}

}  // namespace
}  // namespace rlx::test
