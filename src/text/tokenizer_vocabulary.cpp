// A Tokenizer from the metadata of a GGUF file.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/error.h"
#include "text/bpe.h"
#include "text/byte_spelling.h"
#include "text/pre_patterns.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"
#include "text/unigram.h"

namespace rlx {

namespace {

constexpr std::string_view space_mark = "\u2581";

TokenKind kind_of(const VocabularyData& data, std::size_t id) {
  if (data.token_types.empty()) return TokenKind::normal;
  const std::int32_t type = data.token_types[id];
  require(type >= 1 && type <= 6, "{}: token {} has type {}, expected 1 to 6", data.name, id, type);
  static constexpr TokenKind kinds[] = {TokenKind::normal,       TokenKind::unknown, TokenKind::control,
                                        TokenKind::user_defined, TokenKind::unused,  TokenKind::byte};
  return kinds[type - 1];
}

void check_sizes(const VocabularyData& data) {
  constexpr std::size_t most_tokens = 4'000'000, most_bytes = std::size_t{1} << 30;
  const std::size_t count = data.tokens.size();
  require(count > 0 && count <= most_tokens, "{}: {} tokens, expected 1 to {}", data.name, count, most_tokens);
  require(data.scores.empty() || data.scores.size() == count, "{}: {} scores for {} tokens", data.name,
          data.scores.size(), count);
  require(data.token_types.empty() || data.token_types.size() == count, "{}: {} token types for {} tokens", data.name,
          data.token_types.size(), count);
  require(data.merges.size() <= 4 * most_tokens, "{}: {} merges, at most {} are supported", data.name,
          data.merges.size(), 4 * most_tokens);
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    bytes += data.tokens[i].size();
    require(data.tokens[i].size() < 65536, "{}: token {} has {} bytes, at most 65535 are supported", data.name, i,
            data.tokens[i].size());
    require(is_valid_utf8(data.tokens[i]), "{}: token {} is not UTF-8", data.name, i);
    require(data.scores.empty() || std::isfinite(data.scores[i]), "{}: token {} has score {}, expected a finite number",
            data.name, i, data.scores.empty() ? 0.0f : data.scores[i]);
  }
  require(bytes <= most_bytes, "{}: tokens of {} bytes, at most {} are supported", data.name, bytes, most_bytes);
}

std::optional<std::int32_t> checked_id(const VocabularyData& data, const char* what, std::optional<std::int32_t> id) {
  require(!id || (*id >= 0 && static_cast<std::size_t>(*id) < data.tokens.size()), "{}: {} is {}, expected 0 to {}",
          data.name, what, id.value_or(0), data.tokens.size() - 1);
  return id;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  return replace_text(std::string(from), std::string(to))->apply(std::string(text));
}

// Tokens, kinds and the special ids, which all models share.
void fill_tokens(TokenizerParts& p, const VocabularyData& data) {
  std::size_t bytes = 0;
  for (const std::string& t : data.tokens) bytes += t.size();
  p.name = data.name;
  p.tokens.reserve(data.tokens.size(), bytes);
  p.kinds.reserve(data.tokens.size());
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    p.tokens.add(data.tokens[i]);
    p.kinds.push_back(kind_of(data, i));
  }
  p.by_text = TokenMap(data.tokens.size());
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (!data.tokens[i].empty()) p.by_text.set(p.tokens[i], static_cast<std::int32_t>(i));
  }
  p.bos = checked_id(data, "bos", data.bos);
  p.eos = checked_id(data, "eos", data.eos);
  p.eot = checked_id(data, "eot", data.eot);
  p.unk = checked_id(data, "unk", data.unk);
  p.sep = checked_id(data, "sep", data.sep);
  p.pad = checked_id(data, "pad", data.pad);
}

// Control, unknown and user-defined tokens are found in the text itself; the last two kinds even where special tokens
// are not wanted.
void fill_added(TokenizerParts& p, const VocabularyData& data) {
  std::vector<AddedToken> added;
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const TokenKind kind = p.kinds[i];
    const bool special = kind == TokenKind::control || kind == TokenKind::unknown;
    if (!special && kind != TokenKind::user_defined) continue;
    const auto id = static_cast<std::int32_t>(i);
    if (data.tokens[i].empty() || p.by_text.find(data.tokens[i]) != id) continue;
    added.push_back({.content = data.tokens[i], .id = id, .special = special});
  }
  p.raw = AddedTokens(std::move(added), data.name + ": special tokens");
}

void add_around(TokenizerParts& p, const VocabularyData& data, bool bos, bool eos, bool sep) {
  const auto use = [&](std::vector<std::int32_t>& list, bool wanted, const char* what, std::optional<std::int32_t> id) {
    if (!wanted) return;
    require(id.has_value(), "{}: the text is to have {} around it, but that has no id", data.name, what);
    list.push_back(*id);
  };
  use(p.before, data.add_bos.value_or(bos && p.bos), "bos", p.bos);
  use(p.after, data.add_eos.value_or(eos && p.eos), "eos", p.eos);
  use(p.after, data.add_sep.value_or(sep && p.sep), "sep", p.sep);
}

void fill_merges(TokenizerParts& p, const VocabularyData& data, MergeMap& merges) {
  merges = MergeMap(data.merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view text = data.merges[rank];
    const std::size_t space = text.find(' ', 1);
    require(space != std::string_view::npos && space + 1 < text.size(),
            "{}: merge {} is \"{}\", expected two tokens with a space between", data.name, rank, text);
    joined = text.substr(0, space);
    joined += text.substr(space + 1);
    const std::string_view parts[] = {text.substr(0, space), text.substr(space + 1), joined};
    std::int32_t ids[3];
    for (int k = 0; k < 3; ++k) {
      ids[k] = p.by_text.find(parts[k]);
      require(ids[k] >= 0, "{}: merge {} is \"{}\", but \"{}\" is no token", data.name, rank, text, parts[k]);
    }
    merges.add(ids[0], ids[1], {static_cast<std::uint32_t>(rank), ids[2]});
  }
}

void fill_gpt2(TokenizerParts& p, const VocabularyData& data) {
  const PreTokenizer pre = pre_tokenizer_by_name(data.pre);
  for (const std::string_view pattern : pre.patterns) {
    p.splitters.push_back(split_at_pattern(Pattern(pattern, data.pre), SplitBehavior::isolated, false));
  }
  BpeSpec spec;
  spec.on_bytes = true;
  spec.ignore_merges = pre.ignore_merges;
  spec.bytes.fill(-1);
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const bool verbatim = p.kinds[i] != TokenKind::normal && p.kinds[i] != TokenKind::unused;
    const std::optional<std::string> bytes = verbatim ? std::nullopt : spelt_bytes(data.tokens[i]);
    p.texts.add(bytes ? std::string_view(*bytes) : data.tokens[i]);
  }
  p.model_tokens = TokenMap(data.tokens.size());
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const bool verbatim = p.kinds[i] != TokenKind::normal && p.kinds[i] != TokenKind::unused;
    if (verbatim || p.texts[i].empty() || p.by_text.find(p.tokens[i]) != id) continue;
    p.model_tokens.set(p.texts[i], id);
    if (p.texts[i].size() == 1) spec.bytes[static_cast<unsigned char>(p.texts[i][0])] = id;
  }
  spec.tokens = &p.model_tokens;
  fill_merges(p, data, spec.merges);
  p.model = make_bpe(std::move(spec));
  add_around(p, data, pre.add_bos, false, pre.add_sep);
}

// What tokens of llama and t5 stand for, and the tokens of bytes.
void fill_texts(TokenizerParts& p, const VocabularyData& data, ByteIds& bytes) {
  bytes.fill(-1);
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (p.kinds[i] == TokenKind::byte) {
      const std::optional<std::uint8_t> byte = byte_token(data.tokens[i]);
      require(byte.has_value(), "{}: byte token {} is \"{}\", expected <0x00> to <0xFF>", data.name, i, data.tokens[i]);
      bytes[*byte] = static_cast<std::int32_t>(i);
      const char c = static_cast<char>(*byte);
      p.texts.add(std::string_view(&c, 1));
    } else {
      const bool verbatim = p.kinds[i] != TokenKind::normal && p.kinds[i] != TokenKind::unused;
      p.texts.add(verbatim ? data.tokens[i] : replaced(data.tokens[i], space_mark, " "));
    }
  }
}

// Whether text may be cut into this token; the last one of a spelling counts.
bool is_piece(const TokenizerParts& p, std::size_t i) {
  const TokenKind kind = p.kinds[i];
  return (kind == TokenKind::normal || kind == TokenKind::unused || kind == TokenKind::user_defined) &&
         !p.tokens[i].empty() && p.by_text.find(p.tokens[i]) == static_cast<std::int32_t>(i);
}

void fill_llama(TokenizerParts& p, const VocabularyData& data) {
  require(!data.scores.empty(), "{}: a vocabulary of model \"llama\" has no scores", data.name);
  if (!p.bos) p.bos = checked_id(data, "bos", 1);
  if (!p.eos) p.eos = checked_id(data, "eos", 2);
  if (!p.unk) p.unk = checked_id(data, "unk", 0);
  ScoreBpeSpec spec;
  spec.unk = p.unk;
  fill_texts(p, data, spec.bytes);
  p.model_tokens = TokenMap(data.tokens.size());
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (is_piece(p, i)) p.model_tokens.set(p.tokens[i], static_cast<std::int32_t>(i));
    if (p.kinds[i] != TokenKind::unused) continue;
    spec.unused.resize(data.tokens.size());
    spec.unused[i] = 1;
  }
  spec.tokens = &p.model_tokens;
  spec.scores = data.scores;
  p.model = make_score_bpe(std::move(spec));
  const bool prefix = data.add_space_prefix.value_or(true);
  p.normalizers.push_back(sentencepiece_normalizer(
      data.precompiled_charsmap,
      {.add_prefix = prefix, .remove_extra_blanks = data.remove_extra_whitespaces.value_or(false)}, data.name));
  if (prefix) p.first = FirstToken::strip;
  p.strip = 1;
  add_around(p, data, true, false, false);
}

void fill_t5(TokenizerParts& p, const VocabularyData& data) {
  require(!data.scores.empty(), "{}: a vocabulary of model \"t5\" has no scores", data.name);
  if (!p.eos) p.eos = checked_id(data, "eos", 1);
  if (!p.unk) p.unk = checked_id(data, "unk", 2);
  UnigramSpec spec;
  spec.unk = p.unk;
  spec.float_sums = true;
  fill_texts(p, data, spec.bytes);
  spec.byte_fallback = std::all_of(spec.bytes.begin(), spec.bytes.end(), [](std::int32_t id) { return id >= 0; });
  std::vector<PieceTable::Piece> pieces;
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (is_piece(p, i)) pieces.push_back({p.tokens[i], static_cast<Index>(i)});
  }
  spec.pieces = PieceTable(std::move(pieces), data.name);
  spec.scores.assign(data.scores.begin(), data.scores.end());
  p.model = make_unigram(std::move(spec));
  const bool prefix = data.add_space_prefix.value_or(true);
  p.normalizers.push_back(sentencepiece_normalizer(
      data.precompiled_charsmap,
      {.add_prefix = prefix, .remove_extra_blanks = data.remove_extra_whitespaces.value_or(true)}, data.name));
  if (prefix) p.first = FirstToken::strip;
  p.strip = 1;
  add_around(p, data, false, true, false);
}

// Tokens that start a word are spelt with the mark for a blank, those that carry on without.
void fill_bert(TokenizerParts& p, const VocabularyData& data) {
  if (!p.bos) p.bos = checked_id(data, "cls", data.cls);
  WordPieceModelSpec spec;
  std::vector<PieceTable::Piece> heads, tails;
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const std::string_view text = p.tokens[i];
    const bool head = text.starts_with(space_mark) && text.size() > space_mark.size();
    const bool verbatim = p.kinds[i] != TokenKind::normal;
    p.texts.add(verbatim ? std::string(text) : replaced(text, space_mark, " "));
    if (!is_piece(p, i)) continue;
    if (head) heads.push_back({text.substr(space_mark.size()), static_cast<Index>(i)});
    if (!head) tails.push_back({text, static_cast<Index>(i)});
  }
  require(p.unk.has_value(), "{}: a vocabulary of model \"bert\" has no unknown token", data.name);
  spec.heads = PieceTable(std::move(heads), data.name);
  spec.tails = PieceTable(std::move(tails), data.name);
  spec.unk = *p.unk;
  p.model = make_wordpiece(std::move(spec));
  p.normalizers.push_back(bert_normalizer({}));
  p.splitters.push_back(split_bert());
  p.first = FirstToken::strip;
  p.strip = 1;
  add_around(p, data, true, false, true);
}

}  // namespace

Tokenizer::Tokenizer(const VocabularyData& data) {
  check_sizes(data);
  auto parts = std::make_shared<TokenizerParts>();
  fill_tokens(*parts, data);
  fill_added(*parts, data);
  if (data.model == "gpt2") {
    fill_gpt2(*parts, data);
  } else if (data.model == "llama") {
    fill_llama(*parts, data);
  } else if (data.model == "t5") {
    fill_t5(*parts, data);
  } else if (data.model == "bert") {
    fill_bert(*parts, data);
  } else {
    fail("{}: the tokenizer model is \"{}\", expected bert, gpt2, llama or t5", data.name, data.model);
  }
  parts->find_ends();
  parts_ = std::move(parts);
}

}  // namespace rlx
