// The real sentence model compiled: the same bits for any threads, run and batch; bf16; through its ONNX export.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "backend/cpu/cpu_device.h"
#include "core/json.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "levels.h"
#include "models.h"
#include "models/folder.h"
#include "models/sentence.h"
#include "tiny_model.h"

namespace rlx {
namespace {

const std::string data = std::string(RLX_TEST_DATA) + "/minilm";

struct Golden {
  std::vector<std::string> texts;
  std::vector<Index> longest;  // tokens that each may have
  std::vector<double> vectors;
};

Golden golden() {
  Golden g;
  const JsonDocument texts = read_json(data, "texts.json");
  for (const JsonValue& t : texts.root().elements()) {
    g.texts.emplace_back(t.at("text").as_string());
    g.longest.push_back(t.at("max_tokens").as_index());
  }
  g.vectors = load<double>(read_npy(data + "/embeddings.npy"));
  return g;
}

SentenceModel model(const std::string& folder, int threads, SentenceOptions options = {}) {
  options.session = std::make_shared<const Session>(cpu_session({.threads = threads}));
  return SentenceModel::load(folder, options);
}

// Alone, in a batch, on 1, 2 and 4 threads, and again: always these bits.
void expect_same_bits(const std::string& folder, std::span<const std::string> texts, int runs) {
  std::vector<std::vector<double>> want;
  for (const int threads : {1, 2, 4}) {
    const SentenceModel m = model(folder, threads);
    if (want.empty()) {
      for (const std::string& text : texts) want.push_back(m.embed(text));
    }
    EXPECT_EQ(m.embed(texts), want) << "batch of " << texts.size() << ", " << threads << " threads";
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(m.embed(texts[i]), want[i]) << "text " << i;
    for (int run = 0; run < runs; ++run) EXPECT_EQ(m.embed(texts[0]), want[0]) << "run " << run;
  }
}

TEST(Compiled, SmallModelsHaveTheSameBitsAlways) {
  const std::string folder = testing::TempDir() + "rlx_same_bits";
  std::filesystem::remove_all(folder);
  const test::TinyModel tiny(folder, "bert");
  const std::vector<std::string> texts{"a", "ab ca", "", "abc abc abc abc", "c"};
  at_every_level([&] { expect_same_bits(tiny.folder, texts, 5); });
}

TEST(BulkCompiled, MiniLmHasTheSameBitsAlways) {
  const auto folder = test::model_folder("all-MiniLM-L6-v2");
  if (!folder) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here: scripts/fetch_models gets it";
  const Golden g = golden();
  expect_same_bits(*folder, std::span(g.texts).first(32), 100);
}

TEST(BulkCompiled, MiniLmFromEightThreads) {
  const auto folder = test::model_folder("all-MiniLM-L6-v2");
  if (!folder) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here: scripts/fetch_models gets it";
  const Golden g = golden();
  const SentenceModel m = model(*folder, 2);
  std::vector<std::vector<double>> want;
  for (std::size_t i = 0; i < 8; ++i) want.push_back(m.embed(g.texts[i]));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int run = 0; run < 4; ++run) wrong += m.embed(g.texts[i]) != want[i];
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// The least cosine of the texts that are not cut, with products in `type`; none where the model is not there.
std::optional<double> least_cosine(DType type) {
  const auto folder = test::model_folder("all-MiniLM-L6-v2");
  if (!folder) return {};
  const Golden g = golden();
  const SentenceModel m = model(*folder, 0, {.compile = {.matmul_dtype = type}});
  double least = 1;
  for (std::size_t i = 0; i < g.texts.size(); ++i) {
    if (g.longest[i] == 512) continue;
    const std::vector<double> v = m.embed(g.texts[i]);
    double dot = 0, a = 0, b = 0;
    for (std::size_t k = 0; k < v.size(); ++k) {
      const double want = g.vectors[i * v.size() + k];
      dot += v[k] * want;
      a += v[k] * v[k];
      b += want * want;
    }
    least = std::min(least, dot / std::sqrt(a * b));
  }
  return least;
}

TEST(BulkCompiled, MiniLmInBf16) {
  const auto least = least_cosine(DType::bf16);
  if (!least) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here: scripts/fetch_models gets it";
  EXPECT_GE(*least, 0.9999);
  RecordProperty("least_cosine", fmt::format("{:.7f}", *least));
}

TEST(BulkCompiled, MiniLmInInt8) {
  const auto least = least_cosine(DType::i8);
  if (!least) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here: scripts/fetch_models gets it";
  EXPECT_GE(*least, 0.99);
  RecordProperty("least_cosine", fmt::format("{:.7f}", *least));
}

// Hidden states of the export, pooled and normalised here.
std::vector<double> embed_by_export(const Executable& exe, const std::vector<Index>& ids) {
  const std::vector<Index> shape{1, static_cast<Index>(ids.size())};
  const auto same = [&](Index value) {
    return Tensor::of<std::int64_t>(DType::i64, shape, std::vector<Index>(ids.size(), value));
  };
  const std::vector<Tensor> out = exe.run({{"input_ids", Tensor::of<std::int64_t>(DType::i64, shape, ids)},
                                           {"attention_mask", same(1)},
                                           {"token_type_ids", same(0)}});
  const std::vector<double> states = load<double>(out[0]);
  std::vector<double> mean(384, 0.0);
  for (std::size_t i = 0; i < states.size(); ++i) mean[i % 384] += states[i];
  double length = 0;
  for (const double v : mean) length += v * v;
  for (double& v : mean) v /= std::sqrt(length);
  return mean;
}

TEST(BulkCompiled, MiniLmExportEqualsPyTorchInF64) {
  const auto folder = test::model_folder("all-MiniLM-L6-v2");
  const auto file = folder ? folder->parent_path() / "all-MiniLM-L6-v2-onnx" / "model.onnx" : std::filesystem::path();
  if (!folder || !std::filesystem::exists(file)) GTEST_SKIP() << "no export is here: scripts/export_onnx makes it";
  const Golden g = golden();
  const Executable exe = cpu_session().compile(import_onnx(file));
  const SentenceModel tokens = model(*folder, 1), longer = model(*folder, 1, {.max_tokens = 512});
  double worst = 0;
  for (std::size_t i = 0; i < g.texts.size(); ++i) {
    const std::vector<double> v = embed_by_export(exe, (g.longest[i] == 512 ? longer : tokens).tokens(g.texts[i]));
    for (std::size_t k = 0; k < v.size(); ++k) worst = std::max(worst, std::fabs(v[k] - g.vectors[i * v.size() + k]));
  }
  EXPECT_LE(worst, 1e-6);
  RecordProperty("worst", fmt::format("{:.2e}", worst));
  RecordProperty("texts", static_cast<int>(g.texts.size()));
}

}  // namespace
}  // namespace rlx
