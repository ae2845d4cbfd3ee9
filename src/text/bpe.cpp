// Merging by ranked pairs: short pieces by scanning, long ones with a heap, both in the same order.
#include "text/bpe.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"
#include "text/merge_heap.h"
#include "text/unicode.h"

namespace rlx {

namespace {

constexpr std::uint32_t no_rank = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t most_scanned = 40;  // symbols of a piece that is merged by scanning

// Pieces that were encoded before, for one text. Direct-mapped: a newer piece takes an older one's place.
class PieceCache {
 public:
  static constexpr std::size_t most_bytes = 48;

  /// Appends what `piece` became before, if it is remembered.
  bool find(std::string_view piece, std::uint64_t hash, std::vector<std::int32_t>& out) const {
    if (slots_.empty()) return false;
    const Slot& s = slots_[hash % slots_.size()];
    if (s.hash != hash || std::string_view(texts_).substr(s.text, s.bytes) != piece || s.bytes == 0) return false;
    out.insert(out.end(), ids_.begin() + s.id, ids_.begin() + s.id + s.count);
    return true;
  }
  void put(std::string_view piece, std::uint64_t hash, const std::int32_t* ids, std::size_t count) {
    if (slots_.empty() && ++asked_ < 32) return;  // a short text ends before it repeats itself
    if (slots_.empty() || texts_.size() > (1u << 20)) {
      slots_.assign(4096, {});
      texts_.clear();
      ids_.clear();
    }
    slots_[hash % slots_.size()] = {hash, static_cast<std::uint32_t>(texts_.size()),
                                    static_cast<std::uint32_t>(ids_.size()), static_cast<std::uint16_t>(piece.size()),
                                    static_cast<std::uint16_t>(count)};
    texts_ += piece;
    ids_.insert(ids_.end(), ids, ids + count);
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t text = 0, id = 0;
    std::uint16_t bytes = 0, count = 0;
  };
  std::vector<Slot> slots_;
  std::string texts_;
  std::vector<std::int32_t> ids_;
  int asked_ = 0;
};

struct BpeScratch : TokenModel::Scratch {
  std::vector<MergeSymbol> symbols;
  std::vector<MergeCandidate> heap;
  PieceCache cache;
};

class Bpe : public TokenModel {
 public:
  explicit Bpe(BpeSpec spec) : s_(std::move(spec)) {}

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<BpeScratch>(); }

  void encode(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const override {
    if (piece.empty()) return;
    if (s_.ignore_merges) {
      if (const std::int32_t id = s_.tokens->find(piece); id >= 0) return out.push_back(id);
    }
    auto& own = static_cast<BpeScratch&>(scratch);
    if (piece.size() > PieceCache::most_bytes) return encode_fresh(piece, own, out);
    const std::uint64_t hash = text_hash(piece);
    if (own.cache.find(piece, hash, out)) return;
    const std::size_t before = out.size();
    encode_fresh(piece, own, out);
    own.cache.put(piece, hash, out.data() + before, out.size() - before);
  }

 private:
  void encode_fresh(std::string_view piece, BpeScratch& own, std::vector<std::int32_t>& out) const {
    own.symbols.clear();
    s_.on_bytes ? cut_bytes(piece, own) : cut_characters(piece, own);
    if (own.symbols.size() <= most_scanned) return merge_by_scanning(own.symbols, out);
    const auto rank = [&](const MergeSymbol& a, const MergeSymbol& b) -> MergeAnswer {
      const Merge* m = s_.merges.find(a.id, b.id);
      return m == nullptr ? MergeAnswer{} : MergeAnswer{true, m->rank, m->id};
    };
    merge_by_heap(own.symbols, own.heap, rank);
    for (std::int32_t i = own.symbols.empty() ? -1 : 0; i >= 0; i = own.symbols[static_cast<std::size_t>(i)].next) {
      out.push_back(own.symbols[static_cast<std::size_t>(i)].id);
    }
  }

  void merge_by_scanning(const std::vector<MergeSymbol>& symbols, std::vector<std::int32_t>& out) const {
    std::int32_t ids[most_scanned], merged[most_scanned];
    std::uint32_t ranks[most_scanned];
    std::size_t n = symbols.size();
    const auto look = [&](std::size_t i) {
      const Merge* m = i + 1 < n ? s_.merges.find(ids[i], ids[i + 1]) : nullptr;
      ranks[i] = m == nullptr ? no_rank : m->rank;
      merged[i] = m == nullptr ? -1 : m->id;
    };
    for (std::size_t i = 0; i < n; ++i) ids[i] = symbols[i].id;
    for (std::size_t i = 0; i < n; ++i) look(i);
    while (n > 1) {
      const std::size_t best = static_cast<std::size_t>(std::min_element(ranks, ranks + n - 1) - ranks);
      if (ranks[best] == no_rank) break;
      ids[best] = merged[best];
      std::copy(ids + best + 2, ids + n, ids + best + 1);
      std::copy(ranks + best + 2, ranks + n, ranks + best + 1);
      std::copy(merged + best + 2, merged + n, merged + best + 1);
      --n;
      look(best);
      if (best > 0) look(best - 1);
    }
    out.insert(out.end(), ids, ids + n);
  }

  static void add(std::vector<MergeSymbol>& symbols, std::int32_t id, std::size_t begin, std::size_t bytes) {
    const auto place = static_cast<std::int32_t>(symbols.size());
    symbols.push_back({static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(bytes), place - 1, -1, id});
    if (place > 0) symbols[static_cast<std::size_t>(place) - 1].next = place;
  }

  void cut_bytes(std::string_view piece, BpeScratch& own) const {
    std::size_t unknown = 0;  // bytes that the waiting unk stands for
    for (std::size_t at = 0; at < piece.size(); ++at) {
      const std::int32_t id = s_.bytes[static_cast<unsigned char>(piece[at])];
      if (id < 0) {
        wait_unknown(own, at, 1, unknown);
        continue;
      }
      put_unknown(own, at, unknown);
      add(own.symbols, id, at, 1);
    }
    put_unknown(own, piece.size(), unknown);
  }

  void wait_unknown(BpeScratch& own, std::size_t at, std::size_t bytes, std::size_t& unknown) const {
    if (!s_.unk) return;
    if (!s_.fuse_unk) put_unknown(own, at, unknown);
    unknown += bytes;
  }
  void put_unknown(BpeScratch& own, std::size_t at, std::size_t& unknown) const {
    if (unknown > 0) add(own.symbols, *s_.unk, at - unknown, unknown);
    unknown = 0;
  }

  void cut_characters(std::string_view piece, BpeScratch& own) const {
    std::size_t unknown = 0;
    std::string decorated;
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      next_code_point(piece, at);
      std::string_view text = piece.substr(begin, at - begin);
      const bool prefix = begin > 0 && !s_.continuing_prefix.empty(),
                 suffix = at == piece.size() && !s_.end_suffix.empty();
      if (prefix || suffix) {
        decorated = (prefix ? s_.continuing_prefix : "") + std::string(text) + (suffix ? s_.end_suffix : "");
        text = decorated;
      }
      if (const std::int32_t id = s_.tokens->find(text); id >= 0) {
        put_unknown(own, begin, unknown);
        add(own.symbols, id, begin, at - begin);
      } else if (!(s_.byte_fallback && fall_back(text, begin, own))) {
        wait_unknown(own, begin, at - begin, unknown);
      }
    }
    put_unknown(own, piece.size(), unknown);
  }

  bool fall_back(std::string_view text, std::size_t begin, BpeScratch& own) const {
    const auto id = [&](char c) { return s_.bytes[static_cast<unsigned char>(c)]; };
    if (!std::all_of(text.begin(), text.end(), [&](char c) { return id(c) >= 0; })) return false;
    for (const char c : text) add(own.symbols, id(c), begin++, 1);
    return true;
  }

  BpeSpec s_;
};

}  // namespace

std::unique_ptr<TokenModel> make_bpe(BpeSpec spec) {
  ensure(spec.tokens != nullptr, "a BPE model has tokens");
  return std::make_unique<Bpe>(std::move(spec));
}

}  // namespace rlx
