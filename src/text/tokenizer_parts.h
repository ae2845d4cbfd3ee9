// What a Tokenizer is made of; the loaders fill it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/normalizers.h"
#include "text/splitters.h"
#include "text/token_map.h"
#include "text/token_model.h"
#include "text/tokenizer.h"

namespace rlx {

/// Texts by number, in one block.
class TextList {
 public:
  void reserve(std::size_t count, std::size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }
  void add(std::string_view text) {
    bytes_ += text;
    ends_.push_back(bytes_.size());
  }
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> ends_;
};

/// What decoding does to the first token that gives text.
enum class FirstToken : std::uint8_t {
  plain,     // nothing
  strip,     // up to `strip` blanks are taken from the start of the text
  no_marks,  // its marks for blanks vanish
  spelt,     // it stands as it is spelt, without the blank that separates words
};

struct TokenizerParts {
  std::string name;
  TextList tokens;                // as spelt, by id
  std::vector<TokenKind> kinds;   // by id
  std::vector<std::uint8_t> has;  // by id: whether there is such a token
  TokenMap by_text;               // what is spelt so; views into `tokens`
  TextList texts;                 // what a token stands for, where others came before it

  AddedTokens raw, normalized;  // looked for before and after normalisation
  std::vector<std::unique_ptr<Normalizer>> normalizers;
  std::vector<std::unique_ptr<Splitter>> splitters;
  TextList spelt;         // the bytes that tokens of a byte-level model spell
  TokenMap model_tokens;  // what the model looks up, where that differs from `by_text`
  std::unique_ptr<TokenModel> model;
  std::vector<std::int32_t> before, after;

  FirstToken first = FirstToken::plain;
  int strip = 0;
  std::string mark;  // with no_marks

  std::optional<std::int32_t> bos, eos, eot, unk, sep, pad;
  std::vector<std::uint8_t> ends;  // by id: whether a model has finished with it

  /// Marks eos, eot and the control tokens whose names are in use for ending an answer.
  void find_ends();
  /// An Error unless `id` is one of a token.
  void check(std::int32_t id) const;
};

}  // namespace rlx
