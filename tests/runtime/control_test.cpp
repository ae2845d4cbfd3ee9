// Compiled control flow against the reference: trips, directions, nesting, early ends, branches that must not count,
// sizes bound at run time, threads.
#include "ir/control.h"

#include <gtest/gtest.h>

#include <thread>

#include "ops/broadcast/broadcast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "runtime/compiled.h"

namespace rlx::test {
namespace {

template <class Make>
GraphPtr body(const std::vector<TensorType>& types, Make make) {
  Builder b;
  Values in;
  for (const TensorType& t : types) in.push_back(b.input("p" + std::to_string(in.size()), t));
  return std::make_shared<const Graph>(b.finish(Values(make(in))));
}

// h' = tanh(h w + x), stacked h' * h.
Values recurrence(Value begin, Value xs, Value w, ScanAttrs a = {}) {
  const TensorType h = begin.type();
  const GraphPtr trip = body({h, h, w.type()}, [](const Values& v) {
    const Value next = tanh(matmul(v[0], v[2]) + v[1]);
    return Values{next, next * v[0]};
  });
  a.trips = xs.dim(0);
  a.carried = a.scanned = 1;
  const Value operands[] = {begin, xs, w};
  return scan(*begin.builder, a, operands, trip);
}

TEST(CompiledControl, ScansOfEveryLengthAndDirection) {
  for (const Index trips : {0, 1, 2, 3, 7}) {
    for (const auto& [in, out] :
         {std::pair(std::vector<Index>{}, std::vector<Index>{}), std::pair(std::vector<Index>{0}, std::vector<Index>{}),
          std::pair(std::vector<Index>{}, std::vector<Index>{0}),
          std::pair(std::vector<Index>{0}, std::vector<Index>{0})}) {
      check({mixed({3, 4}), mixed({trips, 3, 4}, 1), mixed({4, 4}, 2)},
            [&](const Values& v) { return recurrence(v[0], v[1], v[2], {.backward = in, .backward_results = out}); });
    }
  }
}

TEST(CompiledControl, ScansOfSymbolicLengthAreBoundWithoutCompiling) {
  Builder b;
  const Dim t = Dim::symbol("T", 0, 100), n = Dim::symbol("N", 1, 100);
  const Value h = b.input("h", {DType::f32, {n, 4}}), xs = b.input("xs", {DType::f32, {t, n, 4}});
  const Value w = constant(b, mixed({4, 4}, 5));
  const Graph g = b.finish(recurrence(h, xs, w));
  const Executable exe = cpu_session({.threads = 2}).compile(g, {}, careful);
  for (const Index trips : {5, 0, 1, 64, 5}) {
    for (const Index rows : {1, 17}) {
      const std::vector<Tensor> in{mixed({rows, 4}), mixed({trips, rows, 4}, 3)};
      expect_alike(exe.run(named(g, in)), evaluate(g, in), 2e-6);
    }
  }
}

// Every pair of sizes of carried value and slice, dtypes with kernels that move bytes.
TEST(CompiledControl, ScansOfEveryElementType) {
  for (const DType type : {DType::f32, DType::f64, DType::f16, DType::i64, DType::i32, DType::u8, DType::boolean}) {
    for (const Index width : {0, 1, 5}) {
      Tensor xs(type, {3, width}), begin(type, {width});
      std::vector<double> v(static_cast<std::size_t>(3 * width));
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i % 3);
      store(xs, v);
      check({begin, xs}, [&](const Values& a) {
        const GraphPtr trip = body({a[0].type(), a[0].type()}, [&](const Values& p) {
          const Value next = type == DType::boolean ? bitwise_or(p[0], p[1]) : p[0] + p[1];
          return Values{next, p[0], p[1]};
        });
        const Value in[] = {a[0], a[1]};
        return scan(*a[0].builder, {.trips = 3, .carried = 1, .scanned = 1}, in, trip);
      });
    }
  }
}

TEST(CompiledControl, CarriedValuesMayChangePlaces) {
  check({mixed({4}), mixed({4}, 1), mixed({5, 4}, 2)}, [](const Values& v) {
    const TensorType t = v[0].type();
    const GraphPtr trip = body({t, t, t}, [](const Values& p) { return Values{p[1], p[0], p[0] - p[2]}; });
    const Value in[] = {v[0], v[1], v[2]};
    return scan(*v[0].builder, {.trips = 5, .carried = 2, .scanned = 1}, in, trip);
  });
}

// Doubles x until its sum is `end` or more.
Value doubled(Value x, Value end) {
  const GraphPtr trip = body({x.type(), end.type()}, [](const Values& v) {
    const Value next = v[0] + v[0];
    return Values{less(sum(next, {0}), v[1]), next};
  });
  return while_loop(less(sum(x, {0}), end), std::span(&x, 1), std::span(&end, 1), trip)[0];
}

TEST(CompiledControl, WhileEndsWhenTheDataSaySo) {
  for (const double end : {-1.0, 1.0, 5.0, 11.0, 1000.0}) {
    check({floats({3}, {0.5, 0.25, 1}), floats({}, {end})}, [](const Values& v) { return doubled(v[0], v[1]); });
  }
}

TEST(CompiledControl, BranchesInsideOfLoopsInsideOfBranches) {
  for (const double a : {-1.0, 2.0}) {
    check({floats({2}, {a, 0.5}), mixed({4, 2})}, [](const Values& v) {
      const TensorType row = v[0].type(), all = v[1].type();
      const GraphPtr trip = body({row, row}, [&](const Values& p) {
        const GraphPtr up = body({row, row}, [](const Values& q) { return Values{q[0] + q[1]}; });
        const GraphPtr down = body({row, row}, [](const Values& q) {
          return Values{doubled(q[1] * q[1] + like(q[1], 1), constant(*q[0].builder, DType::f32, 7)) - q[0]};
        });
        const Value next = if_else(greater(sum(p[1], {0}), like(p[0], 0)), p, up, down)[0];
        return Values{next, next};
      });
      const GraphPtr yes = body({row, all}, [&](const Values& p) {
        return Values{scan(*p[0].builder, {.trips = 4, .carried = 1, .scanned = 1}, p, trip)[1]};
      });
      const GraphPtr no = body({row, all}, [&](const Values& p) { return Values{p[1] * p[0]}; });
      return if_else(greater(sum(v[0], {0}), like(v[0], 0)), v, yes, no);
    });
  }
}

TEST(CompiledControl, ABranchThatDoesNotRunHasNoChecksAndNoErrors) {
  Builder b;
  const Dim n = Dim::symbol("N", 1, 64);
  const Value c = b.input("c", {DType::boolean, {}}), x = b.input("x", {DType::f32, {n}});
  // Needs N = 4: the sum of x and a constant of 4; and N - 6 elements of a slice.
  const GraphPtr four = body({x.type()}, [&](const Values& v) {
    const Value k = constant(*v[0].builder, mixed({4}));
    return Values{sum(v[0] + k, {0})};
  });
  const GraphPtr six = body({x.type()}, [&](const Values& v) { return Values{sum(slice(v[0], 0, 6, n), {0})}; });
  const Graph g = b.finish({if_else(c, std::span(&x, 1), four, six)[0]});
  for (const bool fuse : {true, false}) {
    const Executable exe = cpu_session({.threads = 1}).compile(g, fuse ? CompileOptions{} : unfused(), careful);
    const auto run = [&](double condition, Index size) {
      const std::vector<Tensor> in{Tensor::scalar(DType::boolean, condition), mixed({size})};
      const std::string reference = message([&] { evaluate(g, in); });
      const std::string compiled = message([&] { exe.run(named(g, in)); });
      EXPECT_EQ(reference == "no error", compiled == "no error") << reference << "\n" << compiled;
      return compiled;
    };
    EXPECT_EQ(run(1, 4), "no error");
    EXPECT_EQ(run(0, 9), "no error");
    EXPECT_NE(run(1, 9).find("they must be equal"), std::string::npos);
    EXPECT_NE(run(0, 4), "no error");
    EXPECT_EQ(run(1, 4), "no error");
  }
}

TEST(CompiledControl, AnErrorInABodyNamesTheNodes) {
  Builder b;
  const Value x = b.input("x", {DType::i32, {2}}), ys = b.input("ys", {DType::i32, {3, 2}});
  const GraphPtr trip = body({x.type(), x.type()}, [](const Values& v) { return Values{div(v[0], v[1])}; });
  const Value in[] = {x, ys};
  const Graph g = b.finish({scan(b, {.trips = 3, .carried = 1, .scanned = 1}, in, trip)[0]});
  const Executable exe = cpu_session({.threads = 1}).compile(g);
  const NamedTensors bad{{"x", ints(DType::i32, {2}, {8, 9})}, {"ys", ints(DType::i32, {3, 2}, {1, 1, 2, 0, 1, 1})}};
  const std::string text = message([&] { exe.run(bad); });
  EXPECT_NE(text.find("= scan("), std::string::npos) << text;
  EXPECT_NE(text.find("= div("), std::string::npos) << text;
  const NamedTensors good{{"x", ints(DType::i32, {2}, {8, 9})}, {"ys", ints(DType::i32, {3, 2}, {1, 1, 2, 3, 1, 1})}};
  EXPECT_EQ(load<std::int64_t>(exe.run(good)[0]), (std::vector<std::int64_t>{4, 3}));
}

TEST(CompiledControl, AnEndlessLoopEndsByDeadlineAndCancellation) {
  Builder b;
  const Value c = b.input("c", {DType::boolean, {}}), x = b.input("x", {DType::f32, {2}});
  const GraphPtr trip =
      body({x.type()}, [](const Values& v) { return Values{constant(*v[0].builder, DType::boolean, 1), tanh(v[0])}; });
  const Graph g = b.finish({while_loop(c, std::span(&x, 1), {}, trip)[0]});
  const Executable exe = cpu_session({.threads = 1}).compile(g);
  const NamedTensors in{{"c", Tensor::scalar(DType::boolean, 1)}, {"x", mixed({2})}};
  RunOptions options;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  EXPECT_NE(message([&] { exe.run(in, options); }).find("the deadline passed"), std::string::npos);
  CancelToken token;
  RunOptions cancellable;
  cancellable.cancel = &token;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    token.cancel();
  });
  EXPECT_NE(message([&] { exe.run(in, cancellable); }).find("cancelled"), std::string::npos);
  other.join();
}

TEST(CompiledControl, ConstantsInBodiesArePackedOnceAndDecidedControlIsGone) {
  Builder b;
  const Value h = b.input("h", {DType::f32, {3, 4}}), xs = b.input("xs", {DType::f32, {6, 3, 4}});
  const Value w = constant(b, mixed({4, 4}, 5));
  const Values one = recurrence(slice(h, 0, 0, 3), slice(xs, 0, 0, 1), w);
  const GraphPtr yes = body({h.type()}, [](const Values& v) { return Values{tanh(v[0])}; });
  const GraphPtr no = body({h.type()}, [](const Values& v) { return Values{v[0]}; });
  const Value known = if_else(constant(b, DType::boolean, 1), std::span(&h, 1), yes, no)[0];
  const Graph g = b.finish({recurrence(h, xs, w)[0], one[0], known});
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  EXPECT_EQ(steps_of(exe, "scan"), 1);
  EXPECT_EQ(steps_of(exe, "if"), 0);
  EXPECT_GT(exe.report({}).packed_bytes, 0);
  check_compiled(g, {mixed({3, 4}), mixed({6, 3, 4}, 1)});
}

TEST(CompiledControl, P100_ScansLeaveNothingBehind) {
  // carry' = carry * w + x: 1 2 3 4 with w = 2 from 1: 3, 8, 19, 42.
  const auto make = [](const Values& v) {
    const GraphPtr trip =
        body({v[0].type(), v[2].type(), TensorType(DType::f32, {1}), v[1].type()}, [](const Values& p) {
          return Values{p[0] * broadcast(p[3], p[0].type().dims) + broadcast(p[2], p[0].type().dims),
                        p[1] + like(p[1], 1)};
        });
    const Value in[] = {v[0], v[2], v[3], v[1]};
    return scan(*v[0].builder, {.trips = v[3].dim(0), .carried = 2, .scanned = 1}, in, trip);
  };
  const std::vector<Tensor> in{floats({2}, {1, 0}), floats({1}, {2}), ints(DType::i32, {}, {5}),
                               floats({4, 1}, {1, 2, 3, 4})};
  const Graph g = graph_of(in, make);
  const std::vector<Tensor> out = evaluate(g, in);
  EXPECT_EQ(load<double>(out[0]), (std::vector<double>{42, 26}));
  EXPECT_EQ(load<std::int64_t>(out[1]), (std::vector<std::int64_t>{9}));
  expect_compiled(g, in, out, 0);
  std::vector<Tensor> none = in;
  none[3] = Tensor(DType::f32, {0, 1});
  expect_compiled(graph_of(none, make), none, {in[0], in[2]}, 0);
}

TEST(CompiledControl, P104_OneProgramRunsInEightThreads) {
  Builder b;
  const Value h = b.input("h", {DType::f32, {2, 8}}), xs = b.input("xs", {DType::f32, {9, 2, 8}});
  const Graph g = b.finish(recurrence(h, xs, constant(b, mixed({8, 8}, 4))));
  const Executable exe = cpu_session({.threads = 2}).compile(g);
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (Index i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::vector<Tensor> in{mixed({2, 8}, i), mixed({9, 2, 8}, i + 3)};
      const std::vector<Tensor> want = exe.run(named(g, in));
      for (int k = 0; k < 50; ++k) {
        const std::vector<Tensor> got = exe.run(named(g, in));
        for (std::size_t o = 0; o < want.size(); ++o) wrong[static_cast<std::size_t>(i)] += !identical(got[o], want[o]);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
}

}  // namespace
}  // namespace rlx::test
