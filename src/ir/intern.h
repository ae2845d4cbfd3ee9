// A table from hashes to ids with one cache line a look-up, for interning: entries hold half of the hash, so that ids
// are compared only when they very likely match.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace rlx {

/// Ids by hash. Open addressing with linear probing; at most half full.
class InternTable {
 public:
  /// The id under `hash` for which `same(id)`.
  template <class Same>
  std::optional<Id> find(std::size_t hash, Same same) const {
    if (slots_.empty()) return {};
    const std::uint32_t key = fold(hash);
    for (std::size_t i = key & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      const Slot& s = slots_[i];
      if (s.id == none) return {};
      if (s.key == key && same(s.id)) return s.id;
    }
  }
  void insert(std::size_t hash, Id id) {
    if (++count_ * 2 > slots_.size()) grow();
    place({fold(hash), id});
  }
  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  static constexpr Id none = ~Id{0};
  struct Slot {
    std::uint32_t key = 0;
    Id id = none;
  };

  static std::uint32_t fold(std::size_t hash) { return static_cast<std::uint32_t>(hash ^ (hash >> 32)); }
  void place(Slot slot) {
    std::size_t i = slot.key & (slots_.size() - 1);
    while (slots_[i].id != none) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
  }
  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 64 : slots_.size() * 4));
    for (const Slot& s : old) {
      if (s.id != none) place(s);
    }
  }

  std::vector<Slot> slots_;  // a power of two
  std::size_t count_ = 0;
};

}  // namespace rlx
