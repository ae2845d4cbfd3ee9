// Texts from a model file: stop strings, characters, ends, conversations, and the programs.
#include "generate/language_model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "generate/chat.h"
#include "generate/stop_strings.h"
#include "tiny_gguf.h"

namespace rlx::test {
namespace {

class Texts : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("rlx_texts_{}", ::getpid());
    std::filesystem::create_directories(folder_);
    TinyGguf{}.write(path());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name = "model.gguf") const { return (folder_ / name).string(); }

  LanguageModel load(const LanguageModelOptions& options = {}) const {
    LanguageModelOptions o = options;
    o.threads = 1;
    return LanguageModel::load(path(), o);
  }
  // The program's output and exit code.
  std::pair<std::string, int> program(const std::string& arguments, const std::string& input = "") const {
    const std::string command = fmt::format("printf '{}' | {} {} 2>&1", input, RLX_PROGRAM, arguments);
    FILE* const pipe = ::popen(command.c_str(), "r");  // NOLINT(bugprone-command-processor): as a user's shell does
    std::string out;
    std::array<char, 4096> part{};
    for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) out.append(part.data(), n);
    return {out, WEXITSTATUS(::pclose(pipe))};
  }

  std::filesystem::path folder_;
};

TextOptions greedy(Index count) { return {.sampling = SamplerOptions::greedy(), .max_tokens = count}; }

TEST(StopStrings, AreFoundAcrossPieces) {
  StopStrings s({"END", "stop"});
  EXPECT_EQ(s.push("one E"), "one ");
  EXPECT_EQ(s.push("N"), "");
  EXPECT_EQ(s.push("d"), "ENd");
  EXPECT_EQ(s.push(" st"), " ");
  EXPECT_EQ(s.push("o"), "");
  EXPECT_EQ(s.push("p here END"), "");
  EXPECT_TRUE(s.stopped());
  EXPECT_EQ(s.found(), "stop");
  EXPECT_EQ(s.push("more"), "");
  EXPECT_EQ(s.flush(), "");
}

TEST(StopStrings, WhatOnlyBeginsOneComesInTheEnd) {
  StopStrings s({"aab"});
  EXPECT_EQ(s.push("aaa"), "a");
  EXPECT_EQ(s.push("a"), "a");
  EXPECT_FALSE(s.stopped());
  EXPECT_EQ(s.flush(), "aa");
  StopStrings t({"b", "ab"});
  EXPECT_EQ(t.push("xab"), "x") << "the first place counts";
  EXPECT_EQ(t.found(), "ab");
  EXPECT_EQ(StopStrings({}).push("all"), "all");
  EXPECT_THROW(StopStrings({""}), Error);
}

TEST_F(Texts, StopStringsEndATextAndAreNoPartOfIt) {
  LanguageModel m = load();
  const std::string whole = m.complete("abc", greedy(60)).text;
  ASSERT_GT(whole.size(), 12u);
  const std::string stop = whole.substr(6, 3);
  const std::size_t at = whole.find(stop);
  TextOptions o = greedy(60);
  o.stop = {"not there", stop};
  std::string heard;
  const Completion c = m.complete("abc", o, [&](std::string_view piece) {
    heard += piece;
    return true;
  });
  EXPECT_EQ(c.text, whole.substr(0, at));
  EXPECT_EQ(heard, c.text);
  EXPECT_EQ(c.finish, TextFinish::stop);
  EXPECT_EQ(m.decoder().pages().available(), m.decoder().pages().size());
}

TEST_F(Texts, EndsOfTexts) {
  LanguageModel m = load({.context = 40});
  EXPECT_EQ(m.complete("abc", greedy(5)).finish, TextFinish::length);
  TextOptions o = greedy(-1);
  o.ignore_end = true;
  const Completion full = m.complete("abc", o);
  EXPECT_EQ(full.finish, TextFinish::context);
  EXPECT_EQ(static_cast<Index>(full.tokens.size()) + full.prompt_tokens, 40);
  int pieces = 0;
  const Completion cut = m.complete("abc", o, [&](std::string_view) { return ++pieces < 4; });
  EXPECT_EQ(cut.finish, TextFinish::cancelled);
  EXPECT_TRUE(full.text.starts_with(cut.text));
  // The token that ends a text is drawn by force, and gives no text.
  o = greedy(20);
  o.sampling.logit_bias = {{2, 1000}};
  const Completion ended = m.complete("abc", o);
  EXPECT_EQ(ended.finish, TextFinish::end);
  EXPECT_EQ(ended.text, "");
  EXPECT_EQ(ended.tokens.size(), 1u);
  EXPECT_EQ(m.decoder().pages().available(), m.decoder().pages().size());
}

// Bytes that are half a character wait for the rest.
TEST_F(Texts, PiecesAreWholeCharacters) {
  LanguageModel m = load();
  TextOptions o{.sampling = {.temperature = 3, .top_k = 0, .top_p = 1, .min_p = 0}, .max_tokens = 100};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    o.sampling.seed = seed;
    std::string joined;
    const Completion c = m.complete("abc", o, [&](std::string_view piece) {
      if (!piece.empty()) {
        EXPECT_NE(static_cast<unsigned char>(piece[0]) & 0xC0, 0x80) << "begins within a character";
      }
      joined += piece;
      return true;
    });
    EXPECT_EQ(joined, c.text);
    std::vector<std::int32_t> ids;
    for (const GeneratedToken& t : c.tokens) ids.push_back(t.token);
    if (c.finish == TextFinish::end) ids.pop_back();
    EXPECT_EQ(c.text, m.tokenizer().decode(ids, {.continues = true}));
  }
}

TEST_F(Texts, OptionsThatMustNotChangeTheText) {
  TextOptions sampled{.sampling = {.temperature = 1, .seed = 3}, .max_tokens = 50};
  TinyGguf{.layers = 1, .seed = 5}.write(path("draft.gguf"));
  for (const TextOptions& o : {greedy(50), sampled}) {
    const std::string want = load().complete("abc abc ab", o).text;
    EXPECT_EQ(load({.chunk = 1}).complete("abc abc ab", o).text, want);
    EXPECT_EQ(load({.page = 16}).complete("abc abc ab", o).text, want);
    EXPECT_EQ(load({.prompt_lookup = true}).complete("abc abc ab", o).text, want);
    EXPECT_EQ(load({.draft = path("draft.gguf")}).complete("abc abc ab", o).text, want);
    LanguageModelOptions two;
    two.threads = 2;
    EXPECT_EQ(LanguageModel::load(path(), two).complete("abc abc ab", o).text, want);
  }
}

TEST_F(Texts, ConversationsAreRenderedByTheModelsTemplate) {
  LanguageModel m = load();
  Chat chat(m, "Be brief.");
  EXPECT_TRUE(chat.own_template());
  const Chat::Answer a = chat.ask("abc", greedy(8));
  ASSERT_EQ(chat.messages().size(), 3u);
  EXPECT_EQ(chat.messages()[2].role, "assistant");
  EXPECT_EQ(chat.messages()[2].content, a.completion.text);
  const std::string text = "<|system|>Be brief.</s><|user|>abc</s><|assistant|>";
  std::vector<std::int32_t> tokens = m.tokenizer().encode(text, {.add_special = false});
  tokens.insert(tokens.begin(), 1);
  EXPECT_EQ(m.complete(tokens, greedy(8)).text, a.completion.text);
  EXPECT_EQ(a.completion.prompt_tokens, static_cast<Index>(tokens.size()));
  const std::string again = chat.ask_again(greedy(8)).completion.text;
  EXPECT_EQ(again, a.completion.text);
  EXPECT_EQ(chat.messages().size(), 3u);
  EXPECT_NE(chat.json().find("\"content\": \"Be brief.\""), std::string::npos);
  chat.clear();
  EXPECT_EQ(chat.messages().size(), 1u);
  chat.set_system("");
  EXPECT_TRUE(chat.messages().empty());
  EXPECT_THROW(chat.ask_again(), Error);
}

TEST_F(Texts, LongConversationsForgetTheirBeginning) {
  LanguageModel m = load({.context = 128});
  Chat chat(m, "x");
  Index forgotten = 0;
  for (int i = 0; i < 8; ++i) {
    const Chat::Answer a = chat.ask(fmt::format("question {}", i), greedy(10));
    forgotten += a.forgotten;
    EXPECT_LE(a.completion.prompt_tokens, 96);
    EXPECT_EQ(chat.messages()[0].role, "system");
    EXPECT_EQ(chat.messages()[1].role, "user");
    EXPECT_EQ(chat.messages().back().role, "assistant");
  }
  EXPECT_GT(forgotten, 0);
  const std::size_t before = chat.messages().size();
  try {
    chat.ask(std::string(200, 'q'));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("but the context has 128"), std::string::npos) << e.what();
  }
  EXPECT_EQ(chat.messages().size(), before);
}

TEST_F(Texts, PerplexityIsThatOfTheLogProbabilities) {
  LanguageModel m = load();
  std::string text;
  for (int i = 0; i < 40; ++i) text += i % 3 ? "abc " : "bca b";
  const Perplexity p = perplexity(m, text, {.chunk = 32});
  const std::vector<std::int32_t> tokens = m.tokenizer().encode(text);
  double sum = 0;
  Index count = 0;
  for (std::size_t c = 0; c + 32 <= tokens.size(); c += 32) {
    std::vector<std::int32_t> part(tokens.begin() + static_cast<std::ptrdiff_t>(c),
                                   tokens.begin() + static_cast<std::ptrdiff_t>(c + 32));
    part[0] = 1;
    for (std::size_t i = 16; i < 31; ++i) {
      TextOptions o = greedy(1);
      o.logprobs = m.decoder().vocabulary();
      const std::vector<std::int32_t> before(part.begin(), part.begin() + static_cast<std::ptrdiff_t>(i + 1));
      const Completion next = m.complete(before, o);
      for (const TokenProbability& t : next.tokens[0].most_probable) {
        if (t.token == part[i + 1]) sum -= t.logprob;
      }
      ++count;
    }
  }
  EXPECT_EQ(p.tokens, count);
  EXPECT_NEAR(p.value, std::exp(sum / static_cast<double>(count)), 1e-6 * p.value);
  EXPECT_GT(p.error, 0);
  EXPECT_THROW(perplexity(m, "abc", {.chunk = 32}), Error);
}

TEST_F(Texts, Errors) {
  const auto expect = [](auto f, const std::string& message) {
    try {
      f();
      ADD_FAILURE() << "no error: " << message;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  };
  expect([&] { load({.context = 257}); }, "the model was made for 256 positions, not for 257");
  expect([&] { load({.sequences = 0}); }, "sequences is 0, expected 1 or more");
  expect([&] { load({.draft = "x", .prompt_lookup = true}); },
         "from a draft model or from prompt lookup, not from both");
  expect([&] { LanguageModel::load(path("missing.gguf")); }, "missing.gguf");
  LanguageModel m = load({.context = 32});
  expect([&] { m.complete(std::string(40, 'q')); }, "which leaves none of the 32 positions");
}

TEST_F(Texts, Programs) {
  const std::string model = "'" + path() + "'";
  const std::string want = load().complete("abc", greedy(20)).text;
  const auto [text, code] = program("generate " + model + " -q --prompt abc --greedy -n 20");
  EXPECT_EQ(code, 0) << text;
  EXPECT_EQ(text, want + "\n");
  const auto [json, json_code] = program("generate " + model + " -q -f - --greedy -n 3 --json --logprobs 2", "abc");
  EXPECT_EQ(json_code, 0) << json;
  EXPECT_NE(json.find("\"finish\":\"length\""), std::string::npos) << json;
  EXPECT_NE(json.find("\"logprob\":"), std::string::npos);
  const auto [chat, chat_code] = program("chat " + model + " -q --greedy -n 6", "abc\\n/stats\\n/nothing\\n/exit\\n");
  EXPECT_EQ(chat_code, 0) << chat;
  EXPECT_NE(chat.find("2 messages"), std::string::npos) << chat;
  EXPECT_NE(chat.find("error: there is no command /nothing; /help lists them"), std::string::npos) << chat;
  const auto [bench, bench_code] = program("bench-llm " + model + " -q -p 16 -n 4 -r 2 -t 1");
  EXPECT_EQ(bench_code, 0) << bench;
  EXPECT_NE(bench.find("pp16"), std::string::npos) << bench;
  EXPECT_NE(bench.find("tg4"), std::string::npos) << bench;
  const auto [wrong, wrong_code] = program("generate " + model + " -q --prompt abc --top-p 2");
  EXPECT_EQ(wrong_code, 1);
  EXPECT_NE(wrong.find("top_p is 2, expected 0 to 1, without 0"), std::string::npos) << wrong;
  EXPECT_EQ(program("generate " + model).second, 1);
}

}  // namespace
}  // namespace rlx::test
