// Unigram: the cut of a piece into tokens with the best sum of scores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/piece_table.h"
#include "text/token_model.h"

namespace rlx {

struct UnigramSpec {
  PieceTable pieces;                // what may be cut out, with ids
  std::vector<double> scores;       // by id
  std::optional<std::int32_t> unk;  // stands for characters that no token starts with, neighbours together
  bool byte_fallback = false;       // such characters become the tokens of their bytes, if all are there
  ByteIds bytes{};
  bool float_sums = false;  // adds in float, as SentencePiece does; else in double
};

/// Characters without a token count as if they had one, of the lowest score less 10.
std::unique_ptr<TokenModel> make_unigram(UnigramSpec spec);

/// WordPiece on one word: its longest start that is a token, then the longest that carry on, or unk for the whole.
struct WordPieceModelSpec {
  PieceTable heads, tails;  // tails without the prefix that marks them
  std::int32_t unk = 0;
  Index max_word_characters = 100;
};
std::unique_ptr<TokenModel> make_wordpiece(WordPieceModelSpec spec);

/// A token for each whole piece, or unk, or nothing.
std::unique_ptr<TokenModel> make_word_level(const TokenMap& tokens, std::optional<std::int32_t> unk);

}  // namespace rlx
