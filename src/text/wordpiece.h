// The WordPiece tokenizer of BERT and its relatives, id for id as the reference.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/index.h"
#include "text/added_tokens.h"
#include "text/bert_text.h"
#include "text/piece_table.h"

namespace rlx {

/// All that defines a WordPiece tokenizer; the loaders fill it from files.
struct WordPieceSpec {
  std::string name = "tokenizer";  // heads the messages
  std::optional<BertNormalizer> normalizer = BertNormalizer{};
  std::vector<std::pair<std::string, Index>> vocab;  // distinct tokens and ids
  std::string unk_token = "[UNK]";
  std::string continuing_prefix = "##";
  Index max_word_characters = 100;   // a longer word becomes one unk_token
  std::vector<AddedToken> added;     // in the file's order; ids as in the vocab, or counting on from its size
  std::vector<Index> before, after;  // ids put around the text
  std::optional<Index> pad;
};

struct EncodeOptions {
  /// Most ids in the result, those around the text counted; the text's ids are cut at the end.
  std::optional<Index> max_tokens;
  /// Whether the ids around the text ([CLS] and [SEP]) are put there.
  bool add_special = true;
};

/// Immutable; safe to use from several threads at once.
class WordPieceTokenizer {
 public:
  /// Throws an Error if the parts do not fit: a missing unk_token, a repeated token or id, an id out of range.
  explicit WordPieceTokenizer(const WordPieceSpec& spec);

  /// From the text of a `tokenizer.json` with a WordPiece model, BertNormalizer (or none) and BertPreTokenizer. Its
  /// truncation and padding are not applied (but name the pad token); its pair template and decoder are not used.
  /// Anything else that this class does not do is an Error with the field's path and value.
  static WordPieceTokenizer from_json(std::string_view text, std::string_view name = "tokenizer.json");

  /// From the text of a `vocab.txt`, one token a line, and that of its `tokenizer_config.json` (`{}` gives BERT's
  /// defaults). Lines end with LF or CR LF; a token keeps all its other blanks.
  static WordPieceTokenizer from_vocab(std::string_view vocab, std::string_view config = "{}");

  /// From a model's folder: its tokenizer.json, or else its vocab.txt with tokenizer_config.json if there is one.
  static WordPieceTokenizer load(const std::filesystem::path& folder);

  /// The ids of a text. Bytes that are not UTF-8 count as U+FFFD, as with Python's errors="replace". Linear in the
  /// text. An Error if `max_tokens` leaves no room for the ids around the text.
  std::vector<Index> encode(std::string_view utf8, const EncodeOptions& options = {}) const;

  /// The token with this id; an Error if there is none.
  std::string_view token(Index id) const;
  /// The id of this token, if it has one. Fast for tokens of the vocab, linear in their number for others.
  std::optional<Index> find(std::string_view token) const;
  /// One more than the largest id, added tokens included: the rows that an embedding needs.
  Index vocab_size() const { return tokens_.empty() ? 0 : tokens_.back().id + 1; }
  /// The id that fills up a batch; an Error if the tokenizer has none.
  Index pad_id() const;

 private:
  struct Token {
    std::string text;
    Index id;
  };
  struct Output {
    std::vector<Index> ids;
    std::size_t most;
    bool full() const { return ids.size() >= most; }
  };

  void fill_tokens(const WordPieceSpec& spec);
  void fill_pieces(const WordPieceSpec& spec);
  void fill_added(const WordPieceSpec& spec);
  void check_ids(const WordPieceSpec& spec) const;
  void encode_text(std::string_view text, Output& out) const;
  void encode_word(std::string_view word, Output& out) const;
  std::string normalize(std::string_view text) const;

  std::string name_;
  std::optional<BertNormalizer> normalizer_;
  std::vector<Token> tokens_;  // sorted by id
  PieceTable heads_;           // all tokens of the vocab, for the start of a word
  PieceTable tails_;           // those with the continuing prefix, without it
  AddedTokens raw_, normalized_;
  Index unk_ = 0, max_word_characters_ = 0;
  std::vector<Index> before_, after_;
  std::optional<Index> pad_;
};

}  // namespace rlx
