// The names of a file's entries: unique, found by hash, and kept where they stand in the file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/json_cursor.h"

namespace rlx {

/// Numbered names in 32 bytes each. Lookup is by binary search over (hash, name), so that hostile names cost no more
/// than n log n comparisons.
class NameTable {
 public:
  std::size_t size() const { return names_.size(); }
  std::string_view operator[](std::size_t i) const { return names_[i]; }

  /// Adds a name whose bytes stay where they are.
  void add(std::string_view name) { names_.push_back(name); }
  /// Adds a name out of a JSON text that stays where it is; only names with escapes are copied.
  void add(const JsonString& name);
  /// Makes the names findable. The number of a name that is there twice (the later one), if there is any.
  std::optional<std::size_t> seal();
  /// After seal().
  std::optional<std::size_t> find(std::string_view name) const;

 private:
  std::vector<std::string_view> names_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_hash_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // the decoded names
  char* free_ = nullptr;
  std::size_t room_ = 0;
};

}  // namespace rlx
