// Sizes that a run finds: graphs that go on with them, against the reference, with states, threads and errors.
#include "plan/segments.h"

#include <gtest/gtest.h>

#include <thread>

#include "autodiff/gradient.h"
#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "ir/measure.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/nonzero/nonzero.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "ops/unique/unique.h"
#include "random_graph.h"
#include "runtime/evaluate.h"
#include "runtime/programs.h"

namespace rlx {
namespace {

using test::careful, test::message;

Tensor reals(std::vector<Index> shape, const std::vector<double>& v) {
  return Tensor::of<double>(DType::f32, std::move(shape), v);
}

Executable compile(const Graph& g) {
  return cpu_session({.threads = 1}).compile(g, {.verify_numerics = true}, careful);
}

void expect_reference(const Graph& g, const Executable& exe, const NamedTensors& inputs) {
  const std::vector<Tensor> got = exe.run(inputs), want = evaluate(g, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].type(), want[i].type()) << "output " << i;
    EXPECT_TRUE(identical(got[i], want[i])) << "output " << i;
  }
}

// Positions of what is positive, what stands there, and how many there are; with a constant and an input in each part.
Graph positives() {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 0, 100)}});
  const Value at = nonzero(less(like(x, 0), x));
  const Value taken = gather(x * like(x, 2), at, 0);
  const Value index = cast(iota(b, DType::i64, {at.dim(0)}), DType::f32);
  return b.finish({at, taken + index, reshape(sizes(b, {at.dim(0)}), {}), sum(taken, {0}), x + like(x, 1)});
}

TEST(Segments, AGraphGoesOnWithWhatItHasFound) {
  const Graph g = positives();
  const Executable exe = compile(g);
  expect_reference(g, exe, {{"x", reals({5}, {1, -2, 3, 0, 5})}});
  expect_reference(g, exe, {{"x", reals({4}, {-1, -2, -3, 0})}});
  expect_reference(g, exe, {{"x", reals({3}, {1, 2, 3})}});
  expect_reference(g, exe, {{"x", reals({0}, {})}});
  expect_reference(g, exe, {{"x", reals({5}, {-1, 2, -3, 4, -5})}});
  const std::vector<Tensor> y = exe.run({{"x", reals({5}, {1, -2, 3, 0, 5})}});
  EXPECT_EQ(load<double>(y[0]), (std::vector<double>{0, 2, 4}));
  EXPECT_EQ(load<double>(y[1]), (std::vector<double>{2, 7, 12}));
  EXPECT_EQ(load<double>(y[2]), (std::vector<double>{3}));
}

TEST(Segments, SizesThatDependOnSizes) {
  Builder b;
  const Value x = b.input("x", {DType::i32, {Dim::symbol("N", 1, 64)}}), y = b.input("y", {DType::i32, {3}});
  const Value kept = compress(x, less(like(x, 0), x), 0);
  const UniqueValues u = unique(kept, 0);
  const UniqueValues v = unique(y, 0, false);
  const Graph g = b.finish({u.values, u.first, u.inverse, u.counts, kept, v.values, nonzero_coordinates(u.counts)});
  EXPECT_EQ(cut_segments(drop_dead(g)).parts.size(), 4U);
  const Executable exe = compile(g);
  const auto ints = [](const std::vector<std::int64_t>& w) {
    return Tensor::of<std::int64_t>(DType::i32, {static_cast<Index>(w.size())}, w);
  };
  expect_reference(g, exe, {{"x", ints({5, -1, 3, 5, 0, 3, 9})}, {"y", ints({7, 7, 1})}});
  expect_reference(g, exe, {{"x", ints({-1})}, {"y", ints({1, 2, 3})}});
}

TEST(Segments, UnequalSizesThatMustBeEqualAreErrors) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), y = b.input("y", {DType::f32, {4}});
  const Graph g = b.finish({gather(x, nonzero(x), 0) + gather(y, nonzero(y), 0)});
  const Executable exe = compile(g);
  expect_reference(g, exe, {{"x", reals({4}, {1, 0, 2, 0})}, {"y", reals({4}, {0, 0, 5, 6})}});
  EXPECT_NE(message([&] {
              exe.run({{"x", reals({4}, {1, 0, 2, 0})}, {"y", reals({4}, {0, 3, 5, 6})}});
            }).find("they must be equal"),
            std::string::npos);
  EXPECT_THROW(evaluate(g, {{"x", reals({4}, {1, 0, 2, 0})}, {"y", reals({4}, {0, 3, 5, 6})}}), Error);
}

TEST(Segments, OutputsInTheCallersMemoryHaveTheSizeThatIsFound) {
  const Graph g = positives();
  const Executable exe = compile(g);
  const Tensor x = reals({4}, {1, -1, 2, 0});
  std::vector<std::int64_t> at(2, 7), count(1);
  std::vector<float> taken(2), total(1), more(4);
  const std::vector<Index> two{2}, three{3}, four{4}, scalar;
  const auto run = [&](const std::vector<Index>& size) {
    exe.run(
        {exe.input("x").bind(x)},
        {exe.output(0).bind({DType::i64, size, at.data()}), exe.output(1).bind({DType::f32, two, taken.data()}),
         exe.output(2).bind({DType::i64, scalar, count.data()}), exe.output(3).bind({DType::f32, scalar, total.data()}),
         exe.output(4).bind({DType::f32, four, more.data()})});
  };
  run(two);
  EXPECT_EQ(at, (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(taken, (std::vector<float>{2, 5}));
  EXPECT_EQ(count[0], 2);
  EXPECT_EQ(more, (std::vector<float>{2, 0, 3, 1}));
  EXPECT_NE(message([&] { run(three); }).find("i64[3], expected i64[2]"), std::string::npos);
  const BoundInput in[] = {exe.input("x").bind(x)};
  EXPECT_NE(message([&] { exe.output_shapes(in); }).find("only a run finds size"), std::string::npos);
}

TEST(Segments, ARunGivesTheSizesThatAReportNeeds) {
  const Executable exe = compile(positives());
  DimEnv sizes{{"N", 5}}, found{{"old", 3}};
  EXPECT_NE(message([&] { (void)exe.report(sizes); }).find("has no value"), std::string::npos);
  (void)exe.run({{"x", reals({5}, {1, -2, 3, 0, 5})}}, {.found = &found});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.begin()->second, 3);
  sizes.merge(found);
  EXPECT_FALSE(exe.report(sizes).steps.empty());
}

TEST(Segments, StatesAreWrittenAtTheEndOnly) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), total = b.input("total", {DType::f32, {}});
  const Value taken = gather(x, nonzero(greater(x, total)), 0);
  b.state("total", total, total + sum(taken, {0}));
  const Graph g = b.finish({taken});
  const Executable exe = compile(g);
  State state(g, {}), oracle(g, {});
  for (const double first : {1.0, 5.0, -2.0}) {
    const NamedTensors in{{"x", reals({4}, {first, 3, 0, -4})}};
    const Tensor got = exe.run(in, {.state = &state})[0], want = evaluate(g, in, &oracle)[0];
    EXPECT_TRUE(identical(got, want));
    EXPECT_TRUE(identical(state.at("total"), oracle.at("total")));
  }
  EXPECT_NE(message([&] { exe.run({{"x", reals({4}, {1, 2, 3, 4})}}); }).find("no State is given"), std::string::npos);
}

TEST(Segments, RunFromSeveralThreads) {
  const Graph g = positives();
  const Executable exe = compile(g);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 50; ++round) {
        std::vector<double> v(static_cast<std::size_t>(10 + t), -1);
        for (int k = 0; k <= (round + t) % 10; ++k) v[static_cast<std::size_t>(k)] = k + 1;
        const std::vector<Tensor> y = exe.run({{"x", reals({10 + t}, v)}});
        wrong[static_cast<std::size_t>(t)] += y[0].count() != (round + t) % 10 + 1;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Segments, TheTextFormHasThem) {
  const Graph g = positives();
  const std::string text = print(g);
  EXPECT_NE(text.find("measure %"), std::string::npos) << text;
  const Graph again = parse(text);
  EXPECT_TRUE(same(g, again));
  EXPECT_EQ(print(again), text);
  verify(again);
}

TEST(Segments, GradientsGoThroughWhatIsFound) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {5}});
  const Value taken = compress(x, greater(x, like(x, 0)), 0);
  const Value loss = sum(taken * taken, {0});
  const Value in[] = {x}, out[] = {loss};
  const std::optional<Value> one[] = {like(x, 1)};
  const Graph g = b.finish({*gradient(out, one, in)[0]});
  const Tensor dx = compile(g).run({{"x", reals({5}, {1, -2, 3, 0, 5})}})[0];
  EXPECT_EQ(load<double>(dx), (std::vector<double>{2, 0, 6, 0, 10}));
}

TEST(Segments, WhatNeedsNoSizeIsOneProgram) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {5}});
  nonzero(x);
  const Graph g = drop_dead(b.finish({x + x}));
  EXPECT_TRUE(measures(g).empty());
  EXPECT_EQ(g.nodes.size(), 2U);
}

TEST(Segments, BadMeasuresAreErrors) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 1, 9)}});
  EXPECT_THROW(measure(x, 9), Error);
  const Value count = sum(cast(less(x, like(x, 0)), DType::i64), {0}),
              other = sum(cast(less(like(x, 0), x), DType::i64), {0});
  const Dim size = measure(count, 9);
  EXPECT_EQ(measure(count, 9), size);
  EXPECT_NE(measure(other, 9), size);
  EXPECT_EQ(measure(other, 0), measure(other, 9));
  const auto emit = [](Builder& to, const Dim& d, Value v) {
    to.emit(measure_op(), Attrs(MeasureAttrs{d}), std::span(&v, 1));
  };
  EXPECT_THROW(emit(b, 3, count), Error);
  const auto refused = [&](const Dim& first, const Dim& second) {
    Builder c;
    const Value y = c.input("y", {DType::i64, {Dim::symbol("N", 1, 9)}});
    emit(c, first, sum(y, {0}));
    emit(c, second, max(y, {0}));
    const Graph g = c.finish({y});
    return message([&] { verify(g); });
  };
  const Dim n = Dim::symbol("N", 1, 9), m = Dim::symbol("M", 0, 9), k = Dim::symbol("K", 0, 9);
  EXPECT_EQ(refused(m, k), "no error");
  EXPECT_NE(refused(m, m).find("size M is found twice"), std::string::npos);
  EXPECT_NE(refused(m, n).find("an input shows size N"), std::string::npos);
  // A size of itself.
  Builder c;
  const Value y = c.input("y", {DType::i64, {}});
  emit(c, m, sum(iota(c, DType::i64, {m}) + y, {0}));
  const Graph g = c.finish({y});
  EXPECT_NE(message([&] { verify(g); }).find("depend on themselves"), std::string::npos);
}

TEST(Segments, ASizeBeyondItsBoundsIsAnError) {
  Builder b;
  const Value n = b.input("n", {DType::i64, {}});
  const Graph g = b.finish({iota(b, DType::i64, {measure(n, 5)})});
  const Executable exe = compile(g);
  const auto scalar = [](std::int64_t v) { return Tensor::of<std::int64_t>(DType::i64, {}, {v}); };
  expect_reference(g, exe, {{"n", scalar(4)}});
  EXPECT_THROW(exe.run({{"n", scalar(6)}}), Error);
  EXPECT_THROW(exe.run({{"n", scalar(-1)}}), Error);
  EXPECT_THROW(evaluate(g, {{"n", scalar(6)}}), Error);
}

TEST(Segments, RandomGraphsGoOnWithWhatTheyFind) {
  test::RandomGraphOptions options;
  options.found = true;
  int found = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const Graph g = drop_dead(test::random_graph(seed, options));
    if (measures(g).empty()) continue;
    ++found;
    verify(g);
    const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
    const DimEnv dims = test::random_dims(g, seed);
    const std::vector<Tensor> in = test::random_inputs(g, dims, seed);
    NamedTensors named;
    for (std::size_t i = 0; i < in.size(); ++i) named.emplace(g.input_names[i], in[i]);
    if (!g.states.empty()) continue;
    const std::vector<Tensor> got = exe.run(named, {.dims = &dims}), want = evaluate(g, named, nullptr, {.dims = dims});
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i].type(), want[i].type()) << seed << " output " << i;
  }
  EXPECT_GT(found, 50);
}

}  // namespace
}  // namespace rlx
