// Encoders as PyTorch exports them are found again whole, and still compute what PyTorch does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "ir/op.h"
#include "passes/pass.h"
#include "runtime/evaluate.h"
#include "runtime/pass_evaluator.h"

namespace rlx::test {
namespace {

struct Exported {
  const char* name;
  int attentions, norms, gelus;
  int roots = 0;  // of a pooled sentence
};

class ExportedEncoder : public testing::TestWithParam<Exported> {};

Graph recognised(const Graph& g) {
  std::vector<Pass> passes{find_pass("fold-constants"), find_pass("simplify-algebra")};
  for (const Pass& p : all_passes()) {
    if (p.name.starts_with("recognise-")) passes.push_back(p);
  }
  const DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{device, options, report};
  use_reference(context);
  return run_passes(g, passes, context);
}

void expect_near(const Tensor& got, const Tensor& want, double bound) {
  const std::vector<double> a = load<double>(got), b = load<double>(want);
  ASSERT_EQ(a.size(), b.size());
  double largest = 0;
  for (const double v : b) largest = std::max(largest, std::fabs(v));
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], bound * largest) << "element " << i;
}

TEST_P(ExportedEncoder, KeepsNothingWrittenOut) {
  const auto file = [](const char* type) { return fmt::format("{}/onnx/{}.{}", RLX_TEST_DATA, GetParam().name, type); };
  const Graph after = recognised(import_onnx(file("onnx")));
  std::map<std::string_view, int> ops;
  for (const Node& n : after.nodes) ++ops[n.op->name()];
  EXPECT_EQ(ops["attention"], GetParam().attentions);
  EXPECT_EQ(ops["layer_norm"], GetParam().norms);
  EXPECT_EQ(ops["gelu"], GetParam().gelus);
  EXPECT_EQ(ops["sqrt"], GetParam().roots);
  for (const char* op : {"softmax", "erf", "rsqrt", "pow", "exp", "tanh"}) EXPECT_EQ(ops[op], 0) << op;

  const std::map<std::string, Tensor> data = read_npz(file("npz"));
  NamedTensors inputs;
  for (const std::string& name : after.input_names) inputs.emplace(name, data.at(fmt::format("in/{}", name)));
  const std::vector<Tensor> out = evaluate(after, inputs);
  for (std::size_t i = 0; i < out.size(); ++i)
    expect_near(out[i], data.at(fmt::format("out/{}", after.output_names[i])), 3e-6);
}

INSTANTIATE_TEST_SUITE_P(Files, ExportedEncoder,
                         testing::Values(Exported{"bert_legacy", 2, 5, 2}, Exported{"bert_dynamo", 2, 5, 2},
                                         Exported{"distilbert_legacy", 1, 3, 1}, Exported{"roberta_dynamo", 1, 3, 1},
                                         Exported{"mpnet_legacy", 1, 3, 1}, Exported{"classic_11", 1, 2, 1, 1},
                                         Exported{"classic_17", 1, 2, 1, 1}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace rlx::test
