// Damaged tokenizer files and texts: a working tokenizer or an Error, never anything else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/json.h"
#include "models.h"
#include "mutate.h"
#include "text/wordpiece.h"

namespace rlx {
namespace {

const std::string small_json = R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [
  {"id": 0, "content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
   "special": true},
  {"id": 1, "content": "[UNK]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
   "special": true},
  {"id": 2, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
   "special": true},
  {"id": 3, "content": "[SEP]", "single_word": false, "lstrip": true, "rstrip": true, "normalized": false,
   "special": true},
  {"id": 8, "content": "Größe", "single_word": true, "lstrip": false, "rstrip": false, "normalized": true,
   "special": false}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
    "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
               {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], "pair": [],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                       "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "un": 4, "##aff": 5, "##able": 6, "漢": 7}}})";

const std::string small_vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n漢\nü\n";
const std::string small_config = R"({"do_lower_case": true, "strip_accents": null, "tokenize_chinese_chars": true,
  "unk_token": "[UNK]", "cls_token": {"content": "[CLS]", "lstrip": false}, "sep_token": "[SEP]", "pad_token": "[PAD]",
  "mask_token": "[MASK]", "never_split": null, "tokenizer_class": "BertTokenizer", "model_max_length": 512,
  "added_tokens_decoder": {
    "0": {"content": "[PAD]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
          "special": true},
    "4": {"content": "[MASK]", "single_word": false, "lstrip": true, "rstrip": false, "normalized": false,
          "special": true}}})";

const std::string text = "Unaffable [CLS] 漢字 größe, [SEP] \xff\xe2\x82 e\u0301 [MASK]##aff\n";

/// Whatever was loaded keeps its promises: all ids are tokens, cuts are exact, a second call says the same.
void use(const WordPieceTokenizer& t) {
  const std::vector<Index> ids = t.encode(text);
  for (const Index id : ids) {
    ASSERT_LT(id, t.vocab_size());
    ASSERT_NO_THROW(t.token(id));
  }
  ASSERT_EQ(t.encode(text), ids);
  std::vector<Index> bare = t.encode(text, {.add_special = false});
  ASSERT_LE(bare.size(), ids.size());
  const std::vector<Index> cut = t.encode(text, {.max_tokens = 3, .add_special = false});
  ASSERT_TRUE(std::equal(cut.begin(), cut.end(), bare.begin()) && cut.size() == std::min<std::size_t>(3, bare.size()));
}

/// Runs `load` on mutants; counts those that loaded and those that were refused.
template <class Load>
void try_mutants(const std::string& original, std::uint64_t seed, int count, int at_least_loaded, Load load) {
  test::Mutator mutate(seed);
  int loaded = 0, refused = 0;
  for (int i = 0; i < count; ++i) {
    const std::string mutant = mutate(original);
    std::optional<WordPieceTokenizer> tokenizer;
    try {
      tokenizer = load(mutant);
    } catch (const Error& e) {
      ++refused;
      ASSERT_NE(std::string(e.what()), "");
    }
    if (tokenizer) {
      ++loaded;
      ASSERT_NO_THROW(use(*tokenizer)) << mutant;
    }
    if (::testing::Test::HasFatalFailure()) FAIL() << mutant;
  }
  test::count_mutants(count);
  EXPECT_GE(loaded, at_least_loaded);
  EXPECT_GE(refused, count / 20);
}

TEST(WordPieceHostile, TheOriginalsLoad) {
  use(WordPieceTokenizer::from_json(small_json));
  use(WordPieceTokenizer::from_vocab(small_vocab, small_config));
  const auto ids = WordPieceTokenizer::from_json(small_json).encode("unaffable 漢 GRÖSSE Größe[SEP] x");
  EXPECT_THAT(ids, ::testing::ElementsAre(2, 4, 5, 6, 7, 1, 8, 3, 1, 3));
}

TEST(WordPieceHostile, MutantsOfTokenizerJson) {
  try_mutants(small_json, 1, 20'000, 300, [](const std::string& m) { return WordPieceTokenizer::from_json(m); });
}

TEST(WordPieceHostile, MutantsOfVocab) {
  try_mutants(small_vocab, 2, 20'000, 500,
              [](const std::string& m) { return WordPieceTokenizer::from_vocab(m, small_config); });
}

TEST(WordPieceHostile, MutantsOfConfig) {
  try_mutants(small_config, 3, 20'000, 500,
              [](const std::string& m) { return WordPieceTokenizer::from_vocab(small_vocab, m); });
}

TEST(WordPieceHostile, EveryPrefixOfTheFiles) {
  for (std::size_t n = 0; n < small_json.size(); ++n) {
    ASSERT_THROW(WordPieceTokenizer::from_json(std::string_view(small_json).substr(0, n)), Error) << n;
  }
  for (std::size_t n = 0; n < small_config.size(); ++n) {
    ASSERT_THROW(WordPieceTokenizer::from_vocab(small_vocab, std::string_view(small_config).substr(0, n)), Error) << n;
  }
  const std::size_t needed = small_vocab.find("\n[MASK]");
  for (std::size_t n = 0; n < small_vocab.size(); ++n) {
    std::optional<WordPieceTokenizer> tokenizer;
    try {
      tokenizer = WordPieceTokenizer::from_vocab(std::string_view(small_vocab).substr(0, n), small_config);
    } catch (const Error&) {
      ASSERT_NE(n, needed);  // the configuration adds [MASK] behind these four
      ASSERT_NE(n, small_vocab.size() - 1);
    }
    if (!tokenizer) continue;
    ASSERT_GE(n, needed);
    use(*tokenizer);
  }
}

// Any bytes encode, and what stands before a text and apart from it does not change its ids.
TEST(WordPieceHostile, MutantsOfTheText) {
  const auto t = WordPieceTokenizer::from_json(small_json);
  test::Mutator mutate(4);
  for (int i = 0; i < 20'000; ++i) {
    const std::string mutant = mutate(text);
    const std::vector<Index> ids = t.encode(mutant);
    ASSERT_EQ(ids.front(), 2);
    ASSERT_EQ(ids.back(), 3);
    for (const Index id : ids) ASSERT_TRUE(id >= 0 && id < t.vocab_size());
    const std::vector<Index> around = t.encode("un \xff " + mutant + " 漢"), inside(ids.begin() + 1, ids.end() - 1);
    ASSERT_EQ(around[1], 4);
    ASSERT_TRUE(std::equal(inside.begin(), inside.end(), around.begin() + 2)) << mutant;
  }
}

}  // namespace
}  // namespace rlx
