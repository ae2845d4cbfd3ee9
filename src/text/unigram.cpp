// Unigram by dynamic programming over bytes; WordPiece and whole words, which need no search.
#include "text/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "text/unicode.h"

namespace rlx {

namespace {

class Unigram : public TokenModel {
 public:
  explicit Unigram(UnigramSpec spec) : s_(std::move(spec)) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const double score : s_.scores) lowest = std::min(lowest, score);
    unknown_score_ = lowest - 10;
  }

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<Own>(); }

  void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const override {
    auto& own = static_cast<Own&>(scratch);
    search(piece, own.best);
    own.path.clear();
    for (std::size_t at = piece.size(); at > 0; at = own.best[at].from) own.path.push_back(at);
    std::size_t unknown = 0;  // where the run of characters without token began; npos: none runs
    bool runs = false;
    for (auto it = own.path.rbegin(); it != own.path.rend(); ++it) {
      const Node& n = own.best[*it];
      if (n.id < 0) {
        if (!runs) unknown = n.from;
        runs = true;
        continue;
      }
      if (runs) put_unknown(piece.substr(unknown, n.from - unknown), out);
      runs = false;
      out.push_back(n.id);
    }
    if (runs) put_unknown(piece.substr(unknown), out);
  }

 private:
  struct Node {
    double score = 0;
    std::size_t from = 0;
    std::int32_t id = -1;
    bool reached = false;
  };
  struct Own : Scratch {
    std::vector<Node> best;
    std::vector<std::size_t> path;
  };

  double sum(double a, double b) const {
    return s_.float_sums ? static_cast<double>(static_cast<float>(a) + static_cast<float>(b)) : a + b;
  }

  void search(std::string_view piece, std::vector<Node>& best) const {
    best.assign(piece.size() + 1, {});
    for (std::size_t at = 0; at < piece.size();) {
      std::size_t next = at;
      next_code_point(piece, next);
      const double here = best[at].score;
      const auto offer = [&](std::size_t to, double score, std::int32_t id) {
        const double total = sum(score, here);
        if (!best[to].reached || total > best[to].score) best[to] = {total, at, id, true};
      };
      bool single = false;
      s_.pieces.prefixes(piece.substr(at), [&](const PieceTable::Match& m) {
        offer(at + m.bytes, s_.scores[static_cast<std::size_t>(m.id)], static_cast<std::int32_t>(m.id));
        single = single || at + m.bytes == next;
      });
      if (!single) offer(next, unknown_score_, -1);
      at = next;
    }
  }

  void put_unknown(std::string_view text, std::vector<std::int32_t>& out) const {
    // The run may be a token itself that lost to its parts.
    if (const std::optional<Index> id = s_.float_sums ? std::nullopt : s_.pieces.find(text))
      return out.push_back(static_cast<std::int32_t>(*id));
    const auto byte = [&](char c) { return s_.bytes[static_cast<unsigned char>(c)]; };
    if (s_.byte_fallback && std::all_of(text.begin(), text.end(), [&](char c) { return byte(c) >= 0; })) {
      for (const char c : text) out.push_back(byte(c));
    } else {
      require(s_.unk.has_value(), "a character has no token, and the vocabulary has none for unknown ones");
      out.push_back(*s_.unk);
    }
  }

  UnigramSpec s_;
  double unknown_score_ = 0;
};

class WordPieceModel : public TokenModel {
 public:
  explicit WordPieceModel(WordPieceModelSpec spec) : s_(std::move(spec)) {}

  void encode(std::string_view word, Scratch&, std::vector<std::int32_t>& out) const override {
    const std::size_t start = out.size();
    const auto count =
        std::count_if(word.begin(), word.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    bool known = count <= s_.max_word_characters;
    for (std::size_t at = 0; known && at < word.size();) {
      const std::optional<PieceTable::Match> piece = (at == 0 ? s_.heads : s_.tails).longest(word.substr(at));
      known = piece.has_value();
      if (!known) break;
      out.push_back(static_cast<std::int32_t>(piece->id));
      at += piece->bytes;
    }
    if (known) return;
    out.resize(start);
    out.push_back(s_.unk);
  }

 private:
  WordPieceModelSpec s_;
};

class WordLevel : public TokenModel {
 public:
  WordLevel(const TokenMap& tokens, std::optional<std::int32_t> unk) : tokens_(tokens), unk_(unk) {}

  void encode(std::string_view piece, Scratch&, std::vector<std::int32_t>& out) const override {
    const std::int32_t id = tokens_.find(piece);
    if (id >= 0 || unk_) out.push_back(id >= 0 ? id : *unk_);
  }

 private:
  const TokenMap& tokens_;
  std::optional<std::int32_t> unk_;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(UnigramSpec spec) { return std::make_unique<Unigram>(std::move(spec)); }
std::unique_ptr<TokenModel> make_wordpiece(WordPieceModelSpec spec) {
  return std::make_unique<WordPieceModel>(std::move(spec));
}
std::unique_ptr<TokenModel> make_word_level(const TokenMap& tokens, std::optional<std::int32_t> unk) {
  return std::make_unique<WordLevel>(tokens, unk);
}

}  // namespace rlx
