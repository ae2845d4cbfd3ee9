// Measures steps of integer products on one thread against the peak of the VNNI instruction (of f32 multiply-add at
// levels without it), probed in the same run: probe and product take turns, and the best of each counts. Prints lines
// of `matmul-int8 A B LEVEL MxKxN END weights W gops G peak P percent Q gbs B`; END is `plain`, or `scaled` for factors
// of rows and columns and a bias; W right operands take turns; B is how fast they are read, counting a byte a weight.
#include <fmt/core.h>
#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/levels.h"
#include "device/makers.h"
#include "ir/outline.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/scalar/scalar.h"
#include "probe.h"

namespace {

using namespace rlx;
using namespace rlx::bench;

volatile int probe_sum;

[[gnu::target("avx512vnni,avx512f,avx512bw")]] void probe_vnni() {
  __m512i sum[probe_chains];
  for (__m512i& s : sum) s = _mm512_set1_epi32(1);
  const __m512i x = _mm512_set1_epi32(0x01020304);
  for (long i = 0; i < probe_steps; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < probe_chains; ++j) sum[j] = _mm512_dpbusd_epi32(sum[j], x, x);
  }
  for (const __m512i& s : sum) probe_sum = probe_sum + _mm512_cvtsi512_si32(s);
}

// Without VNNI there is no instruction for four products: f32 multiply-add is what products compare with.
void probe_integers(Level l) { l == Level::v4b ? probe_vnni() : probe(l); }

double probe_operations(Level l) { return probe_flops(l) * (l == Level::v4b ? 4 : 1); }

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
  std::uniform_real_distribution<double> pick(d == DType::u8 ? 0 : -127, d == DType::u8 ? 255 : 127);
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (double& x : v) x = pick(random);
  store(t, v);
  return t;
}

struct Size {
  Index m, k, n;
};

// A step with memory for all that it uses.
class Runner {
 public:
  Runner(DType a, DType b, Size s, bool scaled) {
    Builder g;
    const Tensor weights = numbers(b, {s.k, s.n}, 2);
    const Value x = g.input("a", {a, {s.m, s.k}}), w = constant(g, weights);
    Value y = matmul_integer(x, w);
    std::vector<Tensor> values{numbers(a, {s.m, s.k}, 1)};
    if (scaled) {
      const Value row = g.input("row", {DType::f32, {s.m, 1}}), column = g.input("column", {DType::f32, {s.n}});
      const Value bias = g.input("bias", {DType::f32, {s.n}});
      y = cast(y, DType::f32) * row * column + bias;
      for (const Value v : {row, column, bias}) {
        std::vector<Index> shape;
        for (const Dim& d : v.type().dims) shape.push_back(d.constant());
        values.push_back(numbers(DType::f32, shape, 3));
      }
    }
    graph_ = g.finish({y});
    if (scaled) {
      std::vector<Id> root(graph_.nodes.size());
      std::iota(root.begin(), root.end(), Id{0});
      for (Id i = 0; i < root.size(); ++i) {
        if (!is_input(graph_.nodes[i]) && graph_.nodes[i].op != &constant_op) root[i] = graph_.outputs[0].node;
      }
      graph_ = outline(graph_, root);
    }
    make(values, weights);
  }
  void run() const { bound_->run({0, bound_->items()}); }

 private:
  void make(const std::vector<Tensor>& values, const Tensor& weights) {
    const Node& node = graph_.nodes[graph_.outputs[0].node];
    std::vector<Slot> in;
    std::vector<const Tensor*> held;
    for (const Operand o : node.operands) {
      const auto at = std::ranges::find(graph_.inputs, o.node);
      const bool is_weight = at == graph_.inputs.end();
      held.push_back(is_weight ? &weights : &values[static_cast<std::size_t>(at - graph_.inputs.begin())]);
      in.push_back({.buffer = static_cast<BufferId>(in.size()),
                    .type = graph_.type(o),
                    .constant = is_weight ? &weights : nullptr});
    }
    const auto result = static_cast<BufferId>(in.size());
    const Slot out[] = {{result, node.results[0]}};
    std::string why;
    std::optional<Step> step = MakerTable(cpu_maker_folders()).make({node, in, out, &why});
    require(step.has_value(), "matmul_integer declined: {}", why);
    step_ = std::move(*step);
    for (const Use& u : step_.uses) {
      const auto bytes = static_cast<std::size_t>(u.packing ? u.packing->bytes : u.bytes.constant());
      memory_.push_back(aligned(bytes));
      if (u.packing) u.packing->pack(weights, std::span(memory_.back().get(), bytes));
      if (!u.packing && u.buffer < result) std::memcpy(memory_.back().get(), held[u.buffer]->bytes().data(), bytes);
    }
    std::size_t next = 0;
    bound_ = std::make_unique<BoundStep>(step_, DimEnv{}, [&](BufferId) { return memory_[next++].get(); });
  }

  Graph graph_;
  Step step_;
  std::vector<Memory64> memory_;
  std::unique_ptr<BoundStep> bound_;
};

// Over `weights` right operands in turn: enough of them are not in a cache when their turn comes.
void measure(DType a, DType b, Size s, bool scaled, double budget, int weights = 1) {
  std::vector<std::unique_ptr<Runner>> runners;
  for (int i = 0; i < weights; ++i) runners.push_back(std::make_unique<Runner>(a, b, s, scaled));
  const double operations = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
  const int rounds = std::max(1, static_cast<int>(3e8 / operations / weights)), repeats = rounds * weights;
  double best = 1e9, best_probe = 1e9, spent = 0;
  for (int i = 0; i < 5 || spent < budget; ++i) {
    const double p = seconds([] { probe_integers(level()); }), t = seconds([&] {
                                                                 for (int r = 0; r < rounds; ++r) {
                                                                   for (const auto& w : runners) w->run();
                                                                 }
                                                               });
    best_probe = std::min(best_probe, p);
    best = std::min(best, t / repeats);
    spent += p + t;
  }
  const double rate = operations / best / 1e9, peak = probe_operations(level()) / best_probe / 1e9;
  fmt::print("matmul-int8 {} {} {} {}x{}x{} {} weights {} gops {:.1f} peak {:.1f} percent {:.1f} gbs {:.1f}\n", name(a),
             name(b), level_name(level()), s.m, s.k, s.n, scaled ? "scaled" : "plain", weights, rate, peak,
             100 * rate / peak, static_cast<double>(s.k) * static_cast<double>(s.n) / best / 1e9);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> args(arguments, arguments + count);
  if (args.size() > 3) {
    fmt::print(stderr, "usage: matmul_int8 [LEVEL [SECONDS]]\n");
    return 2;
  }
  try {
    if (args.size() > 1) force_level(parse_level(args[1].c_str()));
    const double budget = args.size() > 2 ? std::stod(args[2]) : 1;
    constexpr Size sizes[] = {{128, 128, 128},    {256, 256, 256},  {512, 512, 512},  {1024, 1024, 1024},
                              {2048, 2048, 2048}, {128, 384, 1536}, {128, 1536, 384}, {128, 384, 384},
                              {8, 384, 1536},     {4, 384, 1536},   {2, 384, 1536},   {1, 384, 1536}};
    for (const Size& s : sizes) {
      measure(DType::u8, DType::i8, s, false, budget);
      measure(DType::i8, DType::i8, s, false, budget);
      measure(DType::i8, DType::i8, s, true, budget);
    }
    for (const Size& s : {Size{1, 2048, 5632}, Size{1, 4096, 4096}}) measure(DType::i8, DType::i8, s, true, budget, 8);
  } catch (const std::exception& e) {
    fmt::print(stderr, "matmul_int8: {}\n", e.what());
    return 1;
  }
  return 0;
}
