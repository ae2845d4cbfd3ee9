// WordPiece against the reference's ids, and the errors of its files.
#include "text/wordpiece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/json.h"
#include "memory.h"
#include "models.h"

namespace rlx {
namespace {

using test::file_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string data = RLX_TEST_DATA "/wordpiece/";

std::string unhex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

/// The texts of strings.json, long ones written out.
std::vector<std::string> hard_strings() {
  const auto doc = JsonDocument::parse(file_text(data + "strings.json"));
  std::vector<std::string> out;
  for (const JsonValue& entry : doc.root().elements()) {
    const auto bytes = entry.find("bytes");
    const std::string unit(bytes ? unhex(bytes->as_string()) : std::string(entry.at("text").as_string()));
    std::string text;
    for (Index i = 0; i < entry.get_or("times", Index{1}); ++i) text += unit;
    out.push_back(std::move(text));
  }
  return out;
}

std::vector<Index> numbers(const JsonValue& list) {
  std::vector<Index> out;
  for (const JsonValue& v : list.elements()) out.push_back(v.as_index());
  return out;
}

/// The ids of one text: [ids], or [head, unit, times, tail].
std::vector<Index> expected_ids(const JsonValue& entry) {
  std::vector<Index> out = numbers(entry.at(0));
  if (entry.size() == 1) return out;
  const std::vector<Index> unit = numbers(entry.at(1)), tail = numbers(entry.at(3));
  for (Index i = 0; i < entry.at(2).as_index(); ++i) out.insert(out.end(), unit.begin(), unit.end());
  out.insert(out.end(), tail.begin(), tail.end());
  return out;
}

void expect_ids(const WordPieceTokenizer& tokenizer, const std::string& ids_file) {
  const auto golden = JsonDocument::parse(file_text(data + ids_file));
  const std::vector<std::string> texts = hard_strings();
  ASSERT_GE(texts.size(), 500u);
  ASSERT_EQ(golden.root().size(), static_cast<Index>(texts.size()));
  std::size_t i = 0;
  for (const JsonValue& entry : golden.root().elements()) {
    EXPECT_EQ(tokenizer.encode(texts[i]), expected_ids(entry)) << "string " << i << ": " << texts[i].substr(0, 200);
    ++i;
  }
}

class WordPieceVariant : public ::testing::TestWithParam<const char*> {};

TEST_P(WordPieceVariant, GivesTheReferencesIds) {
  const std::string name = GetParam();
  expect_ids(WordPieceTokenizer::from_json(file_text(data + "tokenizer_" + name + ".json")), "ids_" + name + ".json");
}

INSTANTIATE_TEST_SUITE_P(Files, WordPieceVariant,
                         ::testing::Values("uncased", "uncased_keep", "cased", "cased_strip", "no_chinese", "no_clean",
                                           "added"),
                         [](const auto& variant) { return std::string(variant.param); });

TEST(WordPiece, VocabFilesGiveTheSameIds) {
  const std::string vocab = file_text(data + "vocab.txt");
  expect_ids(WordPieceTokenizer::from_vocab(vocab), "ids_uncased.json");
  expect_ids(WordPieceTokenizer::from_vocab(vocab, R"({"do_lower_case": false})"), "ids_cased.json");
  expect_ids(WordPieceTokenizer::from_vocab(vocab, R"({"do_lower_case": false, "strip_accents": true})"),
             "ids_cased_strip.json");
  expect_ids(WordPieceTokenizer::from_vocab(vocab, R"({"strip_accents": false})"), "ids_uncased_keep.json");
  expect_ids(WordPieceTokenizer::from_vocab(vocab, R"({"tokenize_chinese_chars": false})"), "ids_no_chinese.json");
}

TEST(WordPiece, RealModel) {
  const auto folder = test::model_folder("all-MiniLM-L6-v2");
  if (!folder) GTEST_SKIP() << "all-MiniLM-L6-v2 is not there: scripts/fetch_models gets it";
  const auto from_json = WordPieceTokenizer::load(*folder);
  expect_ids(from_json, "ids_minilm.json");
  const auto from_vocab =
      WordPieceTokenizer::from_vocab(file_text(*folder / "vocab.txt"), file_text(*folder / "tokenizer_config.json"));
  expect_ids(from_vocab, "ids_minilm.json");
  EXPECT_EQ(from_json.vocab_size(), 30522);
  EXPECT_EQ(from_json.pad_id(), 0);
  EXPECT_EQ(from_json.token(7592), "hello");

  const std::string minilm = RLX_TEST_DATA "/minilm/";
  const auto texts = JsonDocument::parse(file_text(minilm + "texts.json")),
             ids = JsonDocument::parse(file_text(minilm + "ids.json"));
  ASSERT_EQ(texts.root().size(), ids.root().size());
  auto expected = ids.root().elements().begin();
  for (const JsonValue& entry : texts.root().elements()) {
    const auto got = from_json.encode(entry.at("text").as_string(), {.max_tokens = entry.at("max_tokens").as_index()});
    EXPECT_EQ(got, numbers(*expected)) << entry.at("text").as_string().substr(0, 200);
    ++expected;
  }
}

WordPieceTokenizer small() {
  return WordPieceTokenizer::from_vocab("[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\na\n");
}

TEST(WordPiece, MaxTokensCutsTheTextsIds) {
  const auto t = small();
  EXPECT_THAT(t.encode("unaffable a"), ElementsAre(2, 4, 5, 6, 7, 3));
  EXPECT_THAT(t.encode("unaffable a", {.max_tokens = 6}), ElementsAre(2, 4, 5, 6, 7, 3));
  EXPECT_THAT(t.encode("unaffable a", {.max_tokens = 4}), ElementsAre(2, 4, 5, 3));
  EXPECT_THAT(t.encode("unaffable a", {.max_tokens = 2}), ElementsAre(2, 3));
  EXPECT_THAT(t.encode("unaffable a", {.max_tokens = 2, .add_special = false}), ElementsAre(4, 5));
  EXPECT_THAT(t.encode("a [SEP] a", {.max_tokens = 4}), ElementsAre(2, 7, 3, 3));
  EXPECT_THAT(t.encode("a", {.max_tokens = 0, .add_special = false}), ElementsAre());
  EXPECT_THAT(t.encode("unaffx", {.max_tokens = 3}), ElementsAre(2, 1, 3));
  EXPECT_THROW(t.encode("a", {.max_tokens = 1}), Error);
  EXPECT_THROW(t.encode("a", {.max_tokens = -1, .add_special = false}), Error);
}

TEST(WordPiece, TokensAndIds) {
  const auto t = small();
  EXPECT_EQ(t.vocab_size(), 8);
  EXPECT_EQ(t.pad_id(), 0);
  EXPECT_EQ(t.token(5), "##aff");
  EXPECT_EQ(t.find("##aff"), 5);
  EXPECT_EQ(t.find("aff"), std::nullopt);
  EXPECT_THROW(t.token(8), Error);
  EXPECT_THROW(t.token(-1), Error);
  EXPECT_THROW(WordPieceTokenizer::from_vocab("[UNK]\n[CLS]\n[SEP]\n").pad_id(), Error);
}

std::string message(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(WordPiece, FilesThatItDoesNotUnderstandNameTheFieldAndItsValue) {
  const std::string good = file_text(data + "tokenizer_uncased.json");
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    return message([&] { WordPieceTokenizer::from_json(text, "t.json"); });
  };
  EXPECT_EQ(replaced("\"1.0\"", "\"1.0\""), "no error");
  EXPECT_EQ(replaced("\"type\":\"WordPiece\",\"unk", "\"type\":\"BPE\",\"unk"),
            "t.json: model.type is \"BPE\", expected \"WordPiece\"");
  EXPECT_EQ(replaced("\"BertNormalizer\"", "\"NFC\""),
            "t.json: normalizer.type is \"NFC\", expected \"BertNormalizer\"");
  EXPECT_EQ(replaced("\"BertPreTokenizer\"", "\"Whitespace\""),
            "t.json: pre_tokenizer.type is \"Whitespace\", expected \"BertPreTokenizer\"");
  EXPECT_EQ(
      replaced("\"TemplateProcessing\"", "\"RobertaProcessing\""),
      "t.json: post_processor.type is \"RobertaProcessing\", expected \"TemplateProcessing\" or \"BertProcessing\"");
  EXPECT_EQ(replaced("\"lowercase\":true", "\"lowercase\":1"),
            "t.json: normalizer.lowercase is 1, expected true or false");
  EXPECT_EQ(replaced("\"max_input_chars_per_word\":100", "\"max_input_chars_per_word\":-1"),
            "t.json: model.max_input_chars_per_word is -1, expected an integer from 0 to 2147483647");
  EXPECT_EQ(replaced("\"unk_token\":\"[UNK]\"", "\"unk_token\":\"?!\""),
            "t.json: unk_token \"?!\" is not in the vocab, expected one of its tokens");
  EXPECT_EQ(replaced("\"normalized\":false", "\"normalised\":false"),
            "t.json: added_tokens[0].normalised is false, expected no such member");
  EXPECT_EQ(replaced("\"type_id\":0", "\"type_id\":1"),
            "t.json: post_processor.single[0].SpecialToken.type_id is 1, expected an integer from 0 to 0");
  EXPECT_EQ(replaced("\"id\":4,", "\"id\":5,"), "t.json: added token 4 has id 5, expected 4 as in the vocab");
  EXPECT_EQ(replaced("\"ids\":[2]", "\"ids\":[99999]"), "t.json: no token has id 99999, expected 0 to 1209");
  EXPECT_EQ(replaced("\"[MASK]\":4", "\"[MASK]\":3"), "t.json: added token 4 has id 4, expected 3 as in the vocab");
  EXPECT_EQ(replaced("\"stream\":5", "\"stream\":6"), "t.json: id 6 has several tokens, expected one");
}

TEST(WordPiece, VocabFilesThatAreRefused) {
  const auto refused = [](const std::string& vocab, const std::string& config = "{}") {
    return message([&] { WordPieceTokenizer::from_vocab(vocab, config); });
  };
  const std::string good = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  EXPECT_EQ(refused(good), "no error");
  EXPECT_EQ(refused("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]"), "no error");
  EXPECT_EQ(refused(""), "vocab.txt: unk_token \"[UNK]\" is not in the vocab, expected one of its tokens");
  EXPECT_EQ(refused(good + "a\n"), "vocab.txt: vocab: entries 5 and 6 are the same text, expected distinct texts");
  EXPECT_EQ(refused(good + "\xff\n"), "vocab.txt: line 7 is not UTF-8");
  EXPECT_THAT(refused(good + std::string(2000, 'x')), HasSubstr("entry 6 has 2000 bytes, at most 1024 are supported"));
  EXPECT_EQ(refused(good, R"({"pad_token": "<pad>"})"),
            "vocab.txt: pad_token \"<pad>\" is not in the vocab, expected one of its tokens");
  EXPECT_EQ(refused(good, R"({"tokenizer_class": "LlamaTokenizer"})"),
            "tokenizer_config.json: tokenizer_class is \"LlamaTokenizer\", expected BertTokenizer or a relative of it");
  EXPECT_EQ(refused(good, R"({"never_split": ["x"]})"),
            "tokenizer_config.json: never_split is array of 1, expected null or []");
  EXPECT_EQ(refused(good, R"({"do_basic_tokenize": false})"),
            "tokenizer_config.json: do_basic_tokenize is false, expected true");
}

TEST(WordPiece, LoadNamesWhatIsMissing) {
  EXPECT_THAT(message([] { WordPieceTokenizer::load("no/such/folder"); }),
              HasSubstr("no/such/folder holds neither tokenizer.json nor vocab.txt"));
}

// Texts made to be slow: time stays linear, so each takes a small part of a second.
TEST(WordPiece, LongTextsTakeLinearTime) {
  WordPieceSpec spec;
  spec.vocab = {
      {"[UNK]", 0}, {"a", 1}, {"##a", 2}, {std::string(1000, 'a') + "b", 3}, {"##" + std::string(1000, 'a') + "b", 4}};
  spec.max_word_characters = 1'000'000;
  const WordPieceTokenizer tokenizer(spec);
  std::string marks, mixed;
  for (int i = 0; i < 50'000; ++i) {
    marks += "\u0301";
    mixed += i % 2 == 0 ? "\U0001D165" : "\u1B44";
  }
  for (const std::string& text :
       {std::string(100'000, 'a'), std::string(100'000, '['), std::string(100'000, ' '), marks, mixed}) {
    std::vector<Index> ids;
    const double seconds = test::processor_seconds([&] { ids = tokenizer.encode(text); });
    EXPECT_LE(ids.size(), 100'000u);
    EXPECT_LE(seconds, test::sanitized() ? 60.0 : 2.0) << text.substr(0, 4);
  }
  EXPECT_EQ(tokenizer.encode(std::string(100'000, 'a')).size(), 100'000u);
}

}  // namespace
}  // namespace rlx
