// Measures how the work on a graph grows with its nodes: build, print, parse, verify, gradient and the rewrites, for a
// chain and for a wide graph; all passes for layers as exporters write them. Prints `STAGE SECONDS` lines, of processor
// time; under callgrind every stage is a dump of its own.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/gradient.h"
#include "core/error.h"
#include "ir/outline.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"
#include "passes/pass.h"
#include "runtime/evaluate.h"
#include "runtime/pass_evaluator.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name)
#endif

namespace {

using namespace rlx;

// A deep graph with symbolic sizes: each value reads the one before, many read the input too.
Graph chain(std::size_t nodes) {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 512);
  Builder g;
  const Value x = g.input("x", {DType::f32, {b, s}}), y = g.input("y", {DType::f32, {b, s + 1}});
  Value v = x;
  for (int i = 0; g.graph().nodes.size() < nodes; ++i) {
    v = tanh(v);
    v = v + x;
    v = reshape(v, {b * s});
    v = sin(v) * like(v, 1.0 / (i % 100 + 2));
    v = reshape(v, {b, s});
    v = v - mean(v, {1}, true);
    if (i % 5 == 0) g.label(v, "block." + std::to_string(i));
  }
  return g.finish(std::vector{v, exp(y)}, {"deep", ""});
}

// Many branches that share one operand, summed by a tree.
Graph wide(std::size_t nodes) {
  const Dim b = Dim::symbol("B", 1, 8);
  Builder g;
  Values in;
  for (int i = 0; i < 64; ++i) in.push_back(g.input("x" + std::to_string(i), {DType::f32, {b, 2}}));
  const Value shared = tanh(in[0]);
  Values layer;
  for (std::size_t i = 0; g.graph().nodes.size() < nodes * 4 / 5; ++i) {
    const Value scaled = in[i % 64] * like(shared, static_cast<double>(i));
    layer.push_back(tanh(scaled + shared));
  }
  Values outputs(layer.begin(), layer.begin() + 100);
  while (layer.size() > 1) {
    Values next;
    for (std::size_t i = 0; i + 1 < layer.size(); i += 2) next.push_back(layer[i] + layer[i + 1]);
    if (layer.size() % 2) next.push_back(layer.back());
    layer = std::move(next);
  }
  outputs.push_back(layer[0]);
  return g.finish(outputs);
}

// Layers of what passes work on; about as many nodes stay as go.
Graph layers(std::size_t nodes) {
  Builder b;
  const Dim n = Dim::symbol("N", 1, 64);
  Value x = b.input("x", {DType::f32, {n, 4, 4}});
  for (int i = 0; b.graph().nodes.size() < nodes; ++i) {
    const Value number = constant(b, DType::f32, 1.5 + i) * constant(b, DType::f32, 2);
    x = tanh(x * number + like(x, -0.0));
    x = transpose_last(relu(transpose_last(x)) * like(x, 1));
    x = reshape(gelu(reshape(x, {n * 4, 4})), {n, 4, 4});
    x = x + matmul(x, transpose_last(exp(cast(cast(x, DType::f64), DType::f32))));
  }
  return b.finish({x});
}

// Runs of eight consecutive nodes are one group.
std::vector<Id> groups_of_eight(const Graph& g) {
  std::vector<Id> root(g.nodes.size());
  for (Id i = 0; i < root.size(); ++i) {
    root[i] = i;
    if (!is_input(g.nodes[i]) && i % 8 != 0 && !is_input(g.nodes[i - 1])) root[i] = root[i - 1];
  }
  return root;
}

void measure(const char* stage, const std::function<void()>& work, int repeats = 7) {
  double best = 0;
  const int runs = RUNNING_ON_VALGRIND ? 1 : repeats;
  for (int i = 0; i < runs; ++i) {
    CALLGRIND_ZERO_STATS;
    const std::clock_t start = std::clock();
    work();
    const double t = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    CALLGRIND_DUMP_STATS_AT(stage);
    best = i == 0 ? t : std::min(best, t);
  }
  fmt::print("{} {:.6f}\n", stage, best);
}

void run_all_passes(std::size_t nodes) {
  const Graph g = layers(nodes);
  fmt::print("nodes {}\n", g.nodes.size());
  const DeviceInfo device;
  const CompileOptions options;
  measure(
      "passes",
      [&] {
        Report report;
        PassContext context{device, options, report};
        use_reference(context);
        ensure(run_passes(g, default_passes(), context).nodes.size() < g.nodes.size(), "the passes left all nodes");
      },
      3);
}

void run(const std::string& shape, std::size_t nodes) {
  if (shape == "layers") return run_all_passes(nodes);
  const auto make = [&] { return shape == "chain" ? chain(nodes) : wide(nodes); };
  const Graph g = make();
  fmt::print("nodes {}\n", g.nodes.size());
  ConstantSink sink;
  const std::string text = print(g, &sink);
  const NamedTensors data = sink.take();
  std::vector<Tensor> inputs;
  const DimEnv dims{{"B", 1}, {"S", 2}};
  for (const Id id : g.inputs) {
    std::vector<Index> extents;
    for (const Dim& d : g.nodes[id].results[0].dims) extents.push_back(d.evaluate(dims));
    inputs.emplace_back(DType::f32, extents);
  }
  const std::vector<Id> groups = groups_of_eight(g);
  measure("build", [&] { make(); });
  measure("print", [&] {
    ConstantSink s;
    ensure(print(g, &s).size() == text.size(), "the text differs");
  });
  measure("parse", [&] { ensure(parse(text, {.data = &data}).nodes.size() == g.nodes.size(), "the graph differs"); });
  measure("verify", [&] { verify(g); });
  measure("gradient", [&] { gradient(g); });
  measure("rewrite", [&] { verify_interface(g, drop_dead(g)); });
  if (shape == "chain") measure("outline", [&] { inline_bodies(outline(g, groups)); });
  measure("evaluate", [&] { evaluate(g, inputs, {.dims = dims}); });
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> args(arguments, arguments + count);
  if (args.size() != 3 || (args[1] != "chain" && args[1] != "wide" && args[1] != "layers")) {
    fmt::print(stderr, "usage: {} chain|wide|layers NODES\n", args.empty() ? "linear" : args[0]);
    return 2;
  }
  try {
    run(args[1], std::stoul(args[2]));
  } catch (const std::exception& e) {
    fmt::print(stderr, "linear: {}\n", e.what());
    return 1;
  }
  return 0;
}
