// The ONNX export of the sentence model against its safetensors files.
#include "io/onnx/onnx.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models.h"
#include "models/sentence.h"
#include "runtime/evaluate.h"

namespace rlx {
namespace {

TEST(BulkOnnxModel, MiniLmEqualsItsSafetensors) {
  const auto folder = test::model_folder("all-MiniLM-L6-v2");
  if (!folder) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here: scripts/fetch_models gets it";
  const std::string file = folder->string() + "-onnx/model.onnx";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << file << " is not here: scripts/export_onnx writes it";
  const Graph g = import_onnx(file);
  EXPECT_TRUE(g.checks.empty());
  EXPECT_EQ(g.symbols.at("sequence").hi, 512);
  const SentenceModel model = SentenceModel::load(folder->string());
  const std::string text = "The quick brown fox jumps over the lazy dog.";
  const std::vector<Index> ids = model.tokens(text);
  const auto n = static_cast<Index>(ids.size());
  const std::vector<Tensor> states =
      evaluate(g, {{"input_ids", Tensor::of<Index>(DType::i64, {1, n}, ids)},
                   {"attention_mask", Tensor::of<Index>(DType::i64, {1, n}, std::vector<Index>(ids.size(), 1))},
                   {"token_type_ids", Tensor(DType::i64, {1, n})}});
  const std::vector<double> h = load<double>(states[0]), want = model.embed(text);
  std::vector<double> mean(384, 0);
  for (std::size_t i = 0; i < h.size(); ++i) mean[i % 384] += h[i];
  double length = 0;
  for (const double v : mean) length += v * v;
  for (std::size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(mean[i] / std::sqrt(length), want[i], 1e-5) << i;
}

}  // namespace
}  // namespace rlx
