// Sentence models: the real one against PyTorch's f64, small ones against loops, and folders that are wrong.
#include "models/sentence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/json.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "models.h"
#include "models/folder.h"
#include "mutate.h"
#include "runtime/evaluate.h"
#include "tiny_model.h"

namespace rlx {
namespace {

using test::TinyModel;

std::string scratch(const std::string& name) {
  const std::string folder = testing::TempDir() + "rlx_" + name;
  std::filesystem::remove_all(folder);
  return folder;
}

double difference(const std::vector<double>& a, const double* b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
  return worst;
}

TEST(BulkSentence, MiniLmEqualsPyTorchInF64) {
  const auto folder = test::model_folder("all-MiniLM-L6-v2");
  if (!folder) GTEST_SKIP() << "all-MiniLM-L6-v2 is not here: scripts/fetch_models gets it";
  const std::string data = std::string(RLX_TEST_DATA) + "/minilm";
  const JsonDocument texts = read_json(data, "texts.json"), ids = read_json(data, "ids.json");
  const Tensor golden = read_npy(data + "/embeddings.npy");
  const std::vector<double> want = load<double>(golden);
  const SentenceModel short_model = SentenceModel::load(*folder);
  const SentenceModel long_model = SentenceModel::load(*folder, {.max_tokens = 512});
  EXPECT_EQ(short_model.sentence().max_tokens, 256);
  ASSERT_EQ(texts.root().size(), golden.shape()[0]);
  ASSERT_GE(texts.root().size(), 40);
  double worst = 0;
  std::size_t row = 0;
  auto expected_ids = ids.root().elements().begin();
  for (const JsonValue& entry : texts.root().elements()) {
    const bool is_long = entry.at("max_tokens").as_index() == 512;
    const SentenceModel& model = is_long ? long_model : short_model;
    const std::string_view text = entry.at("text").as_string();
    std::vector<Index> reference;
    for (const JsonValue& id : (*expected_ids).elements()) reference.push_back(id.as_index());
    ++expected_ids;
    EXPECT_EQ(model.tokens(text), reference) << "text " << row;
    const double d = difference(model.embed(text), want.data() + row * 384);
    EXPECT_LE(d, 1e-6) << "text " << row;
    worst = std::max(worst, d);
    ++row;
  }
  RecordProperty("worst", fmt::format("{:.2e}", worst));
  RecordProperty("texts", static_cast<int>(row));
}

TEST(Sentence, SmallModelsEqualLoops) {
  for (const std::string type : {"bert", "distilbert"}) {
    for (const std::string prefix : {"", "model_prefix"}) {
      const TinyModel tiny(scratch("tiny_" + type + prefix), type, prefix.empty() ? "" : type + ".");
      const SentenceModel model = SentenceModel::load(tiny.folder, {.compute = DType::f64});
      EXPECT_NO_THROW(verify(model.graph()));
      for (const std::string text : {"", "a", "ab ca", "abc abc abc abc"}) {
        const std::vector<Index> ids = model.tokens(text);
        EXPECT_LE(ids.size(), 7U);
        const std::vector<double> want = tiny.embed(ids);
        EXPECT_LE(difference(model.embed(text), want.data()), 1e-12) << type << " " << text;
        const SentenceModel f32 = SentenceModel::load(tiny.folder);
        EXPECT_LE(difference(f32.embed(text), want.data()), 1e-6) << type << " " << text;
      }
    }
  }
}

TEST(Sentence, TheFoldersOwnLengthWinsAndAnOptionOverrides) {
  const TinyModel tiny(scratch("lengths"), "bert");
  tiny.write("tokenizer_config.json", R"({"model_max_length": 5})");
  const std::string text = "a b c a b c a b c";
  EXPECT_EQ(SentenceModel::load(tiny.folder).tokens(text).size(), 7U);
  EXPECT_EQ(SentenceModel::load(tiny.folder, {.max_tokens = 4}).tokens(text).size(), 4U);
  std::filesystem::remove(tiny.folder + "/sentence_bert_config.json");
  EXPECT_EQ(SentenceModel::load(tiny.folder).tokens(text).size(), 5U);
  std::filesystem::remove(tiny.folder + "/tokenizer_config.json");
  EXPECT_EQ(SentenceModel::load(tiny.folder).tokens(text).size(), 9U);
  tiny.write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656.0})");
  EXPECT_EQ(SentenceModel::load(tiny.folder).tokens(text).size(), 9U);
}

TEST(Sentence, PoolingModes) {
  Builder b;
  const Value x = b.input("x", {DType::f64, {2, 3, 2}}), mask = b.input("mask", {DType::f64, {2, 3}});
  const Graph g = b.finish({pool(x, mask, Pooling::mean), pool(x, mask, Pooling::cls), pool(x, mask, Pooling::max),
                            pool(x, mask, Pooling::mean_sqrt_length), normalize_rows(pool(x, mask, Pooling::cls))});
  const Tensor inputs[] = {Tensor::of<double>(DType::f64, {2, 3, 2}, {3, 4, 1, -2, 9, 9, 0, 0, 5, 6, 7, 8}),
                           Tensor::of<double>(DType::f64, {2, 3}, {1, 1, 0, 1, 1, 1})};
  const std::vector<Tensor> r = evaluate(g, inputs);
  EXPECT_EQ(load<double>(r[0]), (std::vector<double>{2, 1, 4, 14.0 / 3}));
  EXPECT_EQ(load<double>(r[1]), (std::vector<double>{3, 4, 0, 0}));
  EXPECT_EQ(load<double>(r[2]), (std::vector<double>{3, 4, 7, 8}));
  EXPECT_NEAR(load<double>(r[3])[0], 4 / std::sqrt(2.0), 1e-15);
  EXPECT_EQ(load<double>(r[4]), (std::vector<double>{0.6, 0.8, 0, 0}));
}

TEST(Sentence, TheGraphSurvivesItsTextForm) {
  const TinyModel tiny(scratch("text_form"), "bert");
  const SentenceModel model = SentenceModel::load(tiny.folder);
  ConstantSink sink;
  const std::string text = print(model.graph(), &sink);
  const NamedTensors data = sink.take();
  ConstantSink again;
  EXPECT_EQ(print(parse(text, {.data = &data}), &again), text);
}

void expect_error(const TinyModel& tiny, const std::string& message, const SentenceOptions& options = {}) {
  try {
    SentenceModel::load(tiny.folder, options);
    ADD_FAILURE() << "loads, but must fail with: " << message;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what() << "\n  expected: " << message;
  }
}

TEST(Sentence, WrongFoldersNameFileFieldAndValue) {
  const TinyModel tiny(scratch("wrong"), "bert");
  const auto config = [&](const std::string& from, const std::string& to) {
    std::string text = read_text(tiny.folder, "config.json");
    text.replace(text.find(from), from.size(), to);
    const TinyModel fresh(tiny.folder, "bert");
    tiny.write("config.json", text);
  };
  config("\"bert\"", "\"gpt2\"");
  expect_error(tiny, "model type \"gpt2\" is unknown, expected one of bert, distilbert");
  config("\"gpt2\"", "\"bert\"");
  config("\"num_attention_heads\": 3", "\"num_attention_heads\": 4");
  expect_error(tiny, "hidden_size is 6, not divisible by num_attention_heads 4");
  config("\"num_attention_heads\": 4", "\"num_attention_heads\": 0");
  expect_error(tiny, "num_attention_heads is 0");
  config("\"num_attention_heads\": 0", "\"num_attention_heads\": 3, \"position_embedding_type\": \"relative_key\"");
  expect_error(tiny, "position_embedding_type is \"relative_key\", expected \"absolute\"");
  config("relative_key", "absolute");
  config("\"vocab_size\": 11", "\"vocab_size\": 10");
  expect_error(tiny, "the tokenizer has 11 ids, the embedding 10 rows");
  config("\"vocab_size\": 10", "\"vocab_size\": 12");
  expect_error(tiny, "tensor embeddings.word_embeddings.weight has shape [11,6], expected [12,6]");
  config("\"vocab_size\": 12", "\"vocab_size\": 11");
  config("\"gelu\"", "\"gelu2\"");
  expect_error(tiny, "unknown activation \"gelu2\"");
  config("\"gelu2\"", "\"gelu\"");
  config("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  expect_error(tiny, "tensor encoder.layer.2.attention.self.query.weight is missing");
  config("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 1");
  expect_error(tiny, "weights are not part of the model that config.json describes, the first is encoder.layer.1.");
  config("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 2, \"is_decoder\": true");
  expect_error(tiny, "is_decoder is true, expected false");
}

TEST(Sentence, WrongModulesAndOptions) {
  const TinyModel tiny(scratch("modules"), "bert");
  expect_error(tiny, "max tokens is 10, expected 1 to 9", {.max_tokens = 10});
  expect_error(tiny, "max tokens is 0, expected 1 to 9", {.max_tokens = 0});
  tiny.write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"}])");
  expect_error(tiny, "expected a list with a Pooling module");
  tiny.write("modules.json", R"([{"path": "../x", "type": "a.Pooling"}])");
  expect_error(tiny, "\"../x\", expected a plain folder name");
  tiny.write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  expect_error(tiny, "expected a Transformer, Pooling or Normalize module");
  tiny.write("modules.json", R"([{"path": "1_Pooling", "type": "a.Pooling"}])");
  tiny.write("1_Pooling/config.json", R"({"pooling_mode_lasttoken": true})");
  expect_error(tiny, "pooling_mode_lasttoken is true, expected false");
  tiny.write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})");
  expect_error(tiny, "several are not supported");
  std::filesystem::remove(tiny.folder + "/model.safetensors");
  tiny.write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  expect_error(tiny, "model.safetensors");
}

// Damaged small files of a folder: it loads and answers with finite numbers of the right count, or there is an Error.
TEST(BulkSentence, DamagedConfigurationFiles) {
  const TinyModel tiny(scratch("damaged"), "bert");
  int loaded = 0, refused = 0;
  for (const std::string name : {"config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"}) {
    const std::string text = read_text(tiny.folder, name);
    test::Mutator mutate(7);
    for (int i = 0; i < 1500; ++i) {
      tiny.write(name, mutate(text));
      try {
        const SentenceModel model = SentenceModel::load(tiny.folder);
        const std::vector<double> v = model.embed("a b");
        EXPECT_EQ(static_cast<Index>(v.size()), model.dimensions());
        ++loaded;
      } catch (const Error& e) {
        EXPECT_STRNE(e.what(), "");
        ++refused;
      }
    }
    tiny.write(name, text);
  }
  EXPECT_GT(loaded, 100);
  EXPECT_GT(refused, 100);
  test::count_mutants(loaded + refused);
}

TEST(Sentence, WeightsThatTheModelLacksAreRefused) {
  TinyModel tiny(scratch("unused"), "bert");
  tiny.weights.emplace("pooler.dense.weight", Tensor(DType::f32, {6, 6}));
  tiny.weights.emplace("adapter.weight", Tensor(DType::f32, {6, 6}));
  write_safetensors(tiny.folder + "/model.safetensors", tiny.weights);
  expect_error(tiny, "1 weights are not part of the model that config.json describes, the first is adapter.weight");
}

}  // namespace
}  // namespace rlx
