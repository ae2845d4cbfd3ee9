// The sorted list behind PieceTable.
#include "text/piece_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.h"

namespace rlx {

PieceTable::PieceTable(std::vector<Piece> pieces, std::string_view what) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.text < b.text; });
  std::size_t total = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& p = pieces[i];
    require(!p.text.empty(), "{}: entry {} is empty, expected text", what, p.id);
    require(p.text.size() <= most_bytes, "{}: entry {} has {} bytes, at most {} are supported", what, p.id,
            p.text.size(), most_bytes);
    require(i == 0 || pieces[i - 1].text != p.text, "{}: entries {} and {} are the same text, expected distinct texts",
            what, std::min(p.id, pieces[i == 0 ? 0 : i - 1].id), std::max(p.id, pieces[i == 0 ? 0 : i - 1].id));
    ensure(p.id >= 0 && p.id <= std::numeric_limits<std::uint32_t>::max(), "a piece's id fits 32 bits");
    total += p.text.size();
  }
  bytes_.reserve(total);
  entries_.reserve(pieces.size());
  for (const Piece& p : pieces) {
    entries_.push_back({bytes_.size(), static_cast<std::uint32_t>(p.text.size()), static_cast<std::uint32_t>(p.id)});
    bytes_ += p.text;
    ++first_byte_[static_cast<unsigned char>(p.text[0]) + 1u];
  }
  for (std::size_t i = 1; i < first_byte_.size(); ++i) first_byte_[i] += first_byte_[i - 1];
}

std::optional<Index> PieceTable::find(std::string_view s) const {
  const auto it = std::partition_point(entries_.begin(), entries_.end(), [&](const Entry& e) { return text(e) < s; });
  if (it == entries_.end() || text(*it) != s) return std::nullopt;
  return it->id;
}

}  // namespace rlx
