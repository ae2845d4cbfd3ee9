// The text side of BERT tokenizers: normalisation, and splitting into words, code point for code point as the
// reference.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

/// What `bert_normalize` does, in this order.
struct BertNormalizer {
  bool clean_text = true;            // drop control, format and private-use characters; blanks become spaces
  bool handle_chinese_chars = true;  // put spaces around CJK ideographs
  bool strip_accents = true;         // decompose (NFD) and drop nonspacing marks
  bool lowercase = true;             // each character by itself: no final sigma, no language
};

/// The normalised text. `text` must be valid UTF-8. Takes time linear in it, apart from sorting runs of combining
/// characters.
std::string bert_normalize(std::string_view text, const BertNormalizer& options);

/// Walks over the words of a text: runs between blanks, each punctuation character by itself. The text must outlive
/// this.
class BertWords {
 public:
  explicit BertWords(std::string_view text) : text_(text) {}
  /// The next word, if there is one.
  std::optional<std::string_view> next();

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace rlx
