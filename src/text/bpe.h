// Byte-pair encoding: the neighbours of the lowest rank merge first, the leftmost of equals.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/token_map.h"
#include "text/token_model.h"

namespace rlx {

/// The ids of the tokens that stand for single bytes; -1 where there is none.
using ByteIds = std::array<std::int32_t, 256>;

/// A piece is cut into bytes or characters, which then merge by a list of pairs.
struct BpeSpec {
  const TokenMap* tokens = nullptr;  // outlives the model; on bytes, holds the bytes that tokens stand for
  MergeMap merges;
  bool on_bytes = false;            // cuts into bytes, looked up in `bytes`; else into characters
  ByteIds bytes{};                  // the tokens of bytes: all that there is on bytes, the fallback on characters
  bool byte_fallback = false;       // on characters: one without a token becomes its bytes, if all have tokens
  std::optional<std::int32_t> unk;  // stands for what has no token; without it that is dropped
  bool fuse_unk = false;            // one unk for neighbours without a token
  bool ignore_merges = false;       // a piece that is a token is not cut
  std::string continuing_prefix, end_suffix;  // on characters: put before all but the first, behind the last
};

std::unique_ptr<TokenModel> make_bpe(BpeSpec spec);

/// A piece is cut into characters; neighbours merge if together they are a token, the best score first.
struct ScoreBpeSpec {
  const TokenMap* tokens = nullptr;  // outlives the model; the tokens that may come out of merges
  std::vector<float> scores;         // by id
  std::vector<std::uint8_t> unused;  // by id: such a token is taken apart again into what merged
  ByteIds bytes{};                   // a character without a token becomes these, if all are there
  std::optional<std::int32_t> unk;   // else this
};

std::unique_ptr<TokenModel> make_score_bpe(ScoreBpeSpec spec);

}  // namespace rlx
