// Encoding: added tokens are cut out, the rest is normalised and split into words, words into the longest pieces.
#include "text/wordpiece.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "text/unicode.h"

namespace rlx {

WordPieceTokenizer::WordPieceTokenizer(const WordPieceSpec& spec)
    : name_(spec.name),
      normalizer_(spec.normalizer),
      max_word_characters_(spec.max_word_characters),
      before_(spec.before),
      after_(spec.after),
      pad_(spec.pad) {
  fill_pieces(spec);
  fill_added(spec);
  fill_tokens(spec);
  check_ids(spec);
}

void WordPieceTokenizer::fill_pieces(const WordPieceSpec& spec) {
  std::vector<PieceTable::Piece> heads, tails;
  heads.reserve(spec.vocab.size());
  for (const auto& [text, id] : spec.vocab) {
    require(id >= 0 && id <= std::numeric_limits<std::int32_t>::max(),
            "{}: a token's id is {}, expected 0 to 2147483647", name_, id);
    if (text.empty()) continue;  // no word starts with it
    heads.push_back({text, id});
    if (text.starts_with(spec.continuing_prefix) && text.size() > spec.continuing_prefix.size()) {
      tails.push_back({std::string_view(text).substr(spec.continuing_prefix.size()), id});
    }
  }
  heads_ = PieceTable(std::move(heads), name_ + ": vocab");
  tails_ = PieceTable(std::move(tails), name_ + ": vocab");
  const std::optional<Index> unk = heads_.find(spec.unk_token);
  require(unk.has_value(), "{}: unk_token \"{}\" is not in the vocab, expected one of its tokens", name_,
          spec.unk_token);
  unk_ = *unk;
}

// A token of the vocab keeps its id; others count on from the vocab's size.
void WordPieceTokenizer::fill_added(const WordPieceSpec& spec) {
  Index next = static_cast<Index>(spec.vocab.size());
  std::vector<AddedToken> raw, normalized;
  for (std::size_t i = 0; i < spec.added.size(); ++i) {
    AddedToken token = spec.added[i];
    const std::optional<Index> known = heads_.find(token.content);
    const Index expected = known ? *known : next;
    require(token.id == expected, "{}: added token {} has id {}, expected {}{}", name_, i, token.id, expected,
            known ? " as in the vocab" : ", the next after the vocab");
    if (!known) ++next;
    if (token.normalized) token.content = normalize(token.content);
    (token.normalized ? normalized : raw).push_back(std::move(token));
  }
  raw_ = AddedTokens(std::move(raw), name_ + ": added tokens");
  normalized_ = AddedTokens(std::move(normalized), name_ + ": added tokens");
}

void WordPieceTokenizer::fill_tokens(const WordPieceSpec& spec) {
  tokens_.reserve(spec.vocab.size() + spec.added.size());
  for (const auto& [text, id] : spec.vocab) tokens_.push_back({text, id});
  for (const AddedToken& added : spec.added) {
    if (!heads_.find(added.content)) tokens_.push_back({added.content, added.id});
  }
  std::sort(tokens_.begin(), tokens_.end(), [](const Token& a, const Token& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < tokens_.size(); ++i) {
    require(tokens_[i - 1].id != tokens_[i].id, "{}: id {} has several tokens, expected one", name_, tokens_[i].id);
  }
}

void WordPieceTokenizer::check_ids(const WordPieceSpec& spec) const {
  for (const auto* ids : {&spec.before, &spec.after}) {
    for (const Index id : *ids) token(id);
  }
  if (spec.pad) token(*spec.pad);
  require(max_word_characters_ >= 0, "{}: max_input_chars_per_word is {}, expected 0 or more", name_,
          max_word_characters_);
}

std::string WordPieceTokenizer::normalize(std::string_view text) const {
  return normalizer_ ? bert_normalize(text, *normalizer_) : std::string(text);
}

std::vector<Index> WordPieceTokenizer::encode(std::string_view utf8, const EncodeOptions& options) const {
  const std::size_t around = options.add_special ? before_.size() + after_.size() : 0;
  Output out{{}, std::numeric_limits<std::size_t>::max()};
  if (options.max_tokens) {
    require(*options.max_tokens >= static_cast<Index>(around), "max_tokens is {}, expected at least {}",
            *options.max_tokens, around);
    out.most = static_cast<std::size_t>(*options.max_tokens) - (options.add_special ? after_.size() : 0);
  }
  if (options.add_special) out.ids = before_;
  std::string repaired;
  if (!is_valid_utf8(utf8)) utf8 = repaired = replace_invalid_utf8(utf8);
  const auto on_token = [&](const AddedToken& token) {
    if (!out.full()) out.ids.push_back(token.id);
    return !out.full();
  };
  const auto on_text = [&](std::string_view text) {
    encode_text(text, out);
    return !out.full();
  };
  const auto on_stretch = [&](std::string_view stretch) {
    normalized_.split(normalize(stretch), true, on_text, on_token);
    return !out.full();
  };
  if (!out.full()) raw_.split(utf8, true, on_stretch, on_token);
  if (options.add_special) out.ids.insert(out.ids.end(), after_.begin(), after_.end());
  return std::move(out.ids);
}

void WordPieceTokenizer::encode_text(std::string_view text, Output& out) const {
  BertWords words(text);
  while (!out.full()) {
    const std::optional<std::string_view> word = words.next();
    if (!word) return;
    encode_word(*word, out);
  }
}

void WordPieceTokenizer::encode_word(std::string_view word, Output& out) const {
  const std::size_t start = out.ids.size();
  const auto characters =
      std::count_if(word.begin(), word.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  bool known = characters <= max_word_characters_;
  for (std::size_t at = 0; known && at < word.size();) {
    const auto piece = (at == 0 ? heads_ : tails_).longest(word.substr(at));
    known = piece.has_value();
    if (!known) break;
    out.ids.push_back(piece->id);
    at += piece->bytes;
  }
  if (!known) {
    out.ids.resize(start);
    out.ids.push_back(unk_);
  }
  if (out.full()) out.ids.resize(out.most);
}

std::string_view WordPieceTokenizer::token(Index id) const {
  const auto it = std::partition_point(tokens_.begin(), tokens_.end(), [&](const Token& t) { return t.id < id; });
  require(it != tokens_.end() && it->id == id, "{}: no token has id {}, expected 0 to {}", name_, id, vocab_size() - 1);
  return it->text;
}

std::optional<Index> WordPieceTokenizer::find(std::string_view text) const {
  if (const std::optional<Index> id = heads_.find(text)) return id;
  const auto it = std::find_if(tokens_.begin(), tokens_.end(), [&](const Token& t) { return t.text == text; });
  return it == tokens_.end() ? std::nullopt : std::optional<Index>(it->id);
}

Index WordPieceTokenizer::pad_id() const {
  require(pad_.has_value(), "{}: there is no pad token, expected one to fill up a batch", name_);
  return *pad_;
}

}  // namespace rlx
