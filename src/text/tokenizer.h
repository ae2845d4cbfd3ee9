// Tokenizers of language models: text to ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index.h"
#include "text/vocabulary.h"

namespace rlx {

struct TokenizeOptions {
  bool add_special = true;    // put the ids around the text that the model expects, such as that of <s>
  bool parse_special = true;  // special tokens spelt in the text become their ids; otherwise they are text
};

struct DetokenizeOptions {
  bool skip_special = true;  // special tokens give no text
  bool continues = false;    // the text goes on from an earlier one: its first blank is kept
};

enum class TokenKind : std::uint8_t { normal, unknown, control, user_defined, unused, byte };

struct TokenizerParts;

/// Immutable, cheap to copy; safe to use from several threads at once.
class Tokenizer {
 public:
  /// From the metadata of a GGUF file. An Error names what does not fit or is not supported.
  explicit Tokenizer(const VocabularyData& data);

  /// From the text of a tokenizer.json. Truncation and padding are not applied. Anything that this class does not do is
  /// an Error with the field's path and value. `config` is the text of tokenizer_config.json, which names the special
  /// tokens; `{}` where there is none.
  static Tokenizer from_json(std::string_view text, std::string_view config = "{}",
                             std::string_view name = "tokenizer.json");

  /// From a model's folder: its tokenizer.json, with tokenizer_config.json if there is one.
  static Tokenizer load(const std::filesystem::path& folder);

  /// The ids of a text. Bytes that are not UTF-8 count as U+FFFD, one for each longest run that could still have become
  /// a character (Python's errors="replace"). Takes n log n time. An Error for a text over 1 GiB, or one on which a
  /// pattern needs more steps than a multiple of its size.
  std::vector<std::int32_t> encode(std::string_view utf8, const TokenizeOptions& options = {}) const;

  /// The text of ids: always UTF-8, with U+FFFD for bytes that form no character. An Error for an id out of range.
  std::string decode(std::span<const std::int32_t> ids, const DetokenizeOptions& options = {}) const;

  /// One more than the largest id.
  Index vocab_size() const;
  /// The token with this id as the file spells it; empty for an id without one, an Error if out of range.
  std::string_view token(std::int32_t id) const;
  /// The id of the token that the file spells so.
  std::optional<std::int32_t> find(std::string_view token) const;
  TokenKind kind(std::int32_t id) const;

  std::optional<std::int32_t> bos() const;
  std::optional<std::int32_t> eos() const;
  std::optional<std::int32_t> eot() const;  // the end of a turn, where it is not eos
  std::optional<std::int32_t> unk() const;
  std::optional<std::int32_t> sep() const;
  std::optional<std::int32_t> pad() const;
  /// Whether a model that gives this token has finished: eos, eot, and control tokens of the names in use for that.
  bool ends_generation(std::int32_t id) const;
  /// Whether `encode` with `add_special` starts with bos.
  bool adds_bos() const;

 private:
  friend class Detokenizer;
  explicit Tokenizer(std::shared_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const TokenizerParts> parts_;
};

/// Turns ids into text one by one, as they come.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, const DetokenizeOptions& options = {});

  /// The text that this id completes: whole characters only, possibly none. The texts of all pushes and of `flush`,
  /// joined, are what `Tokenizer::decode` gives.
  std::string push(std::int32_t id);
  /// What is left: U+FFFD for a character that was not finished. Starts again from the beginning.
  std::string flush();

 private:
  std::string take_complete();

  std::shared_ptr<const TokenizerParts> parts_;
  DetokenizeOptions options_;
  std::string pending_;
  bool started_ = false;
  int strip_left_ = 0;
};

}  // namespace rlx
