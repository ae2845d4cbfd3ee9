// What must not share memory, bytes that change behind a program's back, and sizes that do not fit: executables.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "all_ops.h"
#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "probe_ops.h"
#include "runtime/evaluate.h"
#include "runtime/programs.h"

namespace rlx {
namespace {

using test::careful, test::message, test::ramp;

Executable compile(const Graph& g, const ExecutableOptions& options = careful) {
  return cpu_session({.threads = 1}).compile(g, {}, options);
}

// Three runs give the outputs and states of the reference.
void expect_same_states(const Graph& g) {
  const Executable exe = compile(g);
  State state(g, {}), oracle(g, {});
  double start = 1;
  for (const StatePair& s : g.states) {
    const Tensor first = ramp(state.at(s.name).shape(), start++, 0.5);
    state.set(s.name, first);
    oracle.set(s.name, first);
  }
  for (int round = 0; round < 3; ++round) {
    const std::vector<Tensor> got = exe.run(NamedTensors{}, {.state = &state});
    const std::vector<Tensor> want = evaluate(g, NamedTensors{}, &oracle);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], want[i])) << "output " << i;
    for (const StatePair& s : g.states) EXPECT_TRUE(identical(state.at(s.name), oracle.at(s.name))) << s.name;
  }
}

TEST(States, TheNextValueIsAnotherStateThatIsMadeInPlace) {
  for (const bool reversed : {false, true}) {
    Builder b;
    const Value p = b.input("p", {DType::f32, {4}}), q = b.input("q", {DType::f32, {4}});
    if (!reversed) b.state("p", p, q);
    b.state("q", q, p + q);
    if (reversed) b.state("p", p, q);
    expect_same_states(b.finish({p * q}));
  }
  Builder b;
  const Value p = b.input("p", {DType::f32, {4}}), q = b.input("q", {DType::f32, {4}});
  b.state("p", p, q);
  b.state("q", q, q * like(q, 2));
  expect_same_states(b.finish({p}));
}

TEST(States, TheNextValueIsAViewOfAStateThatIsMadeInPlace) {
  Builder b;
  const Value p = b.input("p", {DType::f32, {2, 2}}), q = b.input("q", {DType::f32, {2, 2}}),
              r = b.input("r", {DType::f32, {4}});
  b.state("p", p, transpose(q, {1, 0}));
  b.state("q", q, q * like(q, 2));
  b.state("r", r, reshape(q, {4}));
  expect_same_states(b.finish({reshape(q, {4}) + r, transpose(p, {1, 0})}));
}

TEST(States, TwoStatesOfOneValueAndOutputsOfTheirViews) {
  Builder b;
  const Value p = b.input("p", {DType::f32, {2, 2}}), q = b.input("q", {DType::f32, {2, 2}});
  const Value next = p + like(p, 1);
  b.state("p", p, next);
  b.state("q", q, next);
  expect_same_states(b.finish({next, transpose(next, {1, 0}), p, transpose(p, {1, 0}), slice(q, 0, 1, 2)}));
}

TEST(States, ViewsOfTheOldValueAreReadAfterTheNewOneIsMade) {
  Builder b;
  const Value p = b.input("p", {DType::f32, {3, 3}});
  const Value next = p * like(p, 2);
  b.state("p", p, next);
  expect_same_states(b.finish({matmul(next, transpose(p, {1, 0})), slice(p, 1, 1, 3)}));
}

TEST(States, AStateThatBecomesItsOwnTransposedOrShiftedValue) {
  Builder b;
  const Value p = b.input("p", {DType::f32, {3, 3}}), q = b.input("q", {DType::f32, {4}});
  b.state("p", p, transpose(p, {1, 0}) + like(p, 1));
  b.state("q", q, concat({slice(q, 0, 1, 4), slice(q, 0, 0, 1)}, 0));
  expect_same_states(b.finish({sum(p, {0})}));
}

TEST(States, ARunThatEndsBeforeItsFirstStepLosesNothing) {
  Builder b;
  const Value p = b.input("p", {DType::f32, {4}});
  b.state("p", p, p + like(p, 1));
  const Graph g = b.finish({});
  const Executable exe = compile(g);
  State state(g, {});
  CancelToken token;
  token.cancel();
  EXPECT_NE(message([&] { exe.run(NamedTensors{}, {.state = &state, .cancel = &token}); }), "no error");
  EXPECT_EQ(message([&] { (void)state.at("p"); }), "no error");
  const RunOptions late{.state = &state, .deadline = std::chrono::steady_clock::now() - std::chrono::hours(1)};
  EXPECT_NE(message([&] { exe.run(NamedTensors{}, late); }), "no error");
  EXPECT_EQ(message([&] { (void)state.at("p"); }), "no error");
  exe.run(NamedTensors{}, {.state = &state});
  EXPECT_EQ(load<double>(state.at("p")), (std::vector<double>{1, 1, 1, 1}));
}

TEST(Executable, MemoryThatOverlapsIsAnError) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), p = b.input("p", {DType::f32, {4}});
  b.state("p", p, p + x);
  const Graph g = b.finish({exp(x), sin(x)});
  const Executable exe = compile(g);
  State state(g, {});
  std::vector<float> m(16, 1);
  const Index shape[] = {4};
  const auto run = [&](const void* in, float* first, float* second) {
    return message([&] {
      exe.run({exe.input("x").bind({DType::f32, shape, in})},
              {exe.output(0).bind({DType::f32, shape, first}), exe.output(1).bind({DType::f32, shape, second})},
              {.state = &state});
    });
  };
  EXPECT_EQ(run(&m[0], &m[4], &m[8]), "no error");
  EXPECT_EQ(run(&m[0], &m[3], &m[8]), "output 0 lies in the memory of input x");
  EXPECT_EQ(run(&m[8], &m[0], &m[11]), "output 1 lies in the memory of input x");
  EXPECT_EQ(run(&m[0], &m[0], &m[8]), "output 0 lies in the memory of input x");
  EXPECT_EQ(run(&m[0], &m[4], &m[7]), "output 1 lies in the memory of output 0");
  EXPECT_EQ(run(&m[0], &m[4], &m[4]), "output 1 lies in the memory of output 0");
  EXPECT_EQ(run(state.at("p").bytes().data(), &m[4], &m[8]), "state p lies in the memory of input x");
  EXPECT_EQ(load<double>(state.at("p")), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(run(&m[4], &m[0], &m[8]), "no error");
}

TEST(Executable, AStateThatIsAlsoAnInputKeepsItsOldValueThere) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {4}}), p = b.input("p", {DType::f32, {4}});
  const Value next = p + like(p, 1);
  b.state("p", p, next);
  const Graph g = b.finish({next * x});
  const Executable exe = compile(g);
  State state(g, {});
  state.set("p", ramp({4}, 2));
  const Tensor before = state.at("p");
  const std::vector<Tensor> y = exe.run({{"x", before}}, {.state = &state});
  EXPECT_TRUE(identical(before, ramp({4}, 2)));
  const std::vector<double> old = load<double>(before), now = load<double>(y[0]);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(now[i], (old[i] + 1) * old[i], 1e-5);
}

TEST(WeightStore, AConstantThatWasChangedIsPackedAgain) {
  const Session session = cpu_session({.threads = 1});
  Tensor w = ramp({4, 6});
  const auto graph = [&] {
    Builder b;
    const Value x = b.input("x", {DType::f32, {Dim::symbol("S", 1, 64), 4}});
    return b.finish({matmul(x, constant(b, w))});
  };
  const Executable first = session.compile(graph());
  const NamedTensors in{{"x", ramp({3, 4})}};
  const Tensor before = first.run(in)[0];
  store<double>(w, std::vector<double>(24, 2));
  const Tensor after = session.compile(graph()).run(in)[0];
  const auto got = load<double>(after), want = load<double>(evaluate(graph(), in)[0]);
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
  EXPECT_TRUE(identical(first.run(in)[0], before));
}

TEST(WeightStore, AConstantOfTwoProductsIsCountedOnce) {
  const Tensor w = ramp({4, 6});
  const auto packed = [&](bool twice) {
    Builder b;
    const Value x = b.input("x", {DType::f32, {3, 4}}), y = b.input("y", {DType::f32, {5, 4}}), k = constant(b, w);
    Values out{matmul(x, k)};
    if (twice) out.push_back(matmul(y, k));
    return compile(b.finish(out)).report({}).packed_bytes;
  };
  EXPECT_GT(packed(false), 0);
  EXPECT_EQ(packed(true), packed(false));
}

TEST(Executable, SizesThatBecomeNegativeAreErrors) {
  Builder b;
  const Dim n = Dim::symbol("N", 0, 64);
  const Value x = b.input("x", {DType::f32, {n}});
  const Value rest = broadcast(b.input("k", {DType::f32, {1}}), {n - 4});
  const Graph g =
      b.finish({sum(exp(rest), {0}), sum(reshape(rest, {n - 4, 1}) * reshape(rest, {1, n - 4}), {0, 1}), x});
  const Executable exe = compile(g);
  EXPECT_EQ(message([&] { exe.run({{"x", ramp({6})}, {"k", ramp({1})}}); }), "no error");
  EXPECT_NE(message([&] { exe.run({{"x", ramp({2})}, {"k", ramp({1})}}); }).find("negative"), std::string::npos)
      << message([&] { exe.run({{"x", ramp({2})}, {"k", ramp({1})}}); });
}

TEST(Executable, SizesWhoseMemoryOverflowsAreErrors) {
  Builder b;
  const Dim n = Dim::symbol("N", 0), m = Dim::symbol("M", 0);
  const Value x = b.input("x", {DType::f32, {n, 1}}), y = b.input("y", {DType::f32, {1, m}});
  const Value z = x + y, a = cumsum(z, 0), c = cumsum(z, 1), d = cumsum(a, 1), e = cumsum(c, 0), f = softmax(z);
  const Graph g = b.finish({sum(matmul(a, transpose(c, {1, 0})), {0, 1}), sum(d * e * f, {0, 1})});
  const Executable exe = compile(g);
  const float one = 1;
  const auto shapes = [&](Index rows, Index cols) {
    const Index xs[] = {rows, 1}, ys[] = {1, cols};
    return message([&] {
      (void)exe.output_shapes(
          std::vector{exe.input("x").bind({DType::f32, xs, &one}), exe.input("y").bind({DType::f32, ys, &one})});
    });
  };
  EXPECT_EQ(shapes(3, 4), "no error");
  for (const Index rows : {Index{1} << 30, Index{1} << 31, Index{1} << 32, Index{1} << 40})
    EXPECT_NE(shapes(rows, Index{1} << 30).find("overflow"), std::string::npos) << rows << shapes(rows, Index{1} << 30);
}

TEST(Executable, AZeroBesideHugeSizesIsAnEmptyTensor) {
  Builder b;
  const Dim n = Dim::symbol("A", 0), m = Dim::symbol("B", 0), k = Dim::symbol("Z", 0);
  const Value x = b.input("x", {DType::f32, {n, m, k}});
  const Graph g = b.finish({exp(x)});
  const Index big = Index{1} << 40;
  const Tensor in(DType::f32, {big, big, 0});
  EXPECT_EQ(evaluate(g, {{"x", in}})[0].shape(), in.shape());
  EXPECT_EQ(compile(g).run({{"x", in}})[0].shape(), in.shape());
}

TEST(Executable, ASizeInTheOptionsThatAnInputContradicts) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 1, 8)}});
  const Executable exe = compile(b.finish({x + x}));
  const DimEnv dims{{"N", 3}};
  const auto run = [&] { return message([&] { exe.run({{"x", ramp({5})}}, {.dims = &dims}); }); };
  EXPECT_NE(run(), "no error");
  exe.run({{"x", ramp({5})}});
  EXPECT_NE(run(), "no error");  // the binding is kept
  exe.run({{"x", ramp({3})}}, {.dims = &dims});
}

TEST(Executable, SizesThatOnlyAnExpressionShows) {
  Builder b;
  const Dim s = Dim::symbol("S", 1, 8);
  const Value x = b.input("x", {DType::f32, {s * 2}}), y = b.input("y", {DType::f32, {s + 1}});
  const Executable exe = compile(b.finish({x + x, y + y}));
  const DimEnv two{{"S", 2}}, three{{"S", 3}};
  EXPECT_EQ(exe.run({{"x", ramp({4})}, {"y", ramp({3})}}, {.dims = &two})[1].shape(), std::vector<Index>{3});
  EXPECT_NE(message([&] { exe.run({{"x", ramp({6})}, {"y", ramp({3})}}, {.dims = &two}); }), "no error");
  EXPECT_NE(message([&] { exe.run({{"x", ramp({4})}, {"y", ramp({3})}}, {.dims = &three}); }), "no error");
  EXPECT_EQ(exe.run({{"x", ramp({6})}, {"y", ramp({4})}}, {.dims = &three})[1].shape(), std::vector<Index>{4});
}

TEST(Executable, EncodedConstantsThatNoKernelReadsAreRefused) {
  Builder b;
  const Tensor w(TensorType(DType::f32, {32, 2}, test::grouped, 0), [] {
    std::vector<Bytes> planes;
    const TensorType t(DType::f32, {32, 2}, test::grouped, 0);
    for (std::size_t i = 0; i < t.plane_count(); ++i) planes.push_back(Bytes::allocate(t.plane_bytes(i).constant()));
    return planes;
  }());
  const std::string as_output = message([&] {
    Builder c;
    (void)c.input("x", {DType::f32, {2}});
    (void)compile(c.finish({constant(c, w)}));
  });
  EXPECT_NE(as_output, "no error");
  for (const auto& f : std::vector<std::function<Value(const Value&)>>{
           [](const Value& v) { return v + v; },
           [](const Value& v) { return transpose(v, {1, 0}); },
           [](const Value& v) { return reshape(v, {64}); },
           [](const Value& v) { return slice(v, 0, 0, 4); },
           [](const Value& v) { return concat({v, v}, 0); },
           [](const Value& v) { return sum(v, {0}); },
           [](const Value& v) { return softmax(v); },
           [](const Value& v) { return cast(v, DType::f16); },
           [](const Value& v) { return broadcast(v, {2, 32, 2}); },
           [](const Value& v) { return exp(v); },
           [](const Value& v) { return cumsum(v, 0); },
           [](const Value& v) { return matmul(v, transpose(v, {1, 0})); },
       }) {
    EXPECT_NE(message([&] {
                Builder c;
                (void)c.input("x", {DType::f32, {2}});
                (void)compile(c.finish({f(constant(c, w))}));
              }),
              "no error");
  }
}

TEST(Executable, ResultsOutliveTheirProgramAndSession) {
  std::vector<Tensor> kept;
  {
    auto session = std::make_unique<Session>(cpu_session({.threads = 2}));
    Builder b;
    const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 1, 10'000)}});
    auto exe = std::make_unique<Executable>(session->compile(b.finish({exp(x)})));
    session.reset();
    kept = exe->run({{"x", ramp({10'000})}});
    const Executable moved = std::move(*exe);
    exe.reset();
    kept.push_back(moved.run({{"x", ramp({10'000})}})[0]);
  }
  EXPECT_TRUE(identical(kept[0], kept[1]));
}

// A host's executor that fails by itself.
class Failing final : public Executor {
 public:
  int width() const override { return 4; }
  void run(Index items, Index, RangeFunction function) override {
    function(0, items / 2);
    if (fails) throw std::runtime_error("the host stops");
    function(items / 2, items);
  }
  bool fails = true;
};

TEST(Executable, AHostsExecutorThatThrows) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {100'000}});
  const auto executor = std::make_shared<Failing>();
  const Executable exe = cpu_session({.executor = executor}).compile(b.finish({exp(x)}));
  EXPECT_THROW(exe.run({{"x", ramp({100'000})}}), std::runtime_error);
  executor->fails = false;
  EXPECT_EQ(exe.run({{"x", ramp({100'000})}})[0].count(), 100'000);
}

TEST(Executable, UnusualElementTypesThroughViewsAndCopies) {
  for (const DType dtype :
       {DType::i4, DType::u4, DType::c64, DType::f8e4m3, DType::f8e5m2, DType::i64, DType::f64, DType::boolean}) {
    Builder b;
    const Dim n = Dim::symbol("N", 0, 8);
    const Value x = b.input("x", {dtype, {n, 3}});
    const Value t = transpose(x, {1, 0});
    const Graph g = b.finish({x, t, slice(x, 1, 1, 3), reshape(t, {n * 3}), concat({t, slice(t, 0, 0, 1)}, 0),
                              broadcast(slice(x, 1, 2, 3), {2, n, 5})});
    const Executable exe = compile(g);
    for (const Index size : {0, 1, 5}) {
      const NamedTensors in{{"x", ramp({size, 3}, 0, 1, dtype)}};
      const std::vector<Tensor> got = exe.run(in), want = evaluate(g, in);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], want[i])) << name(dtype) << " " << i;
    }
  }
}

TEST(Executable, MemoryAtAddressesOfEveryKind) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 0, 100), 6}}), s = b.input("s", {DType::f32, {}});
  const Executable exe = compile(b.finish({softmax(x) * s, slice(x, 1, 3, 6)}));
  std::vector<float> in(600, 0.5F), out(1000);
  std::vector<char> odd(8);
  const Index shape[] = {99, 6}, half[] = {99, 3}, none[] = {0, 6}, none_half[] = {0, 3};
  const float two = 2;
  const auto run = [&](ConstView v, std::span<const Index> first, std::span<const Index> second, const void* scale) {
    return message([&] {
      exe.run({exe.input("x").bind(v), exe.input("s").bind({DType::f32, {}, scale})},
              {exe.output(0).bind({DType::f32, first, v.data ? &out[1] : nullptr}),
               exe.output(1).bind({DType::f32, second, v.data ? &out[601] : nullptr})});
    });
  };
  EXPECT_EQ(run({DType::f32, shape, &in[1]}, shape, half, &two), "no error");
  EXPECT_EQ(out[1], 2.0F / 6);
  EXPECT_EQ(run({DType::f32, none, nullptr}, none, none_half, &two), "no error");
  EXPECT_EQ(run({DType::f32, shape, nullptr}, shape, half, &two), "input x has no memory");
  EXPECT_EQ(run({DType::f32, shape, &in[1]}, shape, half, nullptr), "input s has no memory");
  EXPECT_NE(run({DType::f32, shape, reinterpret_cast<const char*>(&in[0]) + 2}, shape, half, &two), "no error");
}

}  // namespace
}  // namespace rlx
