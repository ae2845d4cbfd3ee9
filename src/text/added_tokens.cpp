// Finding added tokens: the longest at each place, then the rules about what surrounds it.
#include "text/added_tokens.h"

#include <utility>

#include "text/unicode.h"

namespace rlx {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, std::string_view what) : tokens_(std::move(tokens)) {
  std::vector<PieceTable::Piece> pieces;
  pieces.reserve(tokens_.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) pieces.push_back({tokens_[i].content, static_cast<Index>(i)});
  table_ = PieceTable(std::move(pieces), what);
  for (const AddedToken& t : tokens_) starts_[static_cast<unsigned char>(t.content[0])] = true;
}

std::optional<AddedTokens::Found> AddedTokens::next(std::string_view text, std::size_t done, std::size_t& at,
                                                    bool special_too) const {
  while (!tokens_.empty() && at < text.size()) {
    if (!starts_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const std::optional<PieceTable::Match> match = table_.longest(text.substr(at));
    if (!match) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(match->id)];
    std::size_t begin = at, end = at + match->bytes;
    at = end;
    if (token.special && !special_too) continue;
    if (token.single_word) {
      std::size_t behind = end;
      if (begin > 0 && is_word_character(previous_code_point(text, begin))) continue;
      if (end < text.size() && is_word_character(next_code_point(text, behind))) continue;
    }
    if (token.lstrip) {
      while (begin > done && is_white_space(previous_code_point(text, begin))) {
        do {
          --begin;
        } while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80);
      }
    }
    if (token.rstrip) {
      for (std::size_t next = end; next < text.size() && is_white_space(next_code_point(text, next));) end = next;
    }
    return Found{&token, begin, end};
  }
  return std::nullopt;
}

}  // namespace rlx
