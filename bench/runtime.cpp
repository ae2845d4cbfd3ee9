// What a run costs beside its kernels, and what a program needs: lines of `name value`.
// Usage: rlx_bench_runtime scalar | compile NODES | lengths MODEL_DIR RUNS | memory MODEL_DIR
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "all_ops.h"
#include "backend/cpu/cpu_device.h"
#include "models/sentence.h"

using namespace rlx;

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Proportional set size of this process in bytes.
double proportional_set_size() {
  std::ifstream file("/proc/self/smaps_rollup");
  for (std::string word; file >> word;) {
    if (word == "Pss:") {
      double kilobytes = 0;
      file >> kilobytes;
      return kilobytes * 1024;
    }
  }
  return 0;
}

// A graph of five scalar nodes, inputs changing each run, no fusion, bound handles.
void scalar() {
  Builder b;
  const Value x = b.input("x", {DType::f32, {}}), y = b.input("y", {DType::f32, {}});
  const Value s = x + y, p = s * x, d = p - y, m = maximum(d, x), r = m / s;
  const Graph g = b.finish({r});
  CompileOptions options;
  for (const Pass& pass : default_passes()) {
    if (pass.name.starts_with("fuse")) options.disabled.emplace(pass.name);
  }
  const Executable exe = cpu_session({.threads = 1}).compile(g, options);
  const InputHandle in_x = exe.input("x"), in_y = exe.input("y");
  const OutputHandle out = exe.output(0);
  constexpr int runs = 1'000'000;
  std::vector<float> times;
  times.reserve(runs);
  double sum = 0;
  for (int i = 0; i < runs; ++i) {
    const float a = static_cast<float>(i % 1000) + 1, c = static_cast<float>(i % 7) + 0.5F;
    float result = 0;
    const auto begin = Clock::now();
    exe.run({in_x.bind({DType::f32, {}, &a}), in_y.bind({DType::f32, {}, &c})}, {out.bind({DType::f32, {}, &result})});
    times.push_back(static_cast<float>(since(begin)));
    sum += static_cast<double>(result);
  }
  std::ranges::sort(times);
  std::printf("steps %zu\np50_us %.4f\np99_us %.4f\nchecksum %.6g\n", exe.report({}).steps.size(),
              static_cast<double>(times[runs / 2]) * 1e6, static_cast<double>(times[runs / 100 * 99]) * 1e6, sum);
}

// A graph of so many nodes, half of them elementwise, with a product of a constant now and then.
void compile(int nodes) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("B", 1, 64), 32}});
  Tensor w(DType::f32, {32, 32});
  std::vector<double> values(1024);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 17) * 0.01;
  store<double>(w, values);
  const Value weight = constant(b, w);
  Value a = x, c = x;
  while (static_cast<int>(b.graph().nodes.size()) < nodes) {
    const auto n = static_cast<double>(b.graph().nodes.size());
    a = tanh(a * like(a, 1 + 1 / n)) + c;
    c = softmax(c) - a;
    if (b.graph().nodes.size() % 50 < 7) a = matmul(a, weight);
  }
  const Graph g = b.finish({a + c});
  const Session session = cpu_session({.threads = 1});
  for (int round = 0; round < 5; ++round) {
    const auto begin = Clock::now();
    const Executable exe = session.compile(g);
    std::printf("nodes %zu\ncompile_ms %.3f\n", g.nodes.size(), since(begin) * 1e3);
  }
}

// Texts of random lengths: memory after a warm-up, and at the end.
void lengths(const std::string& folder, int runs) {
  const SentenceModel model = SentenceModel::load(folder);
  const Executable& exe = model.executable();
  std::mt19937 random(1);
  const auto run = [&](Index length) {
    const std::vector<Index> shape{1, length};
    (void)exe.run(
        {{"ids", Tensor::of<std::int64_t>(DType::i64, shape, std::vector<Index>(static_cast<std::size_t>(length), 7))},
         {"mask", Tensor::of<double>(DType::f32, shape, std::vector<double>(static_cast<std::size_t>(length), 1))}});
  };
  run(256);
  for (int i = 0; i < 100; ++i) run(1 + static_cast<Index>(random() % 256));
  const double before = proportional_set_size();
  double lowest = before, highest = before;
  for (int i = 0; i < runs; ++i) {
    run(1 + static_cast<Index>(random() % 256));
    if (i % 50 != 49) continue;
    lowest = std::min(lowest, proportional_set_size());
    highest = std::max(highest, proportional_set_size());
  }
  std::printf("runs %d\nbefore_bytes %.0f\nlowest_ratio %.5f\nhighest_ratio %.5f\n", runs, before, lowest / before,
              highest / before);
}

// What a model adds to the process, after a run of (1,128).
void memory(const std::string& folder) {
  (void)cpu_session().threads();
  malloc_trim(0);
  const double before = proportional_set_size();
  const auto begin = Clock::now();
  const SentenceModel model = SentenceModel::load(folder);
  const double load = since(begin);
  const std::vector<Index> shape{1, 128};
  std::vector<Index> ids(128);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<Index>(1000 + i * 97 % 20000);
  for (int i = 0; i < 3; ++i) {
    (void)model.executable().run({{"ids", Tensor::of<std::int64_t>(DType::i64, shape, ids)},
                                  {"mask", Tensor::of<double>(DType::f32, shape, std::vector<double>(128, 1))}});
  }
  std::printf("load_compile_ms %.3f\nadded_bytes %.0f\n", load * 1e3, proportional_set_size() - before);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "scalar" && argc == 2) {
    scalar();
  } else if (what == "compile" && argc == 3) {
    compile(std::atoi(argv[2]));
  } else if (what == "lengths" && argc == 4) {
    lengths(argv[2], std::atoi(argv[3]));
  } else if (what == "memory" && argc == 3) {
    memory(argv[2]);
  } else {
    std::fputs("usage: rlx_bench_runtime scalar | compile NODES | lengths MODEL_DIR RUNS | memory MODEL_DIR\n", stderr);
    return 2;
  }
  return 0;
}
