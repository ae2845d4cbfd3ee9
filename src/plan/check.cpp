// The plan checker: works from uses, knows nothing of how the plan was made.
#include <algorithm>
#include <map>

#include "core/error.h"
#include "plan/memory.h"

namespace rlx {

namespace {

[[noreturn]] void broken(const std::string& what) { throw InternalError("memory plan: " + what); }

struct Interval {
  Index begin = 0, end = 0;
  std::uint32_t first = 0, last = 0;
  bool used = false;
};

// Every buffer has its own interval, shared memory or not; two that share must not be live together.
std::vector<Interval> intervals(const Program& p, const Placement& plan, std::span<const Index> bytes) {
  std::vector<Interval> all(p.buffers.size());
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    for (const Use& u : p.steps[s].uses) {
      const BufferId owner = p.owner(u.buffer);
      if (p.buffers[owner].kind != BufferKind::arena) continue;
      Interval& i = all[u.buffer];
      if (!i.used) i = {plan.offsets[owner], plan.offsets[owner] + bytes[u.buffer], s, s, true};
      i.last = s;
    }
  }
  return all;
}

bool declared(const Step& step, BufferId written, BufferId read) {
  bool any = false;
  for (std::uint32_t u = 0; u < step.uses.size(); ++u) {
    if (step.uses[u].buffer != read) continue;
    any = true;
    if (std::ranges::none_of(step.in_place,
                             [&](const InPlace& i) { return i.read == u && step.uses[i.write].buffer == written; }))
      return false;
  }
  return any;
}

void check_uses(const Program& p, std::span<const Index> bytes, const DimEnv& dims) {
  std::vector<bool> written(p.buffers.size(), false);
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    for (const Use& u : p.steps[s].uses) {
      const BufferKind kind = p.buffers[u.buffer].kind;
      if (u.access == Access::write || u.access == Access::scratch) written[u.buffer] = true;
      const bool given = kind == BufferKind::input || kind == BufferKind::constant || kind == BufferKind::state;
      if (!given && !written[u.buffer])
        broken(fmt::format("step {} ({}) reads buffer {} before it is written", s, p.steps[s].name, u.buffer));
      if (u.access != Access::read && (kind == BufferKind::input || kind == BufferKind::constant))
        broken(fmt::format("step {} ({}) writes buffer {}, which is read only", s, p.steps[s].name, u.buffer));
      const Index offset = u.offset.evaluate(dims), size = u.bytes.evaluate(dims);
      const bool runs = p.steps[s].items.evaluate(dims) > 0;  // strided uses of nothing claim one element
      if (runs && !u.packing && size > 0 && bytes[u.buffer] > 0 && (offset < 0 || offset + size > bytes[u.buffer]))
        broken(fmt::format("step {} ({}) uses bytes {}..{} of buffer {}, which has {}", s, p.steps[s].name, offset,
                           offset + size, u.buffer, bytes[u.buffer]));
    }
  }
}

}  // namespace

void check_plan(const Program& p, const Placement& plan, std::span<const Index> bytes, const DimEnv& dims) {
  check_uses(p, bytes, dims);
  const std::vector<Interval> all = intervals(p, plan, bytes);
  std::vector<std::vector<BufferId>> begins(p.steps.size()), ends(p.steps.size());
  for (BufferId b = 0; b < all.size(); ++b) {
    if (!all[b].used || all[b].begin == all[b].end) continue;
    if (all[b].begin < 0 || all[b].end > plan.bytes) broken(fmt::format("buffer {} leaves the arena", b));
    begins[all[b].first].push_back(b);
    ends[all[b].last].push_back(b);
  }
  std::map<Index, BufferId> live;  // by offset; disjoint
  const auto remove = [&](BufferId b) {
    const auto it = live.find(all[b].begin);
    if (it != live.end() && it->second == b) live.erase(it);
  };
  for (std::uint32_t s = 0; s < p.steps.size(); ++s) {
    for (const BufferId b : begins[s]) {
      for (;;) {
        auto it = live.lower_bound(all[b].end);
        if (it == live.begin()) break;
        const BufferId other = std::prev(it)->second;
        if (all[other].end <= all[b].begin) break;
        // They meet in this step: allowed where the older one ends here and the step says so.
        if (all[other].last != s || !declared(p.steps[s], b, other))
          broken(fmt::format("buffers {} and {} overlap at step {} ({})", other, b, s, p.steps[s].name));
        live.erase(all[other].begin);
      }
      live.emplace(all[b].begin, b);
    }
    for (const BufferId b : ends[s]) remove(b);
  }
}

}  // namespace rlx
