// Measures steps of integer products on one thread against the peak of the VNNI instruction (of f32 multiply-add at
// levels without it), probed in the same run: probe and product take turns, and the best of each counts. Prints lines
// of `matmul-int8 A B LEVEL MxKxN END weights W gops G peak P percent Q gbs B`; END is `plain`, or `scaled` for factors
// of rows and columns and a bias; W right operands take turns; B is how fast they are read, counting a byte a weight.
#include <fmt/core.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "ir/outline.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/scalar/scalar.h"
#include "step_runner.h"

namespace {

using namespace rlx;
using namespace rlx::bench;

struct Size {
  Index m, k, n;
};

Tensor codes(DType d, std::vector<Index> shape, unsigned seed) {
  return random_tensor(d, std::move(shape), d == DType::u8 ? 0 : -127, d == DType::u8 ? 255 : 127, seed);
}

// All computing nodes as one.
Graph as_one(const Graph& g) {
  std::vector<Id> root(g.nodes.size());
  std::iota(root.begin(), root.end(), Id{0});
  for (Id i = 0; i < root.size(); ++i) {
    if (!is_input(g.nodes[i]) && g.nodes[i].op != &constant_op) root[i] = g.outputs[0].node;
  }
  return outline(g, root);
}

std::unique_ptr<StepRunner> runner(DType a, DType b, Size s, bool scaled) {
  const Tensor left = codes(a, {s.m, s.k}, 1), weights = codes(b, {s.k, s.n}, 2);
  const Tensor row = codes(DType::f32, {s.m, 1}, 3), column = codes(DType::f32, {s.n}, 3);
  Builder g;
  const Value x = g.input("a", left.type()), w = constant(g, weights);
  std::vector<const Tensor*> values{&left};
  const auto input = [&](const char* name, const Tensor& t) {
    const Value v = g.input(name, t.type());
    values.push_back(&t);
    return v;
  };
  Value y = matmul_integer(x, w);
  if (scaled) {
    const Value r = input("row", row), c = input("column", column), bias = input("bias", column);
    y = cast(y, DType::f32) * r * c + bias;
  }
  Graph graph = g.finish({y});
  if (scaled) graph = as_one(graph);
  // Operands of the node in its own order; inputs are told apart by their place among those of the graph.
  std::vector<RunnerOperand> operands;
  for (const Operand o : graph.nodes[graph.outputs[0].node].operands) {
    const auto at = std::ranges::find(graph.inputs, o.node) - graph.inputs.begin();
    const bool is_input_of_graph = at < std::ssize(graph.inputs);
    operands.push_back(is_input_of_graph ? RunnerOperand{values[static_cast<std::size_t>(at)]}
                                         : RunnerOperand{&weights, true});
  }
  return std::make_unique<StepRunner>(std::move(graph), operands);
}

// Over `weights` right operands in turn: enough of them are not in a cache when their turn comes.
void measure(DType a, DType b, Size s, bool scaled, double budget, int weights = 1) {
  std::vector<std::unique_ptr<StepRunner>> runners;
  for (int i = 0; i < weights; ++i) runners.push_back(runner(a, b, s, scaled));
  const double operations = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.k) * static_cast<double>(s.n);
  const auto [best, best_probe] =
      best_times(runners, std::max(1, static_cast<int>(3e8 / operations / weights)), budget, &MachinePeaks::i8);
  const double rate = operations / best / 1e9, peak = probe_flops(level(), &MachinePeaks::i8) / best_probe / 1e9;
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
