// Merging by the scores of what comes out: the byte-pair encoding of SentencePiece.
#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "text/bpe.h"
#include "text/merge_heap.h"
#include "text/unicode.h"

namespace rlx {

namespace {

struct ScoreScratch : TokenModel::Scratch {
  std::vector<MergeSymbol> symbols;
  std::vector<MergeCandidate> heap;
  std::unordered_map<std::string_view, std::size_t> parts;  // of an unused token: bytes of the left one
};

// Ascending where scores descend.
std::uint32_t rank_of(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 equals 0
  const std::uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

class ScoreBpe : public TokenModel {
 public:
  explicit ScoreBpe(ScoreBpeSpec spec, std::size_t most_bytes) : s_(std::move(spec)), most_bytes_(most_bytes) {}

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<ScoreScratch>(); }

  void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const override {
    auto& own = static_cast<ScoreScratch&>(scratch);
    own.symbols.clear();
    own.parts.clear();
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      next_code_point(piece, at);
      const auto place = static_cast<std::int32_t>(own.symbols.size());
      own.symbols.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(at - begin), place - 1,
                             at < piece.size() ? place + 1 : -1, -1});
    }
    const auto text = [&](const MergeSymbol& a, const MergeSymbol& b) {
      return piece.substr(a.begin, std::size_t{a.bytes} + b.bytes);
    };
    const auto rank = [&](const MergeSymbol& a, const MergeSymbol& b) -> MergeAnswer {
      if (std::size_t{a.bytes} + b.bytes > most_bytes_) return {};
      const std::int32_t id = s_.tokens->find(text(a, b));
      return id < 0 ? MergeAnswer{} : MergeAnswer{true, rank_of(s_.scores[static_cast<std::size_t>(id)]), id};
    };
    merge_by_heap(own.symbols, own.heap, rank,
                  [&](const MergeSymbol& a, const MergeSymbol& b, const MergeCandidate& merged) {
                    if (is_unused(merged.id)) own.parts[text(a, b)] = a.bytes;
                  });
    bool after_unknown = false;
    for (std::int32_t i = own.symbols.empty() ? -1 : 0; i >= 0; i = own.symbols[static_cast<std::size_t>(i)].next) {
      const MergeSymbol& s = own.symbols[static_cast<std::size_t>(i)];
      put(piece.substr(s.begin, s.bytes), own, out, after_unknown);
    }
  }

 private:
  bool is_unused(std::int32_t id) const { return !s_.unused.empty() && s_.unused[static_cast<std::size_t>(id)] != 0; }

  void put(std::string_view text, const ScoreScratch& own, std::vector<std::int32_t>& out, bool& after_unknown) const {
    std::vector<std::string_view> todo{text};  // the next one last
    while (!todo.empty()) {
      const std::string_view part = todo.back();
      todo.pop_back();
      const std::int32_t id = s_.tokens->find(part);
      const auto cut = id >= 0 && is_unused(id) ? own.parts.find(part) : own.parts.end();
      if (cut != own.parts.end()) {
        todo.push_back(part.substr(cut->second));
        todo.push_back(part.substr(0, cut->second));
      } else if (id >= 0) {
        out.push_back(id);
        after_unknown = false;
      } else {
        put_unknown(part, out, after_unknown);
      }
    }
  }

  void put_unknown(std::string_view part, std::vector<std::int32_t>& out, bool& after_unknown) const {
    const auto byte = [&](char c) { return s_.bytes[static_cast<unsigned char>(c)]; };
    if (std::all_of(part.begin(), part.end(), [&](char c) { return byte(c) >= 0; })) {
      for (const char c : part) out.push_back(byte(c));
      after_unknown = false;
    } else {
      if (s_.unk && !after_unknown) out.push_back(*s_.unk);
      after_unknown = true;
    }
  }

  ScoreBpeSpec s_;
  std::size_t most_bytes_;
};

}  // namespace

std::unique_ptr<TokenModel> make_score_bpe(ScoreBpeSpec spec) {
  ensure(spec.tokens != nullptr, "a BPE model has tokens");
  return std::make_unique<ScoreBpe>(std::move(spec), spec.tokens->most_bytes());
}

}  // namespace rlx
