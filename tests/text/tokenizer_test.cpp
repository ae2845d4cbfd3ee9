// Tokenizers beside the reference libraries, streaming, and what they refuse.
#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "text/pre_patterns.h"
#include "tokenizer_cases.h"

namespace rlx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(TokenizerGolden, IdsAndTextsAreTheReferences) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(RLX_TEST_DATA "/tokenizers")) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const test::TokenizerCases file = test::read_tokenizer_cases(entry.path());
    EXPECT_GE(file.cases.size(), 100u);
    for (const test::TokenizerCase& c : file.cases) EXPECT_EQ(test::check_case(file.tokenizer, c), "") << c.text;
    ++files;
  }
  EXPECT_GE(files, 6);
}

/// A byte-level vocabulary: all bytes, a few merges, special tokens.
VocabularyData small_vocabulary() {
  VocabularyData v;
  v.model = "gpt2";
  v.pre = "gpt-2";
  // The printable bytes spell themselves; the others are the characters from U+0100 on.
  const auto add = [&](const std::string& token, int type) {
    v.tokens.push_back(token);
    v.token_types.push_back(type);
  };
  for (int b = 0; b < 256; ++b) {
    const bool printed = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    static int next = 0;
    const int c = printed ? b : 256 + next++ % 68;
    std::string s;
    if (c < 0x80) {
      s += static_cast<char>(c);
    } else {
      s += static_cast<char>(0xC0 | (c >> 6));
      s += static_cast<char>(0x80 | (c & 0x3F));
    }
    add(s, 1);
  }
  for (const char* t : {"he", "ll", "hell", "hello", "\u0120w"}) add(t, 1);
  for (const char* m : {"h e", "l l", "he ll", "hell o", "\u0120 w"}) v.merges.emplace_back(m);
  add("<|end|>", 3);
  add("<tool>", 4);
  v.bos = v.eos = 261;
  return v;
}

TEST(Tokenizer, MergesSpecialTokensAndKinds) {
  const Tokenizer t(small_vocabulary());
  EXPECT_THAT(t.encode("hello<|end|> w<tool>"), ElementsAre(259, 261, 260, 262));
  EXPECT_THAT(t.encode("<tool><|end|>", {.parse_special = false}), ElementsAre(262, '<', '|', 'e', 'n', 'd', '|', '>'));
  EXPECT_EQ(t.decode(std::vector<std::int32_t>{259, 261, 260}), "hello w");
  EXPECT_EQ(t.decode(std::vector<std::int32_t>{259, 261, 260}, {.skip_special = false}), "hello<|end|> w");
  EXPECT_EQ(t.kind(261), TokenKind::control);
  EXPECT_EQ(t.kind(262), TokenKind::user_defined);
  EXPECT_TRUE(t.ends_generation(261));
  EXPECT_FALSE(t.ends_generation(262));
  EXPECT_EQ(t.vocab_size(), 263);
  EXPECT_EQ(t.token(260), "\u0120w");
  EXPECT_EQ(t.find("hell"), 258);
  EXPECT_EQ(t.find("nope"), std::nullopt);
  EXPECT_EQ(t.bos(), 261);
  EXPECT_FALSE(t.adds_bos());
  VocabularyData v = small_vocabulary();
  v.add_bos = v.add_eos = true;
  EXPECT_THAT(Tokenizer(v).encode("he"), ElementsAre(261, 256, 261));
  EXPECT_TRUE(Tokenizer(v).adds_bos());
  EXPECT_THAT(Tokenizer(v).encode("he", {.add_special = false}), ElementsAre(256));
  EXPECT_THAT(Tokenizer(v).encode(""), ElementsAre(261, 261));
}

TEST(Detokenizer, NeverGivesHalfACharacter) {
  const Tokenizer t(small_vocabulary());
  Detokenizer d(t);
  const std::vector<std::int32_t> ids = t.encode("é😀");
  ASSERT_EQ(ids.size(), 6u);
  const char* expected[] = {"", "é", "", "", "", "😀"};
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(d.push(ids[i]), expected[i]);
  EXPECT_EQ(d.flush(), "");
  EXPECT_EQ(d.push(ids[2]), "");
  EXPECT_EQ(d.push('a'), "\uFFFDa");  // the character cannot be finished any more
  EXPECT_EQ(d.push(ids[2]), "");
  EXPECT_EQ(d.push(ids[3]), "");
  EXPECT_EQ(d.flush(), "\uFFFD");
  EXPECT_EQ(d.push('a'), "a");
  EXPECT_EQ(t.decode(std::vector<std::int32_t>{ids[5], ids[5], ids[0]}), "\uFFFD\uFFFD\uFFFD");
}

TEST(Tokenizer, LongTextsTakeLinearithmicTime) {
  const Tokenizer t(small_vocabulary());
  const std::string text(3'000'000, 'l');  // one piece: quadratic merging would take hours
  EXPECT_EQ(t.encode(text).size(), 1'500'000u);
  EXPECT_EQ(t.encode(std::string(1'000'000, ' ')).size(), 1'000'000u);
}

std::string error_of(const VocabularyData& v) {
  try {
    Tokenizer t(v);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Tokenizer, RefusesVocabulariesThatDoNotFit) {
  const auto changed = [](auto change) {
    VocabularyData v = small_vocabulary();
    change(v);
    return error_of(v);
  };
  EXPECT_EQ(changed([](VocabularyData&) {}), "");
  EXPECT_THAT(changed([](VocabularyData& v) { v.model = "rwkv"; }), HasSubstr("model is \"rwkv\", expected"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.pre = "klingon"; }),
              AllOf(HasSubstr("\"klingon\" is not known"), HasSubstr("llama-bpe"), HasSubstr("smollm")));
  EXPECT_THAT(changed([](VocabularyData& v) { v.tokens.clear(); }), HasSubstr("0 tokens"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.token_types.pop_back(); }),
              HasSubstr("262 token types for 263 tokens"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.token_types[3] = 7; }), HasSubstr("token 3 has type 7"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.scores = {1.0f}; }), HasSubstr("1 scores for 263 tokens"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.merges[1] = "ll"; }), HasSubstr("merge 1 is \"ll\", expected two"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.merges[1] = "l z"; }), HasSubstr("\"lz\" is no token"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.tokens[7] = "\xff"; }), HasSubstr("token 7 is not UTF-8"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.eos = 263; }), HasSubstr("eos is 263, expected 0 to 262"));
  EXPECT_THAT(changed([](VocabularyData& v) { v.eos = -1; }), HasSubstr("eos is -1"));
  EXPECT_THAT(changed([](VocabularyData& v) {
                v.bos.reset();
                v.add_bos = true;
              }),
              HasSubstr("bos"));
  EXPECT_THROW(Tokenizer(small_vocabulary()).decode(std::vector<std::int32_t>{263}), Error);
  EXPECT_THROW(Tokenizer(small_vocabulary()).token(-1), Error);
}

TEST(Tokenizer, EveryPreTokenizerCompiles) {
  const std::vector<std::string_view> names = pre_tokenizer_names();
  EXPECT_GE(names.size(), 50u);
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (const std::string_view name : names) {
    VocabularyData v = small_vocabulary();
    v.pre = name;
    EXPECT_EQ(Tokenizer(v).decode(Tokenizer(v).encode("It's 1234  o'Clock\n\n x", {.add_special = false})),
              "It's 1234  o'Clock\n\n x")
        << name;
  }
}

}  // namespace
}  // namespace rlx
