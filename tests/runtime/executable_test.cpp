// Executables against the reference evaluator: sizes, views, states, errors, threads.
#include "runtime/executable.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "all_ops.h"
#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "runtime/evaluate.h"
#include "runtime/programs.h"

namespace rlx {
namespace {

using test::careful, test::message, test::ramp;

void expect_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].type().text(), want[i].type().text());
    const auto a = load<double>(got[i]), e = load<double>(want[i]);
    double largest = 1;
    for (const double x : e) largest = std::max(largest, std::fabs(x));
    for (std::size_t k = 0; k < a.size(); ++k)
      EXPECT_NEAR(a[k], e[k], 1e-6 * largest) << "output " << i << " element " << k;
  }
}

void expect_same(const Graph& g, const NamedTensors& in) {
  expect_close(cpu_session({.threads = 1}).compile(g, {}, careful).run(in), evaluate(g, in));
}

// y = softmax(x w) for x [S,4].
Graph softmax_graph() {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("S", 1, 64), 4}});
  return b.finish({softmax(matmul(x, constant(b, ramp({4, 6}))))});
}

TEST(Executable, RunsAtSeveralSizesWithoutCompilingAgain) {
  const Graph g = softmax_graph();
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  for (const Index size : {1, 5, 64, 5}) {
    const NamedTensors in{{"x", ramp({size, 4})}};
    expect_close(exe.run(in), evaluate(g, in));
  }
}

// The inner size is a symbol on one side, and a number on the other: a run finds whether they are equal.
TEST(Executable, ConstantMatricesOfSizesThatARunFindsEqual) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2, Dim::symbol("K", 1, 16)}});
  const Value half = cast(x, DType::bf16), codes = cast(x, DType::i8);
  const Value w = constant(b, ramp({5, 3})), all = matmul(x, w), rounded = matmul(half, cast(w, DType::bf16));
  const Graph g = b.finish({all, rounded, matmul_integer(codes, cast(w, DType::i8))});
  const Executable exe = cpu_session({.threads = 1}).compile(g);
  const NamedTensors in{{"x", ramp({2, 5})}};
  expect_close(exe.run(in), evaluate(g, in));
  EXPECT_NE(message([&] { exe.run({{"x", ramp({2, 6})}}); }).find('K'), std::string::npos);
}

TEST(Executable, HandlesBindMemoryOfTheCaller) {
  const Executable exe = cpu_session({.threads = 1}).compile(softmax_graph());
  const InputHandle x = exe.input("x");
  const OutputHandle y = exe.output(0);
  const Tensor in = ramp({3, 4});
  std::vector<float> out(18, -1);
  const Index shape[] = {3, 6};
  exe.run({x.bind(in)}, {y.bind({DType::f32, shape, out.data()})});
  for (std::size_t row = 0; row < 3; ++row) {
    float sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += out[row * 6 + i];
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_EQ(exe.output_shapes(std::vector{x.bind(in)}), (std::vector<std::vector<Index>>{{3, 6}}));
}

TEST(Executable, OutputsThatAreInputsConstantsViewsAndTwice) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("S", 1, 64), 4}});
  const Value k = constant(b, ramp({2, 2})), sum = x + like(x, 1), view = transpose(sum, {1, 0});
  const Graph g = b.finish({x, k, sum, view, sum, slice(sum, 1, 1, 3), reshape(sum, {x.dim(0) * 4})});
  expect_same(g, {{"x", ramp({5, 4})}});
}

TEST(Executable, ViewsAreReadInPlaceOrCopied) {
  Builder b;
  const Dim n = Dim::symbol("N", 1, 64);
  const Value x = b.input("x", {DType::f32, {n, 6}});
  const Value a = x * like(x, 2), left = slice(a, 1, 0, 3), right = slice(a, 1, 3, 6);
  const Value product = matmul(left, transpose(right, {1, 0})), s = softmax(transpose(a, {1, 0}));
  const Value heads = transpose(reshape(a, {n, 2, 3}), {1, 0, 2});
  const Graph g = b.finish({product, s, heads + like(heads, 1), sum(left + right, {1})});
  for (const Index size : {1, 2, 7, 64}) expect_same(g, {{"x", ramp({size, 6})}});
}

TEST(Executable, SizesOfZeroAndRankZero) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 0, 8), 3}}), k = b.input("k", {DType::f32, {}});
  const Graph g = b.finish({exp(x) * k, sum(x, {0, 1}), k + k, softmax(x)});
  for (const Index size : {0, 1, 5}) expect_same(g, {{"x", ramp({size, 3})}, {"k", Tensor::scalar(DType::f32, 2)}});
}

TEST(Executable, StatesAreUpdatedInPlace) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), total = b.input("total", {DType::f32, {4}});
  const Value next = total + x;
  b.state("total", total, next);
  const Graph g = b.finish({next * like(next, 2), total});
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  State state(g, {}), oracle(g, {});
  for (int i = 0; i < 4; ++i) {
    const NamedTensors in{{"x", ramp({4}, i)}};
    expect_close(exe.run(in, {.state = &state}), evaluate(g, in, &oracle));
    EXPECT_TRUE(identical(state.at("total"), oracle.at("total")));
  }
  EXPECT_EQ(message([&] { exe.run({{"x", ramp({4})}}); }), "the graph has 1 states, but no State is given");
  EXPECT_EQ(message([&] { (void)exe.input("total"); }), "input total comes from a state");
}

TEST(Executable, StatesThatExchangeTheirValues) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), p = b.input("p", {DType::f32, {4}}),
              q = b.input("q", {DType::f32, {4}});
  b.state("p", p, q);
  b.state("q", q, p);
  const Value r = b.input("r", {DType::f32, {2, 2}});
  b.state("r", r, transpose(r, {1, 0}));
  const Graph g = b.finish({x + p, transpose(r, {1, 0})});
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  State state(g, {}), oracle(g, {});
  for (State* s : {&state, &oracle}) {
    s->set("p", ramp({4}, 1));
    s->set("q", ramp({4}, 7));
    s->set("r", ramp({2, 2}));
  }
  for (int i = 0; i < 3; ++i) {
    const NamedTensors in{{"x", ramp({4}, i)}};
    expect_close(exe.run(in, {.state = &state}), evaluate(g, in, &oracle));
    for (const char* name : {"p", "q", "r"}) EXPECT_TRUE(identical(state.at(name), oracle.at(name))) << name;
  }
}

TEST(Executable, ARunThatFailsMarksTheStateItHalfWrote) {
  Builder b;
  const Value total = b.input("total", {DType::f32, {4}}), index = b.input("i", {DType::i64, {1}});
  const Value next = total + like(total, 1);
  b.state("total", total, next);
  const Graph g = b.finish({gather(next, index, 0)});
  const Executable exe = cpu_session({.threads = 1}).compile(g);
  State state(g, {});
  exe.run({{"i", Tensor::of<std::int64_t>(DType::i64, {1}, {3})}}, {.state = &state});
  const NamedTensors bad{{"i", Tensor::of<std::int64_t>(DType::i64, {1}, {4})}};
  EXPECT_NE(message([&] { exe.run(bad, {.state = &state}); }).find("index 4"), std::string::npos);
  if (message([&] { (void)state.at("total"); }) != "no error") state.set("total", ramp({4}));
  exe.run({{"i", Tensor::of<std::int64_t>(DType::i64, {1}, {3})}}, {.state = &state});
}

TEST(Executable, BadBindingsAreErrorsAndTheProgramStaysUsable) {
  const Executable exe = cpu_session({.threads = 1}).compile(softmax_graph());
  const InputHandle x = exe.input("x");
  const OutputHandle y = exe.output(0);
  const Tensor in = ramp({3, 4});
  std::vector<float> memory(64);
  const Index shape[] = {3, 6}, wrong[] = {6, 3};
  const MutableView out{DType::f32, shape, memory.data()};
  const auto run = [&](std::vector<BoundInput> i, std::vector<BoundOutput> o) {
    return message([&] { exe.run(i, o); });
  };
  EXPECT_EQ(run({}, {y.bind(out)}), "input x is missing");
  EXPECT_EQ(run({x.bind(in), x.bind(in)}, {y.bind(out)}), "input x is bound twice");
  EXPECT_EQ(run({x.bind(in)}, {}), "0 outputs are bound, the program has 1");
  EXPECT_EQ(run({x.bind(in)}, {y.bind(out), y.bind(out)}), "output 0 is bound twice");
  EXPECT_EQ(run({x.bind(in)}, {y.bind({DType::f32, wrong, memory.data()})}), "output 0 is f32[6,3], expected f32[3,6]");
  EXPECT_EQ(run({x.bind(in)}, {y.bind({DType::f64, shape, memory.data()})}), "output 0 is f64[3,6], expected f32[3,6]");
  EXPECT_EQ(run({x.bind(in)}, {y.bind({DType::f32, shape, nullptr})}), "output 0 has no memory");
  EXPECT_EQ(run({x.bind(ramp({3, 5}))}, {y.bind(out)}), "input x is f32[3,5]: size 4 is 5, expected 4");
  EXPECT_EQ(run({x.bind(ramp({65, 4}))}, {y.bind(out)}),
            "input x is f32[65,4]: size 65 of S is outside its bounds 1..64");
  EXPECT_EQ(run({x.bind(ramp({3}))}, {y.bind(out)}), "input x is f32[3], expected f32[S,4]");
  EXPECT_EQ(run({x.bind(ramp({3, 4}, 0, 1, DType::f64))}, {y.bind(out)}), "input x is f64[3,4], expected f32[S,4]");
  EXPECT_EQ(message([&] { exe.run({{"z", in}}); }), "there is no input \"z\", expected one of x");
  EXPECT_EQ(message([&] { (void)exe.output(1); }), "there is no output 1, the program has 1");
  EXPECT_EQ(message([&] { (void)exe.output("y"); }), "there is no output \"y\", expected one of ");
  EXPECT_EQ(run({x.bind(in)}, {y.bind(out)}), "no error");
}

TEST(Executable, DeadlineAndCancellationEndARun) {
  const Executable exe = cpu_session({.threads = 1}).compile(softmax_graph());
  const NamedTensors in{{"x", ramp({3, 4})}};
  CancelToken token;
  token.cancel();
  EXPECT_NE(message([&] { exe.run(in, {.cancel = &token}); }).find("cancelled"), std::string::npos);
  token.reset();
  EXPECT_EQ(message([&] { exe.run(in, {.cancel = &token}); }), "no error");
  EXPECT_NE(message([&] { exe.run(in, {.deadline = std::chrono::steady_clock::now()}); }).find("deadline"),
            std::string::npos);
}

TEST(Executable, RunsFromEightThreadsAtOnce) {
  const Graph g = softmax_graph();
  const Executable exe = cpu_session({.threads = 2}).compile(g);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (Index t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (Index i = 0; i < 40; ++i) {
        const NamedTensors in{{"x", ramp({1 + (t * 7 + i) % 64, 4}, static_cast<double>(t))}};
        if (!identical(exe.run(in)[0], exe.run(in)[0])) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Executable, TheLastBindingsAreKept) {
  const Executable exe = cpu_session({.threads = 1}).compile(softmax_graph(), {}, {.bindings = 2});
  for (int round = 0; round < 3; ++round) {
    for (const Index size : {1, 2, 3, 4}) EXPECT_EQ(exe.run({{"x", ramp({size, 4})}})[0].shape()[0], size);
  }
  EXPECT_THROW(cpu_session().compile(softmax_graph(), {}, {.bindings = 0}), Error);
}

TEST(Executable, EqualConstantsArePackedOnce) {
  const Session session = cpu_session({.threads = 1});
  const Graph g = softmax_graph();
  const Executable first = session.compile(g);
  const Index packed = first.memory().weights;
  EXPECT_GT(packed, 0);
  const Executable second = session.compile(g);
  EXPECT_EQ(second.memory().weights, packed);
}

TEST(Executable, SizesThatNoInputShowsComeFromTheOptions) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {1}});
  const Graph g = b.finish({broadcast(x, {Dim::symbol("N", 1, 8)})});
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  const NamedTensors in{{"x", ramp({1})}};
  EXPECT_EQ(message([&] { exe.run(in); }), "size symbol N has no value: no input shows it alone");
  const DimEnv dims{{"N", 3}}, far{{"N", 9}};
  EXPECT_EQ(exe.run(in, {.dims = &dims})[0].shape(), std::vector<Index>{3});
  EXPECT_EQ(message([&] { exe.run(in, {.dims = &far}); }), "size symbol N is 9, outside its bounds 1..8");
}

TEST(Executable, ReportsItsStepsAndMemory) {
  const Executable exe = cpu_session({.threads = 1}).compile(softmax_graph());
  const RunReport r = exe.report({{"S", 10}});
  ASSERT_EQ(r.steps.size(), 2U);
  EXPECT_EQ(r.device, "cpu");
  EXPECT_GT(r.packed_bytes, 0);
  EXPECT_EQ(r.steps[1].waits_for, std::vector<std::uint32_t>{0});
  EXPECT_GE(r.steps[1].bytes_read, 10 * 6 * 4);
  EXPECT_EQ(message([&] { (void)exe.report({}); }), "size symbol S has no value");
}

TEST(Executable, TheMemoryLimitIsAnErrorWithItsParts) {
  const Session session = cpu_session({.threads = 1});
  EXPECT_NE(message([&] { session.compile(softmax_graph(), {}, {.memory_limit = 10}); }).find("the limit is 10"),
            std::string::npos);
  const Executable exe = session.compile(softmax_graph(), {}, {.memory_limit = 4000});
  EXPECT_EQ(exe.run({{"x", ramp({2, 4})}})[0].shape()[0], 2);
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 1, 10'000)}});
  const Executable large = session.compile(b.finish({sum(exp(x), {0}) + sum(sin(x), {0})}), {}, {.memory_limit = 4000});
  EXPECT_EQ(message([&] { large.run({{"x", ramp({10})}}); }), "no error");
  EXPECT_NE(message([&] { large.run({{"x", ramp({10'000})}}); }).find("arena), the limit is 4000"), std::string::npos);
  EXPECT_EQ(message([&] { large.run({{"x", ramp({10})}}); }), "no error");
}

TEST(Executable, CompilingReportsProgressAndRemarks) {
  std::vector<double> done;
  std::vector<std::string> remarks;
  CompileOptions options;
  options.progress = [&](std::string_view, double d) { done.push_back(d); };
  options.log = [&](const Remark& r) { remarks.push_back(r.pass + ": " + r.text); };
  Report report;
  (void)cpu_session({.threads = 1}).compile(softmax_graph(), options, {}, &report);
  ASSERT_GT(done.size(), 3U);
  EXPECT_TRUE(std::ranges::is_sorted(done));
  EXPECT_EQ(done.back(), 1);
  EXPECT_EQ(remarks.size(), report.remarks.size());
}

TEST(Executable, EmptyPrograms) {
  Builder b;
  (void)b.input("x", {DType::f32, {2}});
  const Graph g = b.finish({});
  EXPECT_TRUE(cpu_session({.threads = 1}).compile(g).run({{"x", ramp({2})}}).empty());
}

}  // namespace
}  // namespace rlx
