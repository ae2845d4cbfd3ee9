// Encoders as PyTorch exports them are found again whole, and still compute what PyTorch does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "ir/print.h"
#include "passes/pass.h"
#include "runtime/evaluate.h"
#include "runtime/pass_evaluator.h"

namespace rlx::test {
namespace {

struct Exported {
  const char* name;
  int layers;
  bool gelu = true;
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
  const std::string path = std::string(RLX_TEST_DATA) + "/onnx/" + GetParam().name;
  const Graph before = import_onnx(path + ".onnx"), after = recognised(before);
  std::map<std::string_view, int> ops;
  for (const Node& n : after.nodes) ++ops[n.op->name()];
  EXPECT_EQ(ops["attention"], GetParam().layers);
  EXPECT_EQ(ops["layer_norm"], 2 * GetParam().layers + 1);
  EXPECT_EQ(ops["gelu"], GetParam().gelu ? GetParam().layers : 0);
  for (const char* op : {"softmax", "erf", "sqrt", "rsqrt", "pow", "exp", "tanh", "transpose"})
    EXPECT_EQ(ops[op], 0) << op << "\n" << print(after);

  const std::map<std::string, Tensor> data = read_npz(path + ".npz");
  NamedTensors inputs;
  for (const std::string& name : after.input_names) inputs.emplace(name, data.at("in/" + name));
  const std::vector<Tensor> out = evaluate(after, inputs);
  for (std::size_t i = 0; i < out.size(); ++i) expect_near(out[i], data.at("out/" + after.output_names[i]), 3e-6);
}

INSTANTIATE_TEST_SUITE_P(Files, ExportedEncoder,
                         testing::Values(Exported{"bert_legacy", 1}, Exported{"bert_dynamo", 1},
                                         Exported{"distilbert_legacy", 1}, Exported{"roberta_dynamo", 1},
                                         Exported{"mpnet_legacy", 1}, Exported{"classic_11", 1},
                                         Exported{"classic_17", 1}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rlx::test
