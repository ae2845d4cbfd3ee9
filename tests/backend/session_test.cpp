// Graphs compiled by a session for the OpenCL device: the passes, plan, views, states and errors of every device.
#include "runtime/session.h"

#include <gtest/gtest.h>

#include <thread>

#include "all_ops.h"
#include "conformance.h"
#include "core/error.h"
#include "gpu_runner.h"
#include "ir/outline.h"
#include "passes/pass.h"
#include "runtime/evaluate.h"

namespace rlx::test {
namespace {

const ExecutableOptions careful{.poison = true, .check = true};

class OpenclSession : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!opencl_device(&why)) GTEST_SKIP() << "no OpenCL device: " << why;
    session_.emplace(shared_opencl_device(), SessionOptions{.threads = 1});
  }
  static Tensor random(std::vector<Index> shape, unsigned seed) {
    std::vector<Dim> dims(shape.begin(), shape.end());
    return fill(CaseInput(DType::f32, dims), {}, seed);
  }
  static void expect_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const Difference d = compare(got[i], want[i], relative(3e-6));
      EXPECT_TRUE(d.ok) << "output " << i << " " << d.where;
    }
  }
  std::optional<Session> session_;
};

// softmax of normalised rows, weighted and activated: layer_norm and log_sum_exp have no kernel and are expanded.
Graph block(const Dim& rows, const Dim& cols) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {rows, cols}}), w = b.input("w", {DType::f32, {cols}});
  const Value y = gelu(layer_norm(x, w, w) + x), s = softmax(y * w);
  return b.finish({s, log_sum_exp(y, {1}), transpose(y, {1, 0}) + like(y, 1)});
}

TEST_F(OpenclSession, RunsABlockAtSeveralSizesWithoutCompilingAgain) {
  const Dim rows = Dim::symbol("B", 0, 64), cols = Dim::symbol("S", 1, 512);
  const Graph g = block(rows, cols);
  const Executable exe = session_->compile(g, {}, careful);
  for (const auto& [r, c] : {std::pair<Index, Index>{3, 17}, {1, 1}, {64, 300}, {0, 5}, {3, 17}}) {
    const NamedTensors in{{"x", random({r, c}, 1)}, {"w", random({c}, 2)}};
    expect_close(exe.run(in), evaluate(g, in));
  }
  EXPECT_EQ(exe.report({{"B", 3}, {"S", 17}}).device, "opencl");
}

TEST_F(OpenclSession, FusionsRunAsTheyAre) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("B", 1, 64), 5}}), w = b.input("w", {DType::f32, {5}});
  const Value y = silu(x * w + x);
  const Graph g = b.finish({y});
  std::vector<Id> root(g.nodes.size());
  for (Id i = 0; i < g.nodes.size(); ++i) root[i] = is_input(g.nodes[i]) ? i : static_cast<Id>(g.nodes.size() - 1);
  CompileOptions as_it_is;
  for (const Pass& p : all_passes()) as_it_is.disabled.emplace(p.name);
  const Executable exe = session_->compile(outline(g, root), as_it_is, careful);
  const auto steps = exe.report({{"B", 7}}).steps;
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].kernel, "elementwise");
  const NamedTensors in{{"x", random({7, 5}, 1)}, {"w", random({5}, 2)}};
  expect_close(exe.run(in), evaluate(g, in));
}

TEST_F(OpenclSession, ViewsAreReadInPlace) {
  Builder b;
  const Dim n = Dim::symbol("N", 1, 64);
  const Value x = b.input("x", {DType::f32, {n, 6}});
  const Value a = exp(x), left = slice(a, 1, 0, 3), right = slice(a, 1, 3, 6);
  const Value heads = transpose(reshape(a, {n, 2, 3}), {1, 0, 2});
  const Graph g = b.finish({left * right, sum(transpose(a, {1, 0}), {0}), softmax(heads), heads});
  const Executable exe = session_->compile(g, {}, careful);
  for (const Index size : {1, 7, 64}) {
    const NamedTensors in{{"x", random({size, 6}, 3)}};
    expect_close(exe.run(in), evaluate(g, in));
  }
}

TEST_F(OpenclSession, StatesAreUpdated) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), total = b.input("total", {DType::f32, {4}});
  const Value next = total + x;
  b.state("total", total, next);
  const Graph g = b.finish({next * like(next, 2), total});
  const Executable exe = session_->compile(g, {}, careful);
  State state(g, {}), oracle(g, {});
  for (unsigned i = 0; i < 4; ++i) {
    const NamedTensors in{{"x", random({4}, i)}};
    expect_close(exe.run(in, {.state = &state}), evaluate(g, in, &oracle));
    EXPECT_TRUE(identical(state.at("total"), oracle.at("total")));
  }
}

TEST_F(OpenclSession, OneExecutableRunsFromManyThreads) {
  const Graph g = block(Dim::symbol("B", 0, 64), Dim::symbol("S", 1, 512));
  const Executable exe = session_->compile(g, {}, careful);
  std::vector<std::jthread> threads;
  std::vector<int> wrong(3, 0);
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const Index rows = 1 + t, cols = 40 + 7 * static_cast<Index>(t);
      const NamedTensors in{{"x", random({rows, cols}, t)}, {"w", random({cols}, 9)}};
      const std::vector<Tensor> first = exe.run(in);
      for (int i = 0; i < 10; ++i) wrong[t] += !identical(exe.run(in)[0], first[0]);
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, std::vector<int>(3, 0));
}

TEST_F(OpenclSession, WhatHasNoKernelIsListed) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4, 4}}), n = b.input("n", {DType::i32, {4}});
  const Graph g = b.finish({gather(x, n, 0), n / n, softmax(x)});
  try {
    session_->compile(g);
    FAIL() << "it compiles";
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("2 nodes of the graph cannot run"), std::string::npos) << text;
    EXPECT_NE(text.find("gather"), std::string::npos) << text;
    EXPECT_NE(text.find("div of integers may have to fail for 0"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace rlx::test
