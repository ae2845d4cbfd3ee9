// Known traps of sessions and schedules: what programs share, wrong bindings, threads, names of steps.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "all_ops.h"
#include "compiled.h"
#include "core/error.h"

namespace rlx::test {
namespace {

using Shape = std::vector<Index>;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// x [2,rows] times a constant, then a norm.
Graph layer(const Tensor& weight, bool turned = false, double epsilon = 1e-5, double shift = 1, bool rms = false) {
  Builder b;
  const Index rows = weight.shape()[turned ? 1 : 0];
  const Value x = b.input("x", {weight.dtype(), {2, rows}});
  const Value y = matmul(x, constant(b, weight), {.transpose_b = turned}) + constant(b, weight.dtype(), shift);
  const NormAttrs norm{.axis = -1, .epsilon = epsilon};
  return b.finish({y, rms ? rms_norm(y, norm) : layer_norm(y, norm)});
}

TEST(Pitfalls, R15_ProgramsOfOneSessionShareNothingThatDiffers) {
  const Tensor base = mixed({6, 6}, 1), half = mixed({6, 6}, 1, DType::f16);
  Tensor other = base, last = base, brain(DType::bf16, {6, 6});
  other.set_code(0, other.code(0) ^ 0x400000U);
  last.set_code(35, last.code(35) ^ 0x400000U);
  for (Index i = 0; i < 36; ++i) brain.set_code(i, half.code(i));  // the same bytes as another type
  const Graph graphs[] = {layer(base),
                          layer(other),
                          layer(last),
                          layer(base, true),
                          layer(base.reshaped({4, 9})),
                          layer(base.reshaped({9, 4})),
                          layer(base.reshaped({9, 4}), true),
                          layer(base, false, 0.5),
                          layer(base, false, 1e-5, 1.5),
                          layer(base, false, 1e-5, -0.0),
                          layer(base, false, 1e-5, 1, true),
                          layer(half),
                          layer(brain),
                          layer(mixed({6, 6}, 1, DType::f64)),
                          layer(base)};
  at_every_level([&] {
    for (const bool fuse : {true, false}) {
      const Session session = cpu_session({.threads = 1});
      std::vector<Executable> programs;
      for (const Graph& g : graphs)
        programs.push_back(session.compile(g, fuse ? CompileOptions{} : unfused(), careful));
      for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < programs.size(); ++i) {
          SCOPED_TRACE(i);
          const TensorType& type = programs[i].interface().inputs[0].type;
          const NamedTensors in{{"x", mixed({2, type.dims[1].constant()}, round, type.dtype)}};
          const double bound = type.dtype == DType::f16 ? 4e-3 : type.dtype == DType::bf16 ? 3e-2 : 1e-5;
          expect_alike(programs[i].run(in), evaluate(graphs[i], in), bound);
        }
      }
      const NamedTensors in{{"x", mixed({2, 6}, 4)}};
      const Tensor first = programs[0].run(in)[0];
      EXPECT_TRUE(identical(first, programs.back().run(in)[0]));  // equal graphs, equal bits
      for (const std::size_t i : {1U, 2U, 3U, 8U, 9U}) EXPECT_FALSE(identical(first, programs[i].run(in)[0])) << i;
    }
  });
}

TEST(Pitfalls, R15_AConstantIsKeptWhileProgramsComeAndGo) {
  const Session session = cpu_session({.threads = 1});
  for (Index i = 0; i < 20; ++i) {  // memory of a weight that is gone may be the next one's
    const Graph g = layer(mixed({17, 9}, i));
    const NamedTensors in{{"x", mixed({2, 17}, i)}};
    const Executable exe = session.compile(g, {}, careful);
    expect_alike(exe.run(in), evaluate(g, in), 1e-5);
  }
}

TEST(Pitfalls, R17_WrongBindingsOfASessionAreErrorsAndChangeNothing) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2, 3}}), w = b.input("w", {DType::f32, {3}});
  const Value total = b.input("total", {DType::f32, {2, 3}});
  b.state("sum", total, total + x * w);
  const Graph g = b.finish({x * w});
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  State state(g, {});
  state.set("sum", floats({2, 3}, {1, 1, 1, 1, 1, 1}));
  const Tensor data = floats({2, 3}, {1, 2, 3, 4, 5, 6}), weight = floats({3}, {1, 10, 100});
  const auto refused = [&](const NamedTensors& in, const std::string& message) {
    EXPECT_THAT([&] { exe.run(in, {.state = &state}); }, ThrowsMessage<Error>(HasSubstr(message)));
    EXPECT_EQ(reals(state.at("sum")), std::vector<double>(6, 1.0));
  };
  const auto all_refused = [&] {
    refused({}, "is missing");
    refused({{"x", data}}, "input w is missing");
    refused({{"x", data}, {"w", floats({4}, {1, 2, 3, 4})}}, "input w is f32[4]");
    refused({{"x", data}, {"w", floats({2}, {1, 2})}}, "input w is f32[2]");
    refused({{"x", data}, {"w", floats({1, 3}, {1, 2, 3})}}, "input w is f32[1,3], expected f32[3]");
    refused({{"x", data}, {"w", floats({3}, {1, 2, 3}, DType::f64)}}, "input w is f64[3], expected f32[3]");
    refused({{"x", data}, {"w", weight}, {"v", weight}}, "\"v\"");
    refused({{"x", data}, {"W", weight}}, "\"W\"");
    EXPECT_THAT([&] { exe.run({{"x", data}, {"w", weight}}); }, ThrowsMessage<Error>(HasSubstr("state")));
    EXPECT_EQ(reals(state.at("sum")), std::vector<double>(6, 1.0));
  };
  all_refused();
  EXPECT_THAT(reals(exe.run({{"x", data}, {"w", weight}}, {.state = &state})[0]), ElementsAre(1, 20, 300, 4, 50, 600));
  EXPECT_THAT(reals(state.at("sum")), ElementsAre(2, 21, 301, 5, 51, 601));
  state.set("sum", floats({2, 3}, {1, 1, 1, 1, 1, 1}));
  all_refused();  // what an earlier run has bound is no longer there
}

TEST(Pitfalls, R17_AResultThatDoesNotFitLeavesItsMemoryAlone) {
  const Graph g = layer(mixed({3, 5}));
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  const Tensor in = mixed({2, 3});
  std::vector<float> first(10, 7), second(10, 7);
  const Shape shape{2, 5}, wrong{5, 2};
  const auto run = [&](const Shape& of_second, DType type) {
    exe.run({exe.input("x").bind(in)}, {exe.output(0).bind({DType::f32, shape, first.data()}),
                                        exe.output(1).bind({type, of_second, second.data()})});
  };
  EXPECT_THROW(run(wrong, DType::f32), Error);
  EXPECT_THROW(run(shape, DType::i32), Error);
  EXPECT_EQ(first, std::vector<float>(10, 7));
  EXPECT_EQ(second, std::vector<float>(10, 7));
  run(shape, DType::f32);
  const std::vector<double> want = reals(evaluate(g, NamedTensors{{"x", in}})[0]);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(first[i], want[i], 1e-5);
}

TEST(Pitfalls, P104_OneProgramServesEightThreads) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim::symbol("N", 0, 40), 19}});
  const Value y = gelu(matmul(x, constant(b, mixed({19, 23}, 2))) + constant(b, mixed({23}, 3)));
  const Graph g = b.finish({softmax(y), sum(cumsum(y, 0), {1}), layer_norm(reversed(y, 1) + y)});
  for (const int width : {1, 2}) {
    const Executable exe = cpu_session({.threads = width}).compile(g, {}, {.bindings = 3, .poison = true});
    std::vector<NamedTensors> in;
    std::vector<std::vector<Tensor>> want;
    for (const Index rows : {0, 1, 5, 17, 40}) {
      in.push_back({{"x", mixed({rows, 19}, rows)}});
      want.push_back(exe.run(in.back()));
      expect_alike(want.back(), evaluate(g, in.back()), 1e-4);
    }
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 20; ++i) {
          const std::size_t at = (t + i) % in.size();
          const std::vector<Tensor> got = exe.run(in[at]);
          for (std::size_t k = 0; k < got.size(); ++k) wrong += identical(got[k], want[at][k]) ? 0 : 1;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Pitfalls, P105_EveryStepHasANameANodeAndATime) {
  const Graph g = layer(mixed({9, 5}));
  for (const bool fuse : {true, false}) {
    const Executable exe = cpu_session({.threads = 1}).compile(g, fuse ? CompileOptions{} : unfused());
    const RunReport report = exe.report({});
    ASSERT_FALSE(report.steps.empty());
    for (const StepReport& s : report.steps) {
      EXPECT_FALSE(s.kernel.empty());
      EXPECT_FALSE(s.node.empty());
      EXPECT_NE(s.kernel, "other");
    }
    std::vector<std::chrono::nanoseconds> times;
    exe.run({{"x", mixed({2, 9})}}, {.step_times = &times});
    EXPECT_EQ(times.size(), report.steps.size());
  }
}

// Neither kernel nor definition: nothing can run it.
constinit const Op<NoAttrs> unknown_kernel{{
    .name = "unknown_kernel",
    .doc = "An op that is only a name.",
    .infer = [](const NoAttrs&, Types in) { return in[0]; },
}};

TEST(Pitfalls, P102_ACompiledProgramHasAStepForEveryNodeThatComputes) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {2}});
  const Graph g = b.finish({exp(b.emit_one(unknown_kernel, NoAttrs{}, {x}))});
  EXPECT_THAT([&] { cpu_session({.threads = 1}).compile(g); }, ThrowsMessage<Error>(HasSubstr("unknown_kernel")));
  const std::vector<Tensor> in{mixed({3, 4})};
  const Graph whole = graph_of(in, [](const Values& v) {
    return Values{softmax(v[0]), sum(v[0], {0, 1}), cumsum(v[0], 0), matmul(v[0], transpose_last(v[0])), exp(v[0])};
  });
  const Executable exe = cpu_session({.threads = 1}).compile(whole, unfused());
  EXPECT_EQ(exe.report({}).steps.size(), 5U);  // the transpose is a view
}

}  // namespace
}  // namespace rlx::test
