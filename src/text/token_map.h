// A hash map from the texts of tokens to their ids, for vocabularies of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rlx {

/// A hash of bytes. The seed differs from run to run of the program, so that no file can hold texts that all collide.
std::uint64_t text_hash(std::string_view text);

/// A hash of two ids, seeded likewise.
std::uint64_t pair_hash(std::uint32_t a, std::uint32_t b);

/// Open addressing over views: the texts must outlive the map.
class TokenMap {
 public:
  TokenMap() = default;
  /// Room for `expected` entries without growing.
  explicit TokenMap(std::size_t expected) { grow(expected); }

  /// Sets the id of `text`; returns false if it had one before, which is replaced.
  bool set(std::string_view text, std::int32_t id);
  /// The id of `text`, or -1.
  std::int32_t find(std::string_view text) const;
  std::size_t size() const { return size_; }
  /// The length of the longest text.
  std::size_t most_bytes() const { return most_bytes_; }

 private:
  struct Entry {
    std::string_view text;
    std::uint32_t hash = 0;
    std::int32_t id = -1;  // -1: free
  };
  void grow(std::size_t expected);
  std::size_t place(std::string_view text, std::uint32_t hash) const;

  std::vector<Entry> entries_;
  std::size_t size_ = 0, mask_ = 0, most_bytes_ = 0;
};

/// What two neighbouring tokens merge into.
struct Merge {
  std::uint32_t rank;  // lower ones go first
  std::int32_t id;
};

/// From pairs of ids to merges.
class MergeMap {
 public:
  MergeMap() = default;
  explicit MergeMap(std::size_t expected) { grow(expected); }

  /// False if the pair is there already, which stays as it is.
  bool add(std::int32_t left, std::int32_t right, Merge merge);
  /// Replaces what a pair merges into, or adds it.
  void set(std::int32_t left, std::int32_t right, Merge merge);
  /// The merge of a pair, or nullptr.
  const Merge* find(std::int32_t left, std::int32_t right) const;

 private:
  struct Entry {
    std::int32_t left = -1, right = -1;
    Merge merge{0, -1};
  };
  void grow(std::size_t expected);
  std::size_t place(std::int32_t left, std::int32_t right) const;

  std::vector<Entry> entries_;
  std::size_t size_ = 0, mask_ = 0;
};

}  // namespace rlx
