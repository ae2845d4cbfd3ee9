// Measures matmul steps on one thread against the peak of multiply-add of the same level, probed in the same run:
// probe and product take turns, and the best of each counts. Prints lines of `matmul TYPE LEVEL MxKxN RIGHT gflops G
// peak P percent Q`; RIGHT is `packed` for a constant, `loose` for an operand that the step packs itself.
#include "ops/matmul/matmul.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/levels.h"
#include "device/makers.h"
#include "ops/constant/constant.h"
#include "probe.h"

namespace {

using namespace rlx;
using namespace rlx::bench;

double seconds(const std::function<void()>& work) {
  const double start = thread_seconds();
  work();
  return thread_seconds() - start;
}

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};
using Memory64 = std::unique_ptr<std::byte, Free>;

// Large pages, as the runtime's weights and arenas have them.
Memory64 aligned(std::size_t bytes) {
  constexpr std::size_t page = std::size_t{2} << 20;
  const std::size_t room = (bytes + page) / page * page;
  Memory64 memory(static_cast<std::byte*>(std::aligned_alloc(page, room)));
  ::madvise(memory.get(), room, MADV_HUGEPAGE);
  return memory;
}

Tensor numbers(DType d, std::vector<Index> shape, unsigned seed) {
  Tensor t(d, std::move(shape));
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> pick(-1, 1);
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (double& x : v) x = pick(random);
  store(t, v);
  return t;
}

// A step with memory for all that it uses; the left operand and the result are those of `shared`, if there is one.
class Runner {
 public:
  Runner(const Tensor& a, const Tensor& b, bool packed, const Runner* shared = nullptr) {
    Builder g;
    const Value x = g.input("a", a.type()), y = packed ? constant(g, b) : g.input("b", b.type());
    graph_ = g.finish({matmul(x, y)});
    const Node& node = graph_.nodes[graph_.outputs[0].node];
    const Slot in[] = {{0, a.type()}, {.buffer = 1, .type = b.type(), .constant = packed ? &b : nullptr}};
    const Slot out[] = {{2, node.results[0]}};
    std::string why;
    std::optional<Step> step = MakerTable(cpu_maker_folders()).make({node, in, out, &why});
    require(step.has_value(), "matmul declined: {}", why);
    step_ = std::move(*step);
    for (const Use& u : step_.uses) {
      const auto bytes = static_cast<std::size_t>(u.packing ? u.packing->bytes : u.bytes.constant());
      memory_.push_back(aligned(bytes));
      if (u.packing) u.packing->pack(b, std::span(memory_.back().get(), bytes));
      if (!u.packing && u.buffer < 2) std::memcpy(memory_.back().get(), (u.buffer == 0 ? a : b).bytes().data(), bytes);
    }
    std::size_t next = 0;
    bound_ = std::make_unique<BoundStep>(step_, DimEnv{}, [&](BufferId id) {
      const std::size_t i = next++;
      return (shared && id != 1 ? shared->memory_ : memory_)[i].get();
    });
  }
  void run() const { bound_->run({0, bound_->items()}); }

 private:
  Graph graph_;
  Step step_;
  std::vector<Memory64> memory_;
  std::unique_ptr<BoundStep> bound_;
};

struct Size {
  Index m, k, n;
};

// Over `weights` right operands in turn: enough of them are not in a cache when their turn comes.
void measure(DType d, Size s, bool packed, double budget, int weights = 1) {
  const Tensor left = numbers(d, {s.m, s.k}, 1);
  std::vector<std::unique_ptr<Runner>> runners;
  for (int i = 0; i < weights; ++i)
    runners.push_back(std::make_unique<Runner>(left, numbers(d, {s.k, s.n}, 2 + static_cast<unsigned>(i)), packed,
                                               i == 0 ? nullptr : runners.front().get()));
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
  const int rounds = std::max(1, static_cast<int>(3e8 / flops / 4 / weights)), repeats = rounds * weights;
  double best = 1e9, best_probe = 1e9, spent = 0;
  for (int i = 0; i < 5 || spent < budget; ++i) {
    const double p = seconds([] { probe(level()); }), t = seconds([&] {
                                                        for (int r = 0; r < rounds; ++r) {
                                                          for (const auto& w : runners) w->run();
                                                        }
                                                      });
    best_probe = std::min(best_probe, p);
    best = std::min(best, t / repeats);
    spent += p + t;
  }
  const double rate = flops / best / 1e9, peak = probe_flops(level()) / best_probe / 1e9;
  const double bytes = static_cast<double>(s.k) * static_cast<double>(s.n) * static_cast<double>(storage_bytes(d, 1));
  fmt::print("matmul {} {} {}x{}x{} {} weights {} gflops {:.1f} peak {:.1f} percent {:.1f} gbs {:.1f}\n", name(d),
             level_name(level()), s.m, s.k, s.n, packed ? "packed" : "loose", weights, rate, peak, 100 * rate / peak,
             bytes / best / 1e9);
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> args(arguments, arguments + count);
  if (args.size() > 3) {
    fmt::print(stderr, "usage: matmul [LEVEL [SECONDS]]\n");
    return 2;
  }
  try {
    if (args.size() > 1) force_level(parse_level(args[1].c_str()));
    const double budget = args.size() > 2 ? std::stod(args[2]) : 1;
    constexpr Size sizes[] = {{2048, 2048, 2048}, {1024, 1024, 1024}, {512, 512, 512},  {256, 256, 256},
                              {128, 128, 128},    {64, 64, 64},       {128, 384, 1536}, {128, 1536, 384},
                              {128, 384, 384},    {128, 384, 1152},   {8, 384, 1536},   {4, 384, 1536},
                              {2, 384, 1536},     {1, 384, 1536}};
    for (const Size& s : sizes) {
      measure(DType::f32, s, true, budget);
      measure(DType::f32, s, false, budget);
    }
    for (const Size& s : {Size{128, 384, 1536}, Size{128, 1536, 384}, Size{16, 384, 1536}, Size{1, 384, 1536}})
      measure(DType::f32, s, true, budget, 32);
    for (const Size& s : {Size{1, 2048, 5632}, Size{1, 4096, 4096}}) measure(DType::f32, s, true, budget, 4);
    for (const DType d : {DType::bf16, DType::f16, DType::f64}) {
      measure(d, {512, 512, 512}, true, budget);
      measure(d, {128, 384, 1536}, true, budget);
      measure(d, {1, 384, 1536}, true, budget);
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "matmul: {}\n", e.what());
    return 1;
  }
  return 0;
}
