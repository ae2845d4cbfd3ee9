// ONNX import: exported models against PyTorch, single operators against the reference evaluator of the package onnx,
// and the reader against protobuf.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "io/bounded.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "io/onnx_archive.h"
#include "io/onnx_models.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/constant/constant.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

/// Largest difference relative to the largest wanted element; infinities and NaN must be equal.
double distance(const Tensor& got, const Tensor& want) {
  const auto a = load<double>(got), b = load<double>(want);
  if (got.shape() != want.shape() || a.size() != b.size()) return INFINITY;
  double scale = 1e-30, worst = 0;
  for (const double v : b) scale = std::isfinite(v) ? std::max(scale, std::fabs(v)) : scale;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i]) && std::isfinite(a[i])) {
      worst = std::max(worst, std::fabs(a[i] - b[i]) / scale);
    } else if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) {
      return INFINITY;
    }
  }
  return worst;
}

/// What is wrong with the results of a graph, or nothing.
std::string differences(const Graph& g, const std::vector<Tensor>& got, const std::vector<Tensor>& want, double bound) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = distance(got[i], want[i]);
    if (!(d <= bound)) {
      return fmt::format("{}: difference {:.3g}, shapes {} and {}", g.output_names[i], d, text(got[i].shape()),
                         text(want[i].shape()));
    }
  }
  return "";
}

/// Runs a graph on "in/…" and compares with "out/…": what is wrong, or nothing.
std::string run(const Graph& g, const std::map<std::string, Tensor>& data, double bound) {
  verify(g);
  NamedTensors inputs;
  std::vector<Tensor> want;
  for (const std::string& name : g.input_names) inputs.emplace(name, data.at("in/" + name));
  for (const std::string& name : g.output_names) want.push_back(data.at("out/" + name));
  return differences(g, evaluate(g, inputs), want, bound);
}

void expect_exported(const std::string& name, double bound = 3e-6) {
  const Graph g = import_onnx(onnx_file(name + ".onnx"));
  EXPECT_EQ(run(g, read_npz(onnx_file(name + ".npz")), bound), "") << name;
  EXPECT_TRUE(g.checks.empty()) << name << ": " << print(g);
}

TEST(OnnxImport, BertOfBothExporters) {
  expect_exported("bert_legacy");
  expect_exported("bert_dynamo");
}

TEST(OnnxImport, OtherEncoders) {
  expect_exported("distilbert_legacy");
  expect_exported("roberta_dynamo");
  expect_exported("mpnet_legacy");
}

TEST(OnnxImport, EncoderWithNegativeBiasAndPooling) {
  expect_exported("classic_11");
  expect_exported("classic_17");
}

TEST(OnnxImport, PerceptronsWithBatchNorm) {
  expect_exported("perceptron_legacy");
  expect_exported("perceptron_dynamo");
}

// By the reference; 16-bit answers differ by half a unit of their last place, integers and bools not at all.
void expect_operators(const std::string& archive, std::size_t least) {
  each_case(archive, least, [](const ArchiveCase& c) {
    const bool halves = c.name == "cast_float16" || c.name == "cast_bfloat16";
    EXPECT_EQ(differences(c.graph, evaluate(c.graph, c.inputs), c.wanted, halves ? 5e-3 : 2e-6), "") << c.name;
  });
}

TEST(OnnxImport, EveryOperator) { expect_operators("operators.npz", 200); }
TEST(OnnxImport, QuantizedOperators) { expect_operators("quantized.npz", 40); }

TEST(OnnxImport, AnyLengthWithoutImportingAgain) {
  const Graph g = import_onnx(onnx_file("bert_legacy.onnx"));
  const auto data = read_npz(onnx_file("bert_legacy.npz"));
  // The first text alone, and its first tokens hidden by the mask or cut off, give the same rows.
  const auto cut = [&](const std::string& name, Index batch, Index length, double fill) {
    const auto all = load<double>(data.at("in/" + name));
    std::vector<double> part;
    for (Index b = 0; b < batch; ++b) {
      for (Index s = 0; s < length; ++s) part.push_back(s < 7 ? all[static_cast<std::size_t>(b * 7 + s)] : fill);
    }
    return Tensor::of<double>(DType::i64, {batch, length}, part);
  };
  const auto states = [&](Index batch, Index length) {
    return load<double>(evaluate(g, {{"input_ids", cut("input_ids", batch, length, 0)},
                                     {"attention_mask", cut("attention_mask", batch, length, 0)},
                                     {"token_type_ids", cut("token_type_ids", batch, length, 0)}})[0]);
  };
  const auto whole = states(3, 7), one = states(1, 7), padded = states(1, 20);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i], whole[i], 1e-5);
    EXPECT_NEAR(one[i], padded[i], 1e-5);
  }
  EXPECT_TRUE(refuses([&] { states(1, 21); }, "sequence"));  // there are 20 positions
}

TEST(OnnxImport, BoundsFollowFromTheModelAndTheOptions) {
  const Graph g = import_onnx(onnx_file("bert_legacy.onnx"));
  EXPECT_EQ(g.symbols.at("batch").lo, 1);
  EXPECT_EQ(g.symbols.at("batch").hi, 65536);
  EXPECT_EQ(g.symbols.at("sequence").hi, 20);  // rows of the table of positions
  const Graph closer =
      import_onnx(onnx_file("bert_legacy.onnx"), {.bounds = {{"batch", {2, 4}}, {"sequence", {7, 7}}}});
  EXPECT_EQ(closer.symbols.at("batch").hi, 4);
  EXPECT_FALSE(closer.symbols.contains("sequence"));
  EXPECT_TRUE(refuses([] { import_onnx(onnx_file("bert_legacy.onnx"), {.bounds = {{"length", {1, 2}}}}); },
                      "has no size called 'length', its sizes are batch, sequence"));
}

TEST(OnnxImport, NamesAndLabelsAreKept) {
  const Graph g = import_onnx(onnx_file("bert_dynamo.onnx"));
  EXPECT_EQ(g.input_names, (std::vector<std::string>{"input_ids", "attention_mask", "token_type_ids"}));
  EXPECT_EQ(g.output_names, std::vector<std::string>{"last_hidden_state"});
  const bool labelled = std::ranges::any_of(g.labels, [](const Label& l) { return l.text == "node_softmax_1"; });
  EXPECT_TRUE(labelled || g.labels.size() > 50) << g.labels.size();
}

TEST(OnnxImport, TextFormReadsBack) {
  for (const char* name : {"bert_legacy", "bert_dynamo", "perceptron_legacy"}) {
    const Graph g = import_onnx(onnx_file(std::string(name) + ".onnx"));
    ConstantSink sink;
    const std::string text = print(g, &sink);
    const NamedTensors data = sink.take();
    EXPECT_TRUE(same(parse(text, {.data = &data}), g)) << name;
  }
}

TEST(OnnxImport, SizesOfUnknownNameAndOddNames) {
  GraphText t;
  t.nodes = {{"Neg", {"x"}, {"y"}, {}}};
  const auto dim = [](const std::string& name) { return bytes_field(1, bytes_field(2, name)); };
  const std::string shape = bytes_field(1, "") + dim("2*n+1") + dim("max") + dim("2_n_1") + dim("\xc3\xa9") + dim("");
  t.inputs = {bytes_field(1, "my input") + bytes_field(2, bytes_field(1, number_field(1, 1) + bytes_field(2, shape)))};
  t.nodes[0].in = {"my input"};
  t.outputs = {bytes_field(1, "y")};
  const Graph g = import_onnx(bytes_of(model(t)), "m");
  EXPECT_EQ(text(g.nodes[g.inputs[0]].results[0].dims), "[my_input_0,_2_n_1,max_,_2_n_1_2,__,my_input_5]");
}

TEST(OnnxImport, ConstantsShareTheFile) {
  const std::string bytes = read_text(onnx_file("bert_dynamo.onnx"));
  const Bytes file = bytes_of(bytes);
  const Graph g = import_onnx(file, "m");
  int inside = 0, copied = 0;
  for (const Node& n : g.nodes) {
    if (n.op != &constant_op) continue;
    const auto& t = n.attrs.as<ConstantAttrs>().data;
    if (t.count() < 16) continue;
    const auto* p = static_cast<const std::byte*>(t.storage());
    const bool in_file = p >= file.data.data() && p < file.data.data() + file.data.size();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % static_cast<std::size_t>(bits(t.dtype()) / 8), 0u);
    in_file ? ++inside : ++copied;
  }
  EXPECT_GT(inside, 0);
  EXPECT_GT(copied, 0);  // those that the file places at addresses that do not fit
}

TEST(OnnxImport, ExternalDataIsMapped) {
  const Graph g = import_onnx(onnx_file("external.onnx"));
  EXPECT_EQ(run(g, read_npz(onnx_file("perceptron_legacy.npz")), 3e-6), "");
  EXPECT_TRUE(refuses([] { import_onnx(bytes_of(read_text(onnx_file("external.onnx"))), "m"); },
                      "has external data, which a model that was read from bytes cannot have"));
}

TEST(OnnxReader, AgreesWithProtobuf) {
  for (const char* name : {"everything", "external", "perceptron_dynamo", "roberta_dynamo", "classic_17"}) {
    const auto model = onnx::read_model(onnx_file(std::string(name) + ".onnx"));
    EXPECT_EQ(dump(*model), read_text(onnx_file(std::string(name) + ".txt"))) << name;
  }
}

}  // namespace
}  // namespace rlx::test
