// A set of strings with ids that finds the longest one a text starts with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/index.h"

namespace rlx {

/// Longest-prefix look-up in a sorted list: little memory, and time that grows with the match, not with the text.
class PieceTable {
 public:
  /// The longest piece there can be, in bytes: bounds the time of a look-up.
  static constexpr std::size_t most_bytes = 1024;

  struct Piece {
    std::string_view text;
    Index id;
  };
  struct Match {
    std::size_t bytes;
    Index id;
  };

  PieceTable() = default;
  /// Pieces must differ, not be empty and not exceed `most_bytes`; an Error names `what` and the piece otherwise.
  PieceTable(std::vector<Piece> pieces, std::string_view what);

  /// The longest piece that `text` starts with.
  std::optional<Match> longest(std::string_view text) const {
    std::optional<Match> best;
    prefixes(text, [&](const Match& m) { best = m; });
    return best;
  }
  /// Calls `found` for every piece that `text` starts with, shorter ones first.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const;
  /// The id of the piece that equals `text`.
  std::optional<Index> find(std::string_view text) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::uint64_t offset;
    std::uint32_t bytes;
    std::uint32_t id;
  };
  std::string_view text(const Entry& e) const { return std::string_view(bytes_).substr(e.offset, e.bytes); }

  std::string bytes_;
  std::vector<Entry> entries_;                 // sorted by text
  std::array<std::size_t, 257> first_byte_{};  // where the entries of each first byte start
};

template <class Found>
void PieceTable::prefixes(std::string_view s, const Found& found) const {
  if (s.empty()) return;
  const auto first = static_cast<unsigned char>(s[0]);
  auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first_byte_[first]);
  auto end = entries_.begin() + static_cast<std::ptrdiff_t>(first_byte_[first + 1u]);
  // All entries of [begin, end) start with the first `depth` bytes of s; the one that is no longer sorts first.
  for (std::size_t depth = 1; begin != end; ++depth) {
    if (begin->bytes == depth) {
      found(Match{depth, begin->id});
      ++begin;
    }
    if (depth == s.size()) break;
    const auto c = static_cast<unsigned char>(s[depth]);
    const auto at = [&](const Entry& e) { return static_cast<unsigned char>(bytes_[e.offset + depth]); };
    begin = std::partition_point(begin, end, [&](const Entry& e) { return at(e) < c; });
    end = std::partition_point(begin, end, [&](const Entry& e) { return at(e) == c; });
  }
}

}  // namespace rlx
