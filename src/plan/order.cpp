// Dependencies of steps, from their uses.
#include <algorithm>

#include "plan/program.h"

namespace rlx {

std::vector<std::vector<std::uint32_t>> dependencies(const Program& program) {
  struct Last {
    std::optional<std::uint32_t> writer;
    std::vector<std::uint32_t> readers;  // since then
  };
  std::vector<Last> last(program.buffers.size());
  std::vector<std::vector<std::uint32_t>> all(program.steps.size());
  for (std::uint32_t s = 0; s < program.steps.size(); ++s) {
    std::vector<std::uint32_t>& waits = all[s];
    for (const Use& u : program.steps[s].uses) {
      const Last& l = last[program.owner(u.buffer)];
      if (l.writer) waits.push_back(*l.writer);
      if (u.access != Access::read) waits.insert(waits.end(), l.readers.begin(), l.readers.end());
    }
    std::ranges::sort(waits);
    waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
    for (const Use& u : program.steps[s].uses) {
      if (u.access == Access::read) last[program.owner(u.buffer)].readers.push_back(s);
    }
    for (const Use& u : program.steps[s].uses) {
      if (u.access == Access::read) continue;
      Last& l = last[program.owner(u.buffer)];
      l.writer = s;
      l.readers.clear();
    }
  }
  return all;
}

}  // namespace rlx
