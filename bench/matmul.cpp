// Measures matmul steps on one thread against the peak of multiply-add of the same level, probed in the same run:
// probe and product take turns, and the best of each counts. Prints lines of `matmul TYPE LEVEL MxKxN RIGHT gflops G
// peak P percent Q`; RIGHT is `packed` for a constant, `loose` for an operand that the step packs itself.
#include "ops/matmul/matmul.h"

#include <fmt/core.h>

#include <memory>
#include <string>
#include <vector>

#include "ops/constant/constant.h"
#include "step_runner.h"

namespace {

using namespace rlx;
using namespace rlx::bench;

struct Size {
  Index m, k, n;
};

// Over `weights` right operands in turn: enough of them are not in a cache when their turn comes. They share the left
// operand and the result.
void measure(DType d, Size s, bool packed, double budget, int weights = 1) {
  const Tensor left = random_tensor(d, {s.m, s.k}, -1, 1, 1);
  std::vector<std::unique_ptr<StepRunner>> runners;
  for (int i = 0; i < weights; ++i) {
    const Tensor right = random_tensor(d, {s.k, s.n}, -1, 1, 2 + static_cast<unsigned>(i));
    Builder g;
    const Value x = g.input("a", left.type()), y = packed ? constant(g, right) : g.input("b", right.type());
    const RunnerOperand operands[] = {{&left}, {&right, packed}};
    runners.push_back(
        std::make_unique<StepRunner>(g.finish({matmul(x, y)}), operands, i == 0 ? nullptr : runners.front().get()));
  }
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
  const auto [best, best_probe] = best_times(runners, std::max(1, static_cast<int>(3e8 / flops / 4 / weights)), budget);
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
