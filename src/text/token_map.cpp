// Hash tables with linear probing, at most two thirds full.
#include "text/token_map.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <utility>

namespace rlx {

namespace {

// The two halves of a product, folded: every bit of the operands reaches every bit of the result.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32 | device()) | 1;
  }();
  return value;
}

constexpr std::uint64_t odd_a = 0x9E3779B97F4A7C15u, odd_b = 0xD6E8FEB86659FD93u;

std::size_t slots(std::size_t expected) { return std::bit_ceil(expected + expected / 2 + 8); }

}  // namespace

std::uint64_t text_hash(std::string_view text) {
  std::uint64_t h = seed() ^ text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 8; left -= 8, at += 8) {
    std::uint64_t block = 0;
    std::memcpy(&block, at, 8);
    h = mix(h ^ block, odd_a);
  }
  std::uint64_t last = 0;
  if (left > 0) std::memcpy(&last, at, left);
  return mix(h ^ last, odd_b ^ seed());
}

std::uint64_t pair_hash(std::uint32_t a, std::uint32_t b) {
  return mix((static_cast<std::uint64_t>(a) << 32 | b) ^ seed(), odd_a);
}

std::size_t TokenMap::place(std::string_view text, std::uint32_t hash) const {
  std::size_t at = hash & mask_;
  while (entries_[at].id >= 0 && (entries_[at].hash != hash || entries_[at].text != text)) at = (at + 1) & mask_;
  return at;
}

void TokenMap::grow(std::size_t expected) {
  const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(slots(expected)));
  mask_ = entries_.size() - 1;
  for (const Entry& e : old) {
    if (e.id >= 0) entries_[place(e.text, e.hash)] = e;
  }
}

bool TokenMap::set(std::string_view text, std::int32_t id) {
  if (entries_.size() < slots(size_ + 1)) grow(2 * size_ + 16);
  const auto hash = static_cast<std::uint32_t>(text_hash(text));
  Entry& e = entries_[place(text, hash)];
  const bool fresh = e.id < 0;
  size_ += fresh ? 1 : 0;
  e = {text, hash, id};
  most_bytes_ = std::max(most_bytes_, text.size());
  return fresh;
}

std::int32_t TokenMap::find(std::string_view text) const {
  if (size_ == 0) return -1;
  return entries_[place(text, static_cast<std::uint32_t>(text_hash(text)))].id;
}

std::size_t MergeMap::place(std::int32_t left, std::int32_t right) const {
  std::size_t at = pair_hash(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right)) & mask_;
  while (entries_[at].left >= 0 && (entries_[at].left != left || entries_[at].right != right)) at = (at + 1) & mask_;
  return at;
}

void MergeMap::grow(std::size_t expected) {
  const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(slots(expected)));
  mask_ = entries_.size() - 1;
  for (const Entry& e : old) {
    if (e.left >= 0) entries_[place(e.left, e.right)] = e;
  }
}

bool MergeMap::add(std::int32_t left, std::int32_t right, Merge merge) {
  if (entries_.size() < slots(size_ + 1)) grow(2 * size_ + 16);
  Entry& e = entries_[place(left, right)];
  if (e.left >= 0) return false;
  e = {left, right, merge};
  ++size_;
  return true;
}

void MergeMap::set(std::int32_t left, std::int32_t right, Merge merge) {
  if (!add(left, right, merge)) entries_[place(left, right)].merge = merge;
}

const Merge* MergeMap::find(std::int32_t left, std::int32_t right) const {
  if (size_ == 0) return nullptr;
  const Entry& e = entries_[place(left, right)];
  return e.left >= 0 ? &e.merge : nullptr;
}

}  // namespace rlx
