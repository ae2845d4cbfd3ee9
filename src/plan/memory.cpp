// Sharing in place, lifetimes, and best-fit placement.
#include "plan/memory.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/checked.h"

namespace rlx {

namespace {

constexpr Index alignment = 64;
Index aligned(Index bytes) {
  const Checked padded = Checked(bytes) + Checked(alignment - 1);
  return padded.value("a buffer of the arena") / alignment * alignment;
}

// Last use of every buffer.
std::vector<std::uint32_t> last_uses(const Program& p) {
  std::vector<std::uint32_t> last(p.buffers.size(), 0);
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    for (const Use& u : p.steps[s].uses) last[u.buffer] = s;
  }
  return last;
}

bool covers(const Program& p, const Use& u) { return u.offset == Dim(0) && u.bytes == p.buffers[u.buffer].bytes; }

// Free ranges of the arena, which grows at its end.
class FreeList {
 public:
  Index take(Index bytes) {
    const auto best = by_size_.lower_bound({bytes, 0});
    if (best != by_size_.end()) {
      const auto [size, offset] = *best;
      erase(offset, size);
      if (size > bytes) insert(offset + bytes, size - bytes);
      return offset;
    }
    // The last free range is extended when it touches the end.
    Index offset = end_;
    if (!by_offset_.empty()) {
      const auto [begin, size] = *by_offset_.rbegin();
      if (begin + size == end_) {
        erase(begin, size);
        offset = begin;
      }
    }
    end_ = (Checked(offset) + Checked(bytes)).value("the arena");
    return offset;
  }

  void give(Index offset, Index bytes) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && next->first == offset + bytes) {
      bytes += next->second;
      erase(next->first, next->second);
      next = by_offset_.lower_bound(offset);
    }
    if (next != by_offset_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        erase(before->first, before->second);
      }
    }
    insert(offset, bytes);
  }

  Index end() const { return end_; }

 private:
  void insert(Index offset, Index bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void erase(Index offset, Index bytes) {
    by_offset_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<Index, Index> by_offset_;
  std::set<std::pair<Index, Index>> by_size_;
  Index end_ = 0;
};

}  // namespace

void share_in_place(Program& p) {
  std::vector<std::uint32_t> last = last_uses(p);  // of owners: of all that share with them
  std::vector<bool> begun(p.buffers.size(), false);
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    const Step& step = p.steps[s];
    for (const InPlace& pair : step.in_place) {
      const Use &write = step.uses[pair.write], &read = step.uses[pair.read];
      const BufferId w = write.buffer, owner = p.owner(read.buffer);
      if (p.buffers[w].kind != BufferKind::arena || p.shares[w] != w || begun[w]) continue;
      if (p.buffers[owner].kind != BufferKind::arena || owner == w || last[owner] != s || read.packing) continue;
      if (!covers(p, write) || !covers(p, read) || p.buffers[owner].bytes != p.buffers[w].bytes) continue;
      // Every other use of that memory in this step must allow it too.
      bool allowed = true;
      for (std::uint32_t u = 0; u < step.uses.size(); ++u) {
        if (p.owner(step.uses[u].buffer) != owner) continue;
        allowed &=
            std::ranges::any_of(step.in_place, [&](const InPlace& o) { return o.read == u && o.write == pair.write; });
      }
      if (!allowed) continue;
      p.shares[w] = owner;
      last[owner] = std::max(last[owner], last[w]);
    }
    for (const Use& u : step.uses) begun[u.buffer] = true;
  }
}

std::vector<Lifetime> lifetimes(const Program& p) {
  std::vector<Lifetime> all(p.buffers.size());
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    for (const Use& u : p.steps[s].uses) {
      const BufferId owner = p.owner(u.buffer);
      if (p.buffers[owner].kind != BufferKind::arena) continue;
      Lifetime& l = all[owner];
      if (!l.used) l = {s, s, true};
      l.end = s;
    }
  }
  return all;
}

Placement place(const Program& p, std::span<const Lifetime> lives, std::span<const Index> bytes) {
  std::vector<std::vector<BufferId>> begins(p.steps.size()), ends(p.steps.size());
  for (BufferId b = 0; b < lives.size(); ++b) {
    if (!lives[b].used || bytes[b] == 0) continue;
    begins[lives[b].begin].push_back(b);
    ends[lives[b].end].push_back(b);
  }
  Placement plan;
  plan.offsets.assign(p.buffers.size(), 0);
  FreeList free;
  for (std::size_t s = 0; s < p.steps.size(); ++s) {
    // Largest first; by number among equals, so that a plan is always the same.
    std::ranges::sort(begins[s],
                      [&](BufferId a, BufferId b) { return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : a < b; });
    for (const BufferId b : begins[s]) plan.offsets[b] = free.take(aligned(bytes[b]));
    for (const BufferId b : ends[s]) free.give(plan.offsets[b], aligned(bytes[b]));
  }
  plan.bytes = free.end();
  return plan;
}

}  // namespace rlx
