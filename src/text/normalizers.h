// The stages that change a text before it is cut: what tokenizer files call normalizers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/bert_text.h"
#include "text/pattern.h"

namespace rlx {

/// One stage. Immutable.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// The changed text; valid UTF-8 in, valid UTF-8 out.
  virtual std::string apply(std::string text) const = 0;
};

/// Puts `prefix` before a text that is not empty.
std::unique_ptr<Normalizer> prepend_text(std::string prefix);
std::unique_ptr<Normalizer> replace_text(std::string from, std::string to);
std::unique_ptr<Normalizer> replace_pattern(const Pattern& pattern, std::string to);

enum class UnicodeForm : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// As the reference's Unicode version has it.
std::unique_ptr<Normalizer> unicode_form(UnicodeForm form);

/// Each character by itself in lower case.
std::unique_ptr<Normalizer> lowercase();
/// Drops blanks at the ends.
std::unique_ptr<Normalizer> strip_blanks(bool left, bool right);
/// Drops combining marks.
std::unique_ptr<Normalizer> strip_accents();
std::unique_ptr<Normalizer> bert_normalizer(const BertNormalizer& options);
/// Drops control characters and turns other blanks into spaces, as the trainer of SentencePiece's "nmt" rule does.
std::unique_ptr<Normalizer> nmt_blanks();

/// The map of a SentencePiece model: a double-array trie and the texts that it leads to.
class CharacterMap {
 public:
  /// `what` heads the messages of an Error about damaged bytes.
  CharacterMap(std::string bytes, std::string_view what);

  struct Found {
    std::size_t bytes;  // of the key
    std::string_view replacement;
  };
  /// The shortest or longest key that `text` starts with; bytes is 0 if there is none.
  Found find(std::string_view text, bool longest) const;

 private:
  std::uint32_t unit(std::size_t i) const;
  std::string_view replacement(std::uint32_t value) const;

  std::string bytes_;
  std::size_t units_ = 0;
};

/// The map as the reference's tokenizer.json stage applies it: a character with its marks at a time.
std::unique_ptr<Normalizer> map_graphemes(CharacterMap map);

struct SentencePieceNormalizer {
  bool add_prefix = true;           // a blank before the text
  bool remove_extra_blanks = true;  // at the ends, and all but one of a run
};
/// As SentencePiece itself: the map (empty bytes: none), blanks, and U+2581 in place of blanks.
std::unique_ptr<Normalizer> sentencepiece_normalizer(std::string map, const SentencePieceNormalizer& options,
                                                     std::string_view what);

}  // namespace rlx
