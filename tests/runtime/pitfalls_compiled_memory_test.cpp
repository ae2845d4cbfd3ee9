// Known traps of memory plans, sharing in place, views and states, in compiled graphs.
#include <gmock/gmock.h>

#include "all_ops.h"
#include "compiled.h"

namespace rlx::test {
namespace {

using Shape = std::vector<Index>;

TEST(Pitfalls, P33_InPlaceActivationWithAnotherReader) {
  for (const DType d : {DType::f32, DType::f64}) {
    for (const Index size : {1, 5, 67, 4099}) {
      const std::vector<Tensor> in{mixed({size}, 1, d), mixed({size}, 2, d)};
      check(in, [](const Values& v) {
        const Value x = cumsum(v[0], 0), y = relu(x);  // x lies in the arena and is read behind the activation
        return Values{x + y, reversed(y, 0)};
      });
      check(in, [](const Values& v) {
        const Value x = cumsum(v[0], 0), y = relu(x), z = gelu(y);
        return Values{z, x, cumsum(y, 0) * x, y};  // operands that are outputs as well
      });
      check(in, [](const Values& v) { return Values{relu(v[0]) + v[0], neg(v[1]) * v[1], v[0]}; });
      check(in, [](const Values& v) {
        const Value x = cumsum(v[0], 0), y = reversed(x, 0);
        return Values{exp(y) + x, tanh(x) - y};
      });
    }
  }
}

TEST(Pitfalls, P33_GradientsReadTheOperandOfAnActivation) {
  const std::vector<Tensor> in{mixed({3, 7}, 0, DType::f64)};
  const Graph g = graph_of(in, [](const Values& v) {
    const Value x = cumsum(v[0], 1);
    return Values{relu(x) * tanh(x) + gelu(x), x};
  });
  const Graph back = gradient(g);
  check_compiled(back, {in[0], mixed({3, 7}, 3, DType::f64), mixed({3, 7}, 4, DType::f64)}, 1e-12);
}

TEST(Pitfalls, P34_EveryNodeOfAChainOfStepsIsComputed) {
  for (const Index size : {0, 1, 9, 1025}) {
    const std::vector<Tensor> in{counted({size}, 1, 1), counted({size}, 100, 0)};
    for (const bool kept : {false, true}) {
      const Graph g = graph_of(in, [&](const Values& v) {
        const Value a = v[0] + v[1], b = a + v[1], c = b + v[1], d = c + v[1];
        return kept ? Values{a, b, c, d} : Values{d};
      });
      std::vector<Tensor> want;
      for (int k = kept ? 1 : 4; k <= 4; ++k) want.push_back(counted({size}, 1 + 100 * k, 1));
      expect_compiled(g, in, want, 0);
    }
  }
}

TEST(Pitfalls, P35_JoinsOfValuesThatEndThere) {
  for (const DType d : {DType::f32, DType::f64, DType::i64}) {
    for (const Index axis : {0, 1, 2}) {
      Shape first{2, 3, 5}, second = first;
      second[static_cast<std::size_t>(axis)] = 4;
      const std::vector<Tensor> in{counted(first, 1, 1, d), counted(second, 100, 1, d)};
      check(in, [&](const Values& v) { return concat({cumsum(v[0], 0), cumsum(v[1], 1)}, axis); }, 0);
      check(
          in,
          [&](const Values& v) {
            const Value a = cumsum(v[0], 0);
            return Values{concat({a, a, cumsum(v[1], 0)}, axis), concat({a, a}, axis)};
          },
          0);
      check(
          in,
          [&](const Values& v) {  // parts of one value in another order
            const Value a = cumsum(v[0], 0), joined = concat({slice(a, axis, 1, 2), slice(a, axis, 0, 2)}, axis);
            return Values{joined, cumsum(joined, axis)};
          },
          0);
    }
    check(
        {counted({2, 3, 4}, 0, 1, d), counted({1, 1, 4}, 90, 1, d)},
        [](const Values& v) { return concat({cumsum(v[0], 1), broadcast(cumsum(v[1], 2), {2, 1, 4})}, 1); }, 0);
  }
}

TEST(Pitfalls, P23_P24_FoldedTransposesKeepTheirSource) {
  for (const Shape& s : {Shape{2, 3, 5}, Shape{17, 19, 23}, Shape{1, 33, 1}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Index m = s[0], k = s[1], n = s[2];
        const std::vector<Tensor> in{counted(ta ? Shape{k, m} : Shape{m, k}, -3, 1),
                                     counted(tb ? Shape{n, k} : Shape{k, n}, 2, -1)};
        for (const bool kept : {false, true}) {
          const Graph g = graph_of(in, [&](const Values& v) {
            const Value a = cumsum(v[0], 0), b = reversed(v[1], 0);  // both in the arena, both end at the product
            const Value left = ta ? transpose(a, {1, 0}) : a, right = tb ? transpose(b, {1, 0}) : b;
            const Value y = matmul(left, right);
            return kept ? Values{y, a, right} : Values{cumsum(y, 1)};
          });
          check_compiled(g, in, 1e-6);
        }
      }
    }
  }
}

TEST(Pitfalls, P65_P66_R1_R2_SlicesOfOneProjectionInCompiledGraphs) {
  for (const Shape& s : {Shape{1, 7}, Shape{1, 63}, Shape{2, 32}, Shape{1, 65}, Shape{4, 33}}) {  // both sides of 64
    const Index heads = 2, size = 5, kv = s[1] % 2 + 1, q = heads * size, k = kv * size, width = q + 2 * k;
    const std::vector<Tensor> in{mixed({s[0], s[1], 6}), mixed({6, width}, 5), mixed({width}, 9)};
    for (const auto mask : {AttentionMask::none, AttentionMask::causal, AttentionMask::window}) {
      for (const int readers : {0, 2}) {
        check(
            in,
            [&](const Values& v) {
              const Value all = matmul(v[0], v[1]) + v[2];
              const Value a = slice(all, 2, 0, q), b = slice(all, 2, q, q + k), c = slice(all, 2, q + k, width);
              const Value y = attention(a, b, c,
                                        {.layout = AttentionLayout::packed,
                                         .mask = mask,
                                         .heads = heads,
                                         .window = mask == AttentionMask::window ? 3 : 0});
              if (readers == 0) return Values{y};
              return Values{y, all, b, softmax(c), cumsum(a, 1), sum(b, {1}), concat({c, b}, 0), exp(a)};
            },
            2e-5);
      }
    }
  }
}

TEST(Pitfalls, P65_P60_P61_RotatedSlicesInCompiledGraphs) {
  const Index positions = 5, heads = 3, size = 6, width = 3 * heads * size;
  for (const Index rotary : {4, 6}) {
    const std::vector<Tensor> in{mixed({2, positions, width}), mixed({positions, rotary / 2}, 3),
                                 mixed({positions, rotary / 2}, 8)};
    std::vector<std::vector<Tensor>> results;
    for (const auto pairing : {RopePairing::neox, RopePairing::gptj}) {
      const Graph g = graph_of(in, [&](const Values& v) {
        const Value all = v[0] + v[0];
        const RopeAttrs turn{.pairing = pairing, .head_size = size, .rotary = rotary};
        const Value q = rope(slice(all, 2, 0, 18), v[1], v[2], turn), k = rope(slice(all, 2, 18, 36), v[1], v[2], turn);
        const AttentionAttrs a{.layout = AttentionLayout::packed, .mask = AttentionMask::causal, .heads = heads};
        return Values{attention(q, k, slice(all, 2, 36, 54), a)};
      });
      check_compiled(g, in, 2e-5);
      results.push_back(cpu_session({.threads = 1}).compile(g).run(named(g, in)));
    }
    EXPECT_FALSE(identical(results[0][0], results[1][0]));  // the pairing is read
  }
}

TEST(Pitfalls, P73_OffsetZeroOfTheArenaIsAPlaceAsAnyOther) {
  const Index size = 5;
  const std::vector<Tensor> in{mixed({1, 2, size, 3}, 1), mixed({1, 2, size, size}, 2), mixed({3, 4}, 3),
                               mixed({4}, 4)};
  const auto first_at_zero = [&](const Graph& g) {
    const Executable exe = cpu_session({.threads = 1}).compile(g, unfused(), careful);
    const RunReport report = exe.report({});
    EXPECT_TRUE(std::ranges::any_of(report.buffers, [](const BufferReport& b) {
      return b.kind == "arena" && b.begin == 0 && b.offset == 0 && b.bytes > 0;
    }));
    check_compiled(g, in, 2e-5);
  };
  first_at_zero(graph_of(in, [](const Values& v) {
    return attention(v[0], v[0], v[0], cumsum(v[1], 3), {.extra = AttentionExtra::bias});
  }));
  first_at_zero(graph_of(in, [](const Values& v) {
    return attention(v[0], v[0], v[0], greater(cumsum(v[1], 3), like(v[1], 0)), {.extra = AttentionExtra::pairs});
  }));
  first_at_zero(
      graph_of(in, [](const Values& v) { return relu(matmul(transpose_last(v[2]), v[2]) + cumsum(v[3], 0)); }));
  first_at_zero(graph_of(in, [](const Values& v) { return layer_norm(v[2], cumsum(v[3], 0), v[3]); }));
  first_at_zero(graph_of(in, [](const Values& v) { return layer_norm(v[2], v[3], cumsum(v[3], 0)); }));
  first_at_zero(graph_of(in, [](const Values& v) { return rms_norm(v[2], cumsum(v[3], 0)); }));
}

TEST(Pitfalls, R12_AProductThatIsAlsoAnOutputOfACompiledGraph) {
  for (const Index columns : {1, 5, 37}) {
    const std::vector<Tensor> in{mixed({7, 9}), mixed({9, columns}, 2), mixed({1}, 3), mixed({columns}, 4),
                                 mixed({columns}, 6)};
    check(in, [](const Values& v) {
      const Value y = matmul(v[0], v[1]);
      return Values{y, y + v[3], relu(y + v[2])};
    });
    check(in, [](const Values& v) { return Values{relu(matmul(v[0], v[1]) + v[2])}; });
    check(in, [](const Values& v) {
      const Value y = matmul(v[0], v[1]) + v[3];
      return Values{y, gelu(y), sum(y, {0})};
    });
    check(in, [](const Values& v) { return layer_norm(matmul(v[0], v[1]) + v[3], v[4]); }, 1e-4);
    check(
        in,
        [](const Values& v) {  // a residual that stretches over the rows of a norm
          const Value y = v[3] + matmul(v[0], v[1]);
          return Values{rms_norm(y, v[4]), y};
        },
        1e-4);
  }
}

TEST(Pitfalls, R13_AParameterOfTwoBranchesIsOneBuffer) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {3, 5}}), y = b.input("y", {DType::f32, {3, 5}});
  const Value left = exp(x), w = b.input("w", {DType::f32, {5, 5}});  // declared behind the first op
  const Value a = matmul(left, w), c = matmul(y, w);
  const Graph g = b.finish({a + c, c, w});
  const std::vector<Tensor> in{mixed({3, 5}), mixed({3, 5}, 2), mixed({5, 5}, 3)};
  check_compiled(g, in);
  std::vector<Tensor> with = in;
  for (const Tensor& t : evaluate(g, in)) with.push_back(mixed(t.shape(), 7));
  check_compiled(gradient(g), with);
}

TEST(Pitfalls, R13_P29_AStateThatIsReadByTwoBranchesWhileItChanges) {
  for (const bool read_twice : {false, true}) {
    Builder b;
    const TensorType t{DType::f32, {3, 7}};
    const Value x = b.input("x", t), p = b.input("p", t), v = b.input("v", t);
    const Value next_v = v * like(v, 0.9) + x, next_p = p - next_v * like(v, 0.1);
    b.state("p", p, next_p);
    b.state("v", v, next_v);
    std::vector<Value> out{p * x, next_p};
    if (read_twice) out.insert(out.end(), {reversed(p, 1), next_v, v, cumsum(p, 0) + v});
    const Graph g = b.finish(out);
    at_every_level([&] {
      for (const bool fuse : {false, true}) {
        const Executable exe = cpu_session({.threads = 1}).compile(g, fuse ? CompileOptions{} : unfused(), careful);
        State state(g, {}), oracle(g, {});
        for (State* s : {&state, &oracle}) s->set("p", mixed({3, 7}, 5));
        for (int i = 0; i < 3; ++i) {
          const NamedTensors in{{"x", mixed({3, 7}, i)}};
          expect_alike(run_fenced(exe, in, {.state = &state}), evaluate(g, in, &oracle), 1e-6);
          expect_alike({state.at("p"), state.at("v")}, {oracle.at("p"), oracle.at("v")}, 1e-6);
        }
      }
    });
  }
}

TEST(Pitfalls, P93_P94_StaleMemoryOfTheArenaIsNotRead) {
  const std::vector<Tensor> in{mixed({4, 3}), ints(DType::i64, {5}, {0, 3, 3, 1, 3})};
  check(in, [](const Values& v) {
    const Value rows = cumsum(gather(v[0], v[1], 0), 1);
    return Values{scatter_add(rows, v[1], 0, 6) * like(v[0], 2), sum(scatter_add(rows, v[1], 0, 4), {0})};
  });
  Builder b;
  const Value table = b.input("table", {DType::f32, {4, 3}}), at = b.input("at", {DType::i64, {2}});
  const Graph g = b.finish({exp(gather(cumsum(table, 0), at, 0))});
  const Executable exe = cpu_session({.threads = 1}).compile(g, {}, careful);
  for (const Index bad : {4, -5, 1000000}) {
    EXPECT_THROW(exe.run({{"table", in[0]}, {"at", ints(DType::i64, {2}, {0, bad})}}), Error) << bad;
  }
  const NamedTensors good{{"table", in[0]}, {"at", ints(DType::i64, {2}, {0, 3})}};
  expect_alike(exe.run(good), evaluate(g, good), 1e-6);
}

}  // namespace
}  // namespace rlx::test
