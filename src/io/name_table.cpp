// Names found by hash.
#include "io/name_table.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace rlx {

void NameTable::add(const JsonString& name) {
  if (!name.escaped) return add(name.raw);
  constexpr std::size_t block = 1 << 16;
  if (name.raw.size() > room_) {
    room_ = std::max(name.raw.size(), block);
    blocks_.push_back(std::unique_ptr<char[]>(new char[room_]));
    free_ = blocks_.back().get();
  }
  const std::size_t size = name.decode(free_);
  add(std::string_view(free_, size));
  free_ += size;
  room_ -= size;
}

std::optional<std::size_t> NameTable::seal() {
  by_hash_.reserve(names_.size());
  for (std::size_t i = 0; i < names_.size(); ++i) {
    by_hash_.emplace_back(std::hash<std::string_view>{}(names_[i]), static_cast<std::uint32_t>(i));
  }
  std::sort(by_hash_.begin(), by_hash_.end(), [this](const auto& a, const auto& b) {
    return std::tie(a.first, names_[a.second], a.second) < std::tie(b.first, names_[b.second], b.second);
  });
  std::optional<std::size_t> twice;
  for (std::size_t i = 1; i < by_hash_.size(); ++i) {
    const auto &a = by_hash_[i - 1], &b = by_hash_[i];
    if (a.first == b.first && names_[a.second] == names_[b.second] && (!twice || b.second < *twice)) twice = b.second;
  }
  return twice;
}

std::optional<std::size_t> NameTable::find(std::string_view name) const {
  const std::uint64_t hash = std::hash<std::string_view>{}(name);
  const auto it = std::lower_bound(by_hash_.begin(), by_hash_.end(), name, [&](const auto& row, std::string_view n) {
    return row.first != hash ? row.first < hash : names_[row.second] < n;
  });
  if (it == by_hash_.end() || it->first != hash || names_[it->second] != name) return std::nullopt;
  return it->second;
}

}  // namespace rlx
