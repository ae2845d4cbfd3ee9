// A real model: equal texts however they are run, and the time to the first token where a prefix is cached.
#include <gtest/gtest.h>

#include <algorithm>

#include "generate/language_model.h"
#include "models.h"

namespace rlx::test {
namespace {

using Tokens = std::vector<std::int32_t>;

auto smollm() { return model_file("smollm2-135m-instruct-q4_1", "SmolLM2-135M-Instruct.Q4_1.gguf"); }

TextOptions greedy(Index count) {
  return {.sampling = SamplerOptions::greedy(), .max_tokens = count, .ignore_end = true};
}

// Some prose without end.
std::string prose(std::size_t sentences) {
  constexpr const char* who[] = {"A gardener", "The old captain", "My sister", "A clever fox", "The night train"};
  constexpr const char* does[] = {"remembers", "paints", "sells", "follows", "forgets", "repairs", "hears"};
  constexpr const char* what[] = {"the blue door", "three letters", "a map of the town", "her first song"};
  std::string out;
  for (std::size_t i = 0; i < sentences; ++i) {
    out += fmt::format("{} {} {} on day {}. ", who[i * 7 % 5], does[i * 11 % 7], what[i * 5 % 4], i * i % 97);
  }
  return out;
}

class BulkSmolLm : public testing::Test {
 protected:
  void SetUp() override {
    if (!smollm()) GTEST_SKIP() << "SmolLM2 is missing: scripts/fetch_models smollm2-135m-instruct-q4_1";
  }
  static LanguageModel load(LanguageModelOptions o = {}) {
    if (o.threads == 0) o.threads = 1;
    return LanguageModel::load(smollm()->string(), o);
  }
};

TEST_F(BulkSmolLm, EqualTextsHoweverTheyAreRun) {
  LanguageModel model = load({.context = 512, .sequences = 8});
  const std::string prompt = prose(12) + "The end of the story is";
  const TextOptions o = greedy(32);
  const std::string want = model.complete(prompt, o).text;
  EXPECT_FALSE(want.empty());
  EXPECT_EQ(model.complete(prompt, o).text, want) << "from the cache";
  EXPECT_GT(model.generator().counts().reused, 0);
  for (const Index chunk : {5, 64}) EXPECT_EQ(load({.context = 512, .chunk = chunk}).complete(prompt, o).text, want);
  LanguageModelOptions two;
  two.context = 512;
  two.threads = 2;
  EXPECT_EQ(load(two).complete(prompt, o).text, want);
  LanguageModel guessing = load({.context = 512, .prompt_lookup = true});
  EXPECT_EQ(guessing.complete(prompt, o).text, want);
  EXPECT_GT(guessing.generator().counts().guessed, 0);
  for (Index batch = 2; batch <= 8; ++batch) {
    Generator& g = model.generator();
    const Tokens tokens = model.tokenizer().encode(prompt);
    const GenerateOptions one{.sampling = o.sampling, .max_tokens = 32};
    const Index first = g.add(tokens, one);
    for (Index i = 1; i < batch; ++i) {
      g.add(model.tokenizer().encode(prose(static_cast<std::size_t>(3 + i))), {.max_tokens = 16 + i});
    }
    Tokens got;
    while (!g.idle()) {
      for (const GeneratedToken& t : g.step()) {
        if (t.request == first) got.push_back(t.token);
      }
    }
    EXPECT_EQ(model.tokenizer().decode(got, {.continues = true}), want) << batch;
  }
}

TEST_F(BulkSmolLm, CachedPrefixesAnswerSooner) {
  LanguageModel model = load({.context = 2560, .sequences = 2});
  Tokens shared = model.tokenizer().encode(prose(400));
  ASSERT_GE(shared.size(), 2048u);
  shared.resize(2048);
  const auto with = [&](const std::string& question) {
    Tokens all = shared;
    const Tokens more = model.tokenizer().encode(question, {.add_special = false});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Tokens prompt = with(" In short, the gardener");
  const Completion cold = model.complete(prompt, greedy(8));
  EXPECT_EQ(cold.reused_tokens, 0);
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Completion warm = model.complete(prompt, greedy(8));
    EXPECT_EQ(warm.text, cold.text);
    EXPECT_EQ(warm.reused_tokens, 2048);
    best = std::min(best, warm.to_first_token.count());
  }
  const double ratio = cold.to_first_token.count() / best;
  RecordProperty("first_token_ratio", fmt::format("{:.1f}", ratio));
  RecordProperty("first_token_cold", fmt::format("{:.3f}", cold.to_first_token.count()));
  RecordProperty("first_token_cached", fmt::format("{:.4f}", best));
  EXPECT_GT(ratio, 5) << "cold " << cold.to_first_token.count() << " s, cached " << best << " s";
}

}  // namespace
}  // namespace rlx::test
