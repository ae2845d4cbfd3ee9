// Random numbers, sampling, histograms and scattering in compiled programs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/histogram/histogram.h"
#include "ops/philox/philox.h"
#include "ops/sample/sample.h"
#include "ops/scatter/scatter.h"
#include "runtime/evaluate.h"
#include "runtime/programs.h"

namespace rlx {
namespace {

using test::careful;

Executable compile(const Graph& g) { return cpu_session({.threads = 1}).compile(g, {}, careful); }

Tensor words(const std::vector<std::uint64_t>& v) {
  return Tensor::of<std::uint64_t>(DType::u32, {static_cast<Index>(v.size())}, v);
}

Tensor reals(std::vector<Index> shape, const std::vector<double>& v, DType d = DType::f32) {
  return Tensor::of<double>(d, std::move(shape), v);
}

TEST(Pitfalls, P41_HistogramEdges) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {8}});
  const Graph g = b.finish({histogram(x, 4, 0, 1), histogram(x, 2, 1, 1)});
  const Executable exe = compile(g);
  const Tensor t = reals({8}, {0, .25, .5, .75, 1, -.1, 1.1, std::nan("")});
  for (int round = 0; round < 2; ++round) {  // the second run does not add to the first
    const std::vector<Tensor> y = exe.run({{"x", t}});
    EXPECT_EQ(load<double>(y[0]), (std::vector<double>{1, 1, 1, 2}));
    EXPECT_EQ(load<double>(y[1]), (std::vector<double>{0, 0}));
  }
}

TEST(Pitfalls, P94_ScatterIntoDataKeepsTheRest) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const DType d : {DType::f32, DType::i64}) {
    Builder b;
    const Value x = b.input("x", {d, {3, 3}}), u = b.input("u", {d, {2, 3}}), at = b.input("at", {DType::i64, {2, 3}});
    const Value row = b.input("row", {d, {1, 5}}), two = b.input("two", {d, {1, 2}}),
                places = b.input("places", {DType::i64, {1, 2}});
    std::vector<Value> out{scatter(x, u, at, 0)};
    for (const auto kind : {ScatterKind::none, ScatterKind::add, ScatterKind::mul, ScatterKind::max, ScatterKind::min})
      out.push_back(scatter(row, two, places, 1, kind));
    const Executable exe = compile(b.finish(out));
    const bool real = d == DType::f32;
    const NamedTensors in{{"x", reals({3, 3}, std::vector<double>(9, 0), d)},
                          {"u", reals({2, 3}, {1, 3, 5, 2, 4, 6}, d)},
                          {"at", reals({2, 3}, {1, 0, 2, 0, 2, 1}, DType::i64)},
                          {"row", reals({1, 5}, {real ? inf : 1, 2, 3, 4, real ? nan : 5}, d)},
                          {"two", reals({1, 2}, {7, 3}, d)},
                          {"places", reals({1, 2}, {1, 1}, DType::i64)}};
    for (int round = 0; round < 2; ++round) {
      const std::vector<Tensor> y = exe.run(in);
      EXPECT_EQ(load<double>(y[0]), (std::vector<double>{2, 3, 0, 1, 0, 6, 0, 4, 5}));
      constexpr double want[] = {3, 12, 42, 7, 2};  // of 2 with 7 and 3
      for (std::size_t k = 0; k < 5; ++k) {
        const std::vector<double> got = load<double>(y[k + 1]);
        EXPECT_EQ(got[1], want[k]) << k;
        EXPECT_EQ(got[0], real ? inf : 1);
        EXPECT_EQ(got[2], 3);
        EXPECT_EQ(got[3], 4);
        EXPECT_TRUE(real ? std::isnan(got[4]) : got[4] == 5);
      }
    }
  }
}

std::vector<Index> drawn(const SampleAttrs& a, const std::vector<double>& logits, const std::vector<double>& numbers) {
  const auto rows = static_cast<Index>(numbers.size()), classes = static_cast<Index>(logits.size()) / rows;
  Builder b;
  const Value x = b.input("x", {DType::f32, {rows, classes}}), r = b.input("r", {DType::f32, {rows}});
  const Executable exe = compile(b.finish({sample(x, r, a)}));
  return load<Index>(exe.run({{"x", reals({rows, classes}, logits)}, {"r", reals({rows}, numbers)}})[0]);
}

TEST(Pitfalls, P95_ClassesOfProbability0AreNeverDrawn) {
  const double inf = std::numeric_limits<double>::infinity(), almost = 1 - 0x1p-24;
  using Classes = std::vector<Index>;
  EXPECT_EQ(drawn({}, {-inf, 0, 0}, {0}), Classes{1});
  for (const double r : {0.0, 0.3, 0.9, almost}) {
    EXPECT_LE(drawn({1, 2, 1}, {3, 2, 1, 0, 0, 0}, {r})[0], 1) << r;
    EXPECT_LE(drawn({1, 0, 0.6}, {3, 2, 1, 0, 0, 0}, {r})[0], 0) << r;
    EXPECT_EQ(drawn({1, 1, 1}, {1, 5, 5, 0}, {r}), Classes{1}) << r;
    EXPECT_EQ(drawn({1, 0, 1e-9}, {1, 5, 5, 0}, {r}), Classes{1}) << r;
    EXPECT_EQ(drawn({0, 0, 1}, {1, 5, 5, 0}, {r}), Classes{1}) << r;
  }
  EXPECT_EQ(drawn({}, {0, 0, 0, 0}, {0.25, 0.75}), (Classes{0, 1}));
  EXPECT_THROW(drawn({}, {0, std::nan("")}, {0.5}), Error);
  EXPECT_THROW(drawn({}, {0, inf}, {0.5}), Error);
  EXPECT_THROW(drawn({}, {-inf, -inf}, {0.5}), Error);
  EXPECT_THROW(drawn({}, {0, 0}, {1}), Error);
}

// Frequencies of 40,000 draws, within five standard deviations.
TEST(Pitfalls, P95_DrawsFollowTheProbabilities) {
  Builder b;
  const Value logits = constant(b, reals({4}, {2, 1, 0, -1}));
  constexpr Index count = 40000;
  const Value r = random_uniform(philox_key(b, 7, 0), philox_start(b), {count}, DType::f32);
  const Value all = sample(broadcast(logits, {count, 4}), r);
  const Value times = histogram(cast(all, DType::f32), 4, 0, 4);
  const std::vector<double> n = load<double>(compile(b.finish({times})).run(NamedTensors{})[0]);
  const double sum = std::exp(2.0) + std::exp(1.0) + 1 + std::exp(-1.0);
  for (int k = 0; k < 4; ++k) {
    const double p = std::exp(2.0 - k) / sum;
    EXPECT_NEAR(n[static_cast<std::size_t>(k)], count * p, 5 * std::sqrt(count * p * (1 - p))) << k;
  }
}

TEST(Pitfalls, P96_TheKeyIsDataOfARun) {
  Builder b;
  const Value key = b.input("key", {DType::u32, {2}}), counter = b.input("counter", {DType::u32, {4}});
  const Graph g = b.finish({random_uniform(key, counter, {4}, DType::f32), random_normal(key, counter, {2}, DType::f32),
                            philox(key, counter, {4})});
  const Executable exe = compile(g);
  const Tensor start = words({0, 0, 0, 0});
  const auto run = [&](const Tensor& k, const Tensor& c) { return exe.run({{"key", k}, {"counter", c}}); };
  const std::vector<Tensor> first = run(words({42, 0}), start), again = run(words({42, 0}), start),
                            other = run(words({43, 0}), start), later = run(words({42, 0}), words({1, 0, 0, 0}));
  const std::vector<double> uniform = load<double>(first[0]), normal = load<double>(first[1]);
  constexpr double numbers[] = {.61295986, .46858650, .07323170, .34086150}, normals[] = {-.97018980, -1.23562027};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(uniform[i], numbers[i], 1e-8);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(normal[i], normals[i], 2e-7);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(identical(first[i], again[i]));
    EXPECT_FALSE(identical(first[i], other[i]));
    EXPECT_FALSE(identical(first[i], later[i]));
  }
  const Tensor third = run(words({0x7ddf7469u, 0xdaa66d2cu}), start)[2];
  EXPECT_EQ(load<std::uint64_t>(third), (std::vector<std::uint64_t>{0x71b28d71, 0x700bbe15, 0x473451d1, 0x983216fb}));
}

TEST(Pitfalls, P96_StreamsOfOneSeedDiffer) {
  Builder b;
  const Value a = philox(philox_key(b, 42, 3), philox_start(b), {4}),
              c = philox(philox_key(b, 42, 4), philox_start(b), {4});
  const std::vector<Tensor> y = compile(b.finish({a, c})).run(NamedTensors{});
  EXPECT_EQ(load<std::uint64_t>(y[0]), (std::vector<std::uint64_t>{0x71b28d71, 0x700bbe15, 0x473451d1, 0x983216fb}));
  EXPECT_FALSE(identical(y[0], y[1]));
}

TEST(Pitfalls, P96_MeansAndVariances) {
  Builder b;
  const Value key = philox_key(b, 1, 0), start = philox_start(b);
  constexpr Index count = 100000;
  const std::vector<Tensor> y = compile(b.finish({random_uniform(key, start, {count}, DType::f64, -1, 3),
                                                  random_normal(key, start, {count}, DType::f64, 2, 0.5)}))
                                    .run(NamedTensors{});
  constexpr double means[] = {1, 2}, deviations[] = {4 / 3.4641016, 0.5};
  for (std::size_t k = 0; k < 2; ++k) {
    double sum = 0, squares = 0;
    for (const double v : load<double>(y[k])) {
      sum += v;
      squares += v * v;
    }
    const double mean = sum / count;
    EXPECT_NEAR(mean, means[k], 5 * deviations[k] / std::sqrt(static_cast<double>(count)));
    EXPECT_NEAR(std::sqrt(squares / count - mean * mean), deviations[k], 0.02 * deviations[k]);
  }
}

}  // namespace
}  // namespace rlx
