// The character maps of SentencePiece models, and the normalizers that use them.
#include <utf8proc.h>

#include <cstring>
#include <utility>

#include "core/error.h"
#include "text/normalizers.h"
#include "text/unicode.h"

namespace rlx {

CharacterMap::CharacterMap(std::string bytes, std::string_view what) : bytes_(std::move(bytes)) {
  require(bytes_.size() >= 4, "{}: a character map of {} bytes, expected 4 or more", what, bytes_.size());
  std::uint32_t trie = 0;
  for (int k = 3; k >= 0; --k) trie = trie << 8 | static_cast<unsigned char>(bytes_[static_cast<std::size_t>(k)]);
  require(trie % 4 == 0 && trie >= 4 && trie <= bytes_.size() - 4,
          "{}: the trie of the character map has {} bytes, expected a multiple of 4 in {} bytes", what, trie,
          bytes_.size() - 4);
  units_ = trie / 4;
  require(is_valid_utf8(std::string_view(bytes_).substr(4 + trie)), "{}: the texts of the character map are not UTF-8",
          what);
}

std::uint32_t CharacterMap::unit(std::size_t i) const {
  std::uint32_t out = 0;
  for (std::size_t k = 4; k > 0; --k) out = out << 8 | static_cast<unsigned char>(bytes_[4 + 4 * i + k - 1]);
  return out;
}

std::string_view CharacterMap::replacement(std::uint32_t value) const {
  const std::string_view texts = std::string_view(bytes_).substr(4 + 4 * units_);
  if (value >= texts.size()) return {};
  const std::string_view text = texts.substr(value);
  return text.substr(0, text.find('\0'));
}

CharacterMap::Found CharacterMap::find(std::string_view text, bool longest) const {
  const auto offset = [](std::uint32_t u) { return static_cast<std::size_t>(u >> 10) << ((u & 0x200u) >> 6); };
  Found found{0, {}};
  std::size_t node = offset(unit(0));
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_) break;
    const std::uint32_t u = unit(node);
    if ((u & 0x800000FFu) != byte) break;
    node ^= offset(u);
    if (node >= units_) break;
    if ((u >> 8 & 1u) == 0) continue;
    found = {i + 1, replacement(unit(node) & 0x7FFFFFFFu)};
    if (!longest) break;
  }
  // A damaged file could point into the middle of a character.
  if (!is_valid_utf8(found.replacement)) found = {0, {}};
  return found;
}

namespace {

class Graphemes : public Normalizer {
 public:
  explicit Graphemes(CharacterMap map) : map_(std::move(map)) {}

  std::string apply(std::string text) const override {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      at = grapheme_end(text, at);
      const std::string_view grapheme = std::string_view(text).substr(begin, at - begin);
      if (grapheme.size() < 6 && put(grapheme, out)) continue;
      for (std::size_t i = 0; i < grapheme.size();) {
        const std::size_t from = i;
        next_code_point(grapheme, i);
        const std::string_view one = grapheme.substr(from, i - from);
        if (!put(one, out)) out += one;
      }
    }
    return out;
  }

 private:
  bool put(std::string_view text, std::string& out) const {
    const CharacterMap::Found found = map_.find(text, false);
    if (found.bytes > 0) out += found.replacement;
    return found.bytes > 0;
  }

  static std::size_t grapheme_end(std::string_view text, std::size_t at) {
    auto last = static_cast<utf8proc_int32_t>(next_code_point(text, at));
    utf8proc_int32_t state = 0;
    while (at < text.size()) {
      std::size_t behind = at;
      const auto c = static_cast<utf8proc_int32_t>(next_code_point(text, behind));
      if (utf8proc_grapheme_break_stateful(last, c, &state)) break;
      last = c;
      at = behind;
    }
    return at;
  }

  CharacterMap map_;
};

class SentencePiece : public Normalizer {
 public:
  SentencePiece(std::string map, const SentencePieceNormalizer& options, std::string_view what) : options_(options) {
    if (!map.empty()) map_.emplace(std::move(map), what);
  }

  std::string apply(std::string text) const override {
    static constexpr std::string_view mark = "\u2581";
    std::string out;
    bool after_blank = options_.remove_extra_blanks;
    bool prefix = options_.add_prefix;
    for (std::size_t at = 0; at < text.size();) {
      std::string_view part = next_part(text, at);
      while (after_blank && part.starts_with(' ')) part.remove_prefix(1);
      if (part.empty()) continue;
      if (std::exchange(prefix, false)) out += mark;
      for (const char c : part) c == ' ' ? out += mark : out += c;
      after_blank = options_.remove_extra_blanks && part.back() == ' ';
    }
    while (options_.remove_extra_blanks && out.ends_with(mark)) out.resize(out.size() - mark.size());
    return out;
  }

 private:
  std::string_view next_part(const std::string& text, std::size_t& at) const {
    const std::string_view rest = std::string_view(text).substr(at);
    if (map_) {
      const CharacterMap::Found found = map_->find(rest, true);
      at += found.bytes;
      if (found.bytes > 0) return found.replacement;
    }
    const std::size_t begin = at;
    next_code_point(text, at);
    return std::string_view(text).substr(begin, at - begin);
  }

  std::optional<CharacterMap> map_;
  SentencePieceNormalizer options_;
};

}  // namespace

std::unique_ptr<Normalizer> map_graphemes(CharacterMap map) { return std::make_unique<Graphemes>(std::move(map)); }

std::unique_ptr<Normalizer> sentencepiece_normalizer(std::string map, const SentencePieceNormalizer& options,
                                                     std::string_view what) {
  return std::make_unique<SentencePiece>(std::move(map), options, what);
}

}  // namespace rlx
