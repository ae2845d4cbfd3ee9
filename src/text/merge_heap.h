// The merging of long pieces: a list of symbols and a heap of the pairs that may merge, O(n log n).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rlx {

/// Part of a piece that is, or is becoming, one token.
struct MergeSymbol {
  std::uint32_t begin, bytes;  // bytes is 0 once it has merged into its left neighbour
  std::int32_t prev, next;     // -1: none
  std::int32_t id;
};

struct MergeAnswer {
  bool merges = false;
  std::uint32_t rank = 0;  // the lowest goes first
  std::int32_t id = -1;    // of the result
};

struct MergeCandidate {
  std::uint64_t order;  // rank, then place
  std::uint32_t bytes;  // of both: says whether the pair is still the one that was asked about
  std::int32_t id;
};

/// Merges until nothing merges any more. `rank(left, right)` answers for neighbours; `merged(left, right, answer)`
/// hears of each merge before it happens. Symbol 0 is the first of the result; `next` leads on.
template <class Rank, class Merged>
void merge_by_heap(std::vector<MergeSymbol>& symbols, std::vector<MergeCandidate>& heap, const Rank& rank,
                   const Merged& merged) {
  const auto later = [](const MergeCandidate& a, const MergeCandidate& b) { return a.order > b.order; };
  const auto at = [&](std::int32_t i) -> MergeSymbol& { return symbols[static_cast<std::size_t>(i)]; };
  const auto candidate = [&](std::int32_t left) {
    const std::int32_t right = at(left).next;
    const MergeAnswer answer = right < 0 ? MergeAnswer{} : rank(at(left), at(right));
    if (!answer.merges) return false;
    heap.push_back({static_cast<std::uint64_t>(answer.rank) << 32 | static_cast<std::uint32_t>(left),
                    at(left).bytes + at(right).bytes, answer.id});
    return true;
  };
  heap.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) candidate(static_cast<std::int32_t>(i));
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    const MergeCandidate best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), later);
    heap.pop_back();
    const auto left = static_cast<std::int32_t>(static_cast<std::uint32_t>(best.order));
    MergeSymbol& a = at(left);
    if (a.bytes == 0 || a.next < 0 || a.bytes + at(a.next).bytes != best.bytes) continue;
    MergeSymbol& b = at(a.next);
    merged(a, b, best);
    a.bytes += b.bytes;
    a.id = best.id;
    b.bytes = 0;
    a.next = b.next;
    if (a.next >= 0) at(a.next).prev = left;
    if (candidate(left)) std::push_heap(heap.begin(), heap.end(), later);
    if (a.prev >= 0 && candidate(a.prev)) std::push_heap(heap.begin(), heap.end(), later);
  }
}

template <class Rank>
void merge_by_heap(std::vector<MergeSymbol>& symbols, std::vector<MergeCandidate>& heap, const Rank& rank) {
  merge_by_heap(symbols, heap, rank, [](const MergeSymbol&, const MergeSymbol&, const MergeCandidate&) {});
}

}  // namespace rlx
