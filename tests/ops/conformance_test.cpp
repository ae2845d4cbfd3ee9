// One test an op: every case answers text round trip, inference, verification, reference, definition and gradient.
#include "conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/gradient.h"
#include "codecs/codec.h"
#include "core/error.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace rlx::test {
namespace {

class Conformance : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }
  static std::string what(const AnyCase& c, std::size_t index) {
    std::string s = "case " + std::to_string(index) + " {" + c.attrs.print() + "}";
    for (const CaseInput& in : c.common.inputs) s += " " + in.type.text();
    return s;
  }
};

void check_text(const Graph& g) {
  ConstantSink sink;
  const std::string text = print(g, &sink);
  const NamedTensors data = sink.take();
  Encodings encodings;
  for (const Codec* codec : all_codecs()) encodings.emplace(codec->encoding->name, codec->encoding);
  const Graph again = parse(text, {.encodings = &encodings, .data = &data});
  ConstantSink second;
  EXPECT_EQ(print(again, &second), text);
  const bool by_storage = std::ranges::any_of(g.nodes, [](const Node& n) { return n.op->name() == "constant"; });
  EXPECT_TRUE(by_storage || same(again, g)) << text;
  EXPECT_NO_THROW(verify(g)) << text;
}

void check_values(const OpDef& op, const AnyCase& c, const Bound& b, bool declared) {
  const std::vector<Tensor> got = evaluate(b.graph, b.inputs, {false, b.dims});
  if (op.has_definition() && op.has_reference() && !b.inputs.empty()) {
    const std::vector<Tensor> defined = evaluate(b.graph, b.inputs, {true, b.dims});
    for (std::size_t r = 0; r < got.size(); ++r) {
      const Difference d = compare(defined[r], got[r], c.common.tolerance);
      EXPECT_TRUE(d.ok) << "definition differs, result " << r << " " << d.where;
    }
  }
  if (!declared || c.common.expected.empty()) return;
  ASSERT_EQ(c.common.expected.size(), got.size());
  for (std::size_t r = 0; r < got.size(); ++r) {
    Tensor want(got[r].dtype(), got[r].shape());
    store(want, c.common.expected[r]);
    const Difference d = compare(got[r], want, c.common.expected_tolerance);
    EXPECT_TRUE(d.ok) << "result " << r << " " << d.where;
  }
}

TEST_P(Conformance, Cases) {
  const std::vector<AnyCase> cases = op().cases();
  ASSERT_FALSE(cases.empty());
  EXPECT_FALSE(op().doc().empty());
  EXPECT_TRUE(op().has_reference() || op().has_definition());
  const auto [members, listed] = op().field_counts();
  EXPECT_EQ(members, listed) << "fields() does not list every member";
  unsigned seed = 1;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const AnyCase& c = cases[i];
    bool first = true;
    for (const auto& replace : variants(c)) {
      SCOPED_TRACE(what(c, i) + (replace.empty() ? "" : " as " + std::string(name(replace.begin()->second))));
      std::optional<Bound> b;
      try {
        b = bind_case(op(), c, replace, seed += 17);
      } catch (const Error& e) {
        EXPECT_FALSE(first) << e.what();  // another element type may be refused
        continue;
      }
      try {
        check_text(b->graph);
        check_values(op(), c, *b, first || replace.begin()->second == DType::f64);
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
      first = false;
    }
  }
}

TEST_P(Conformance, Gradient) {
  const std::vector<AnyCase> cases = op().cases();
  const std::map<DType, DType> doubles{{DType::f32, DType::f64}, {DType::f16, DType::f64}, {DType::bf16, DType::f64}};
  double worst = 0, worst_second = 0;
  int checked = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const AnyCase& c = cases[i];
    const bool real = std::ranges::any_of(c.common.inputs, [](const CaseInput& in) { return is_float(in.type.dtype); });
    if (!c.common.gradient || !real) continue;
    SCOPED_TRACE(what(c, i));
    try {
      const Bound b = bind_case(op(), c, doubles, 99);
      std::string where;
      const double error = gradient_error(b.graph, b.inputs, b.dims, where);
      EXPECT_LE(error, c.common.gradient_bound) << where;
      worst = std::max(worst, error);
      ++checked;
      if ((op().traits() & elementwise) == 0) continue;
      const Graph d = gradient(b.graph);
      std::vector<Tensor> inputs = b.inputs;
      for (std::size_t k = inputs.size(); k < d.inputs.size(); ++k) {
        CaseInput cotangent(d.nodes[d.inputs[k]].results[0]);
        inputs.push_back(fill(cotangent.range(0.5, 1.5), b.dims, 5));
      }
      const double second = gradient_error(d, inputs, b.dims, where);
      EXPECT_LE(second, c.common.gradient_bound) << "second order, " << where;
      worst_second = std::max(worst_second, second);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
  RecordProperty("cases", checked);
  RecordProperty("worst", fmt::format("{:.2e}", worst));
  RecordProperty("worst_second", fmt::format("{:.2e}", worst_second));
}

TEST_P(Conformance, Failures) {
  for (const AnyFailure& f : op().failures()) {
    Builder b;
    Values operands;
    for (const TensorType& t : f.types) operands.push_back(b.input("a" + std::to_string(operands.size()), t));
    try {
      b.emit(op(), f.attrs, operands);
      ADD_FAILURE() << op().name() << " {" << f.attrs.print() << "} accepts what must fail with: " << f.message;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(f.message), std::string::npos) << e.what() << "\n  expected: " << f.message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, testing::ValuesIn(all_ops()),
                         [](const auto& p) { return std::string(p.param->name()); });

}  // namespace
}  // namespace rlx::test
