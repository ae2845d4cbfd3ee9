// Runs the step of one node in memory of its own, and times it in turn with the peak of multiply-add.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "device/makers.h"
#include "probe.h"

namespace rlx::bench {

/// Evenly distributed numbers; integers are cut towards 0.
inline Tensor random_tensor(DType d, std::vector<Index> shape, double low, double high, unsigned seed) {
  Tensor t(d, std::move(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> pick(low, high);
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (double& x : v) x = pick(random);
  store(t, v);
  return t;
}

struct FreeMemory {
  void operator()(std::byte* p) const { std::free(p); }
};
using LargePages = std::unique_ptr<std::byte, FreeMemory>;

/// Memory in large pages, as the runtime's weights and arenas have it.
inline LargePages large_pages(std::size_t bytes) {
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t room = (bytes + page) / page * page;
  LargePages memory(static_cast<std::byte*>(std::aligned_alloc(page, room)));
  require(memory != nullptr, "no memory of {} bytes", room);
  ::madvise(memory.get(), room, MADV_HUGEPAGE);
  return memory;
}

/// An operand of the node: its values, and whether the step knows them as a constant.
struct RunnerOperand {
  const Tensor* values;
  bool constant = false;
};

/// The step of the node that makes the first output of a graph. All memory but that of constants is that of `shared`,
/// if there is one: a runner of an equal graph.
class StepRunner {
 public:
  StepRunner(Graph g, std::span<const RunnerOperand> operands, const StepRunner* shared = nullptr)
      : graph_(std::move(g)) {
    const Node& node = graph_.nodes[graph_.outputs[0].node];
    std::vector<Slot> in;
    for (const RunnerOperand& o : operands) {
      in.push_back({.buffer = static_cast<BufferId>(in.size()),
                    .type = o.values->type(),
                    .constant = o.constant ? o.values : nullptr});
    }
    const auto result = static_cast<BufferId>(in.size());
    const Slot out[] = {{result, node.results[0]}};
    std::string why;
    std::optional<Step> step = MakerTable(cpu_maker_folders()).make({node, in, out, &why});
    require(step.has_value(), "the step is declined: {}", why);
    step_ = std::move(*step);
    std::vector<std::byte*> places;
    for (const Use& u : step_.uses) {
      const RunnerOperand* const o = u.buffer < result ? &operands[u.buffer] : nullptr;
      if (shared && !(o && o->constant)) {
        memory_.push_back(nullptr);
        places.push_back(shared->places_[places.size()]);
        continue;
      }
      const auto bytes = static_cast<std::size_t>(u.packing ? u.packing->bytes : u.bytes.constant());
      places.push_back(memory_.emplace_back(large_pages(bytes)).get());
      if (u.packing) {
        u.packing->pack(*o->values, std::span(places.back(), bytes));
      } else if (o) {
        std::memcpy(places.back(), o->values->bytes().data(), bytes);
      }
    }
    places_ = std::move(places);
    std::size_t next = 0;
    bound_ = std::make_unique<BoundStep>(step_, DimEnv{}, [&](BufferId) { return places_[next++]; });
  }
  void run() const { bound_->run({0, bound_->items()}); }
  /// One of so many equal parts.
  void run_part(Index part, Index parts) const {
    const Index n = bound_->items();
    bound_->run({n * part / parts, n * (part + 1) / parts});
  }

 private:
  Graph graph_;
  Step step_;
  std::vector<LargePages> memory_;
  std::vector<std::byte*> places_;  // one a use of the step
  std::unique_ptr<BoundStep> bound_;
};

/// The best times of one thread, in seconds.
struct BestTimes {
  double run = 1e9, probe = 1e9;
};

/// Runs all of `runners` in turn, `rounds` times, and the probe of `type`, alternating for `budget` seconds; `run` is
/// the time of one runner.
inline BestTimes best_times(const std::vector<std::unique_ptr<StepRunner>>& runners, int rounds, double budget,
                            MultiplyAddPeak MachinePeaks::* type = &MachinePeaks::f32) {
  BestTimes best;
  double spent = 0;
  for (int i = 0; i < 5 || spent < budget; ++i) {
    const double start = thread_seconds();
    probe(level(), type);
    const double middle = thread_seconds();
    for (int r = 0; r < rounds; ++r) {
      for (const auto& one : runners) one->run();
    }
    const double end = thread_seconds();
    best.probe = std::min(best.probe, middle - start);
    best.run = std::min(best.run, (end - middle) / rounds / static_cast<double>(runners.size()));
    spent += end - start;
  }
  return best;
}

}  // namespace rlx::bench
