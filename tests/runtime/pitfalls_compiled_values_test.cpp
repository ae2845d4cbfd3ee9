// Known traps of kernels: broadcast operands, element types, batches, reductions, norms, in compiled graphs.
#include <gmock/gmock.h>

#include "all_ops.h"
#include "compiled.h"
#include "core/error.h"
#include "ir/op_table.h"

namespace rlx::test {
namespace {

using Shape = std::vector<Index>;

TEST(Pitfalls, P1_P2_P3_P20_R14_CompiledOperandsStretchAnyWay) {
  const std::pair<Shape, Shape> pairs[] = {
      {{3, 1}, {1, 2}},
      {{2, 1, 3}, {1, 4, 1}},
      {{2, 1, 3}, {2, 4, 3}},
      {{2, 3, 4}, {2, 1, 4}},
      {{2, 3, 4}, {4}},
      {{2, 3, 4}, {1, 1, 4}},
      {{4, 8}, {4, 1}},
      {{4, 1}, {1, 8}},
      {{2, 1, 4}, {3, 1}},
      {{1, 3, 3}, {1, 3, 1}},
      {{2, 1, 5, 1}, {1, 3, 5, 5}},
      {{0, 3}, {1, 3}},
      {{5, 1, 37}, {1, 7, 1}},
      {{2, 7, 1, 1}, {2, 7, 3, 5}},
      {{1}, {67}},
      {{}, {3, 9}},
  };
  for (const auto& [one, two] : pairs) {
    for (const DType d : {DType::f32, DType::f64, DType::i64}) {
      const std::vector<Tensor> in{counted(one, 1, 1, d), counted(two, -3, 2, d)};
      check(
          in,
          [&](const Values& v) {
            const Value below = cast(less_equal(v[0], v[1]), d), s = v[0] + v[1];
            return Values{s,
                          v[1] - v[0],
                          v[0] * v[1] + s,
                          maximum(v[1], v[0]),
                          below,
                          greater(v[1], v[0]),
                          select(less(v[1], v[0]), v[0], v[1]),
                          below * s - v[1]};
          },
          0);
    }
  }
}

TEST(Pitfalls, P1_P26_ComplexLengthsAreInElements) {
  const auto complex = [](Shape shape) {
    Tensor t(DType::c64, std::move(shape));
    std::vector<std::complex<double>> v;
    for (Index i = 0; i < t.count(); ++i)
      v.emplace_back(0.5 * static_cast<double>(i), 1 - 0.25 * static_cast<double>(i));
    store(t, v);
    return t;
  };
  const std::vector<Tensor> in{complex({5}), complex({1}), complex({3, 1})};
  check(in, [](const Values& v) {
    return Values{conj(v[0]), exp(v[0]), v[0] * v[1], conj(v[0] * v[1]) + v[2], v[2] * v[0]};
  });
}

TEST(Pitfalls, P4_OneElementOperandsAtTheEndOfMemory) {
  const std::vector<Tensor> in{counted({7}, 0, 1), floats({}, {3}), floats({1}, {5}), ints(DType::boolean, {}, {1}),
                               counted({5}, 0, 1)};
  const Graph g = graph_of(in, [](const Values& v) {  // the caller's memory ends with each scalar
    const Value wide = broadcast(v[1], {5});
    return Values{less(v[0], v[1]),
                  less(v[2], v[0]),
                  select(v[3], v[0], v[1]),
                  select(less(v[0], v[2]), v[2], v[0]),
                  select(v[3], v[1], v[2]),
                  select(v[3], wide, v[4]),
                  select(less(v[4], v[1]), v[1], v[2])};
  });
  check_compiled(g, in, 0);
  const Graph placed = graph_of(in, [](const Values& v) {  // scalars behind all else in the arena
    const Value x = cumsum(v[0], 0), s = sum(x, {0});
    return Values{less(x, s), less(s, x), select(v[3], x, s), x * s};
  });
  const RunReport report = cpu_session({.threads = 1}).compile(placed, unfused(), careful).report({});
  const auto is_last = [&](const BufferReport& scalar) {  // of all that lives beside it
    return std::ranges::all_of(report.buffers, [&](const BufferReport& b) {
      return b.kind != "arena" || b.end < scalar.begin || b.begin > scalar.end || b.offset <= scalar.offset;
    });
  };
  EXPECT_TRUE(std::ranges::any_of(report.buffers, [&](const BufferReport& b) {
    return b.kind == "arena" && b.bytes == 4 && b.offset > 0 && is_last(b);
  }));
  check_compiled(placed, in, 0);
}

TEST(Pitfalls, P5_R6_BoolIsOneByteInCompiledGraphs) {
  Builder b;
  const Value i = iota(b, DType::f32, {6}), below = less(i, like(i, 3)), odd = greater(i, like(i, 1));
  const Value mask = cast(below, DType::f32), both = mask * cast(odd, DType::f32);
  const Graph g = b.finish({mask, cast(both, DType::boolean), cast(mask + both, DType::boolean)});
  expect_compiled(g, {},
                  {floats({6}, {1, 1, 1, 0, 0, 0}), ints(DType::boolean, {6}, {0, 0, 1, 0, 0, 0}),
                   ints(DType::boolean, {6}, {1, 1, 1, 0, 0, 0})},
                  0);
  for (const Index size : {1, 7, 33, 4096, 4097}) {
    check(
        {mixed({size}), mixed({size}, 3)},
        [](const Values& v) {
          return Values{less(v[0], v[1]), equal(v[0] + v[1], v[1]), select(less(v[0], v[1]), v[1], v[0])};
        },
        0);
  }
}

TEST(Pitfalls, P10_P11_P12_P16_P17_P19_R5_CompiledCastsOfEveryPair) {
  const DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,     DType::i16,
                         DType::i32, DType::i64, DType::u8,  DType::u32,  DType::boolean};
  const double inf = std::numeric_limits<double>::infinity();
  for (const DType from : types) {
    const std::vector<Tensor> in{
        floats({13}, {0, 1, -1, 2.9, -2.9, 300, 3e9, -3e9, 1e20, inf, -inf, std::nan(""), -0.0}, from)};
    for (const Index size : {7, 13}) {
      check(
          in,
          [&](const Values& v) {
            Values out;
            const Value x = slice(v[0], 0, 0, size);
            for (const DType to : types) {
              out.push_back(cast(x, to));
              if (from != DType::boolean) out.push_back(cast(x + x, to));  // in a region
            }
            return out;
          },
          0);
    }
  }
  for (const Index size : {4097, 31}) {
    check(
        {counted({size}, -3, 0.5)},
        [](const Values& v) {
          return Values{cast(v[0], DType::f16), cast(v[0], DType::i32), cast(cast(v[0], DType::f64), DType::f32)};
        },
        0);
  }
  check({floats({6}, {-2.5, 3.7, 5.9, -0.1, 8.8, 0})}, [](const Values& v) { return cast(relu(v[0]), DType::i32); }, 0);
}

TEST(Pitfalls, P18_ACastInsideACompiledRegionIsKept) {
  const std::vector<Tensor> in{floats({6}, {-2.5, 3.7, 5.9, -0.1, 8.8, 0})};
  const Graph whole = graph_of(in, [](const Values& v) {
    const Value t = cast(relu(v[0]), DType::i32);
    return t + t;
  });
  expect_compiled(whole, in, {ints(DType::i32, {6}, {0, 6, 10, 0, 16, 0})}, 0);
  const Graph half = graph_of(in, [](const Values& v) {
    const Value t = cast(relu(v[0]), DType::f16);
    return cast(t + t, DType::f32);
  });
  EXPECT_EQ(reals(cpu_session({.threads = 1}).compile(half).run(named(half, in))[0])[2], 11.796875);
  check_compiled(half, in, 0);
}

TEST(Pitfalls, P6_CompiledGradientsInF64) {
  using Unary = Value (*)(Value);
  const Unary functions[] = {[](Value x) { return relu(x); },      [](Value x) { return gelu(x); },
                             [](Value x) { return gelu_tanh(x); }, [](Value x) { return silu(x); },
                             [](Value x) { return sigmoid(x); },   [](Value x) { return tanh(x); },
                             [](Value x) { return exp(x); },       [](Value x) { return softplus(x); }};
  const std::vector<Tensor> in{counted({3, 5}, -2.05, 0.3, DType::f64)};
  const Tensor one = floats({}, {1}, DType::f64);
  for (const Unary f : functions) {
    const Graph back = gradient(graph_of(in, [&](const Values& v) {
      const Value y = f(v[0]);
      return sum(y * y, {0, 1});
    }));
    check_compiled(back, {in[0], one}, 1e-13);
  }
  const Graph g = gradient(graph_of(in, [](const Values& v) {
    const Value y = relu(v[0]);
    return sum(y * y, {0, 1});
  }));
  std::vector<double> want;
  for (const double x : reals(in[0])) want.push_back(x > 0 ? 2 * x : 0);
  expect_compiled(g, {in[0], one}, {floats({3, 5}, want, DType::f64)}, 1e-15);
}

TEST(Pitfalls, P7_CompiledWeightsInHalfPrecision) {
  for (const DType d : {DType::f16, DType::bf16}) {
    const std::vector<Tensor> in{mixed({3, 8})};
    check(in, [&](const Values& v) {
      const Value w = constant(*v[0].builder, mixed({8, 5}, 4, d));
      return Values{matmul(v[0], widen(w)),
                    matmul(v[0] + v[0], cast(w, DType::f32)) + like(v[0], 1) * sum(v[0], {0, 1})};
    });
    check({mixed({3, 8}, 0, d), mixed({8, 5}, 4, d)}, [&](const Values& v) {
      const Value wide = cast(v[0], DType::f32) * cast(v[0], DType::f32);  // a half activation, widened
      return matmul(wide, cast(v[1], DType::f32));
    });
  }
}

TEST(Pitfalls, P15_ItemsOfACompiledBatchAreIndependent) {
  Builder b;
  const Dim batch = Dim::symbol("B", 0, 8);
  const Value x = b.input("x", {DType::f32, {batch, 5, 12}}), w = b.input("w", {DType::f32, {12, 7}});
  const Value table = b.input("t", {DType::f32, {5, 3}});
  const Value turned = rope(x, table, table, {.head_size = 6});
  const Value y = attention(turned, turned, x, {.layout = AttentionLayout::packed, .heads = 2});
  const Graph g = b.finish({turned, y, relu(matmul(x, w)), softmax(x, 1), layer_norm(x), sum(x, {1, 2}), cumsum(x, 1)});
  const Tensor all = mixed({3, 5, 12});
  const NamedTensors rest{{"w", mixed({12, 7}, 2)}, {"t", mixed({5, 3}, 1)}};
  const auto with = [&](Tensor t) {
    NamedTensors in = rest;
    in.emplace("x", std::move(t));
    return in;
  };
  at_every_level([&] {
    for (const bool fuse : {true, false}) {
      const Executable exe = cpu_session({.threads = 2}).compile(g, fuse ? CompileOptions{} : unfused(), careful);
      const std::vector<Tensor> whole = run_fenced(exe, with(all));
      expect_alike(whole, evaluate(g, with(all)), 1e-5);
      for (std::size_t item = 0; item < 3; ++item) {
        const std::vector<double> v = reals(all);
        const auto from = v.begin() + static_cast<std::ptrdiff_t>(item * 60);
        const std::vector<double> own(from, from + 60);
        const std::vector<Tensor> alone = run_fenced(exe, with(floats({1, 5, 12}, own)));
        for (std::size_t i = 0; i < whole.size(); ++i) {
          const std::vector<double> want = reals(alone[i]), got = reals(whole[i]);
          ASSERT_EQ(got.size(), 3 * want.size());
          for (std::size_t k = 0; k < want.size(); ++k) {
            ASSERT_EQ(got[item * want.size() + k], want[k]) << "output " << i << " item " << item;
          }
        }
      }
      EXPECT_EQ(run_fenced(exe, with(mixed({0, 5, 12})))[1].shape(), (Shape{0, 5, 12}));
    }
  });
}

TEST(Pitfalls, P21_P22_R21_CompiledProductsOfBatches) {
  for (const DType d : {DType::f32, DType::f64}) {
    const std::pair<Shape, Shape> pairs[] = {
        {{3, 2, 2}, {1, 2, 2}}, {{1, 2, 2}, {3, 2, 2}}, {{2, 3, 4}, {2, 4, 3}},     {{2, 2}, {3, 2, 4}},
        {{3, 2, 4}, {4, 2}},    {{5, 17, 9}, {9, 33}},  {{2, 1, 3, 4}, {5, 4, 2}},  {{4, 1, 7}, {4, 7, 1}},
        {{3, 0, 4}, {1, 4, 2}}, {{3, 2, 0}, {1, 0, 5}}, {{1, 65, 31}, {3, 31, 17}}, {{2, 3, 5, 7}, {1, 3, 7, 5}},
    };
    for (const auto& [one, two] : pairs) {
      const std::vector<Tensor> in{counted(one, -3, 1, d), counted(two, 2, -1, d)};
      check(
          in,
          [](const Values& v) {
            return Values{matmul(v[0], v[1]), matmul(cumsum(v[0], -1), cumsum(v[1], -1)),
                          relu(matmul(v[0], v[1])) + like(v[0], 1)};
          },
          1e-6);
    }
  }
}

TEST(Pitfalls, P32_P37_P38_R7_R21_CompiledRowsAndReductions) {
  for (const DType d : {DType::f32, DType::f64}) {
    const std::vector<Tensor> rows{
        floats({3, 4}, {1e4, 10001, 10002, 10003, 0, 1, 2, 3, -1e4, -9999, -9998, -9997}, d)};
    const Graph norm = graph_of(rows, [](const Values& v) { return layer_norm(v[0]); });
    const double a = 1.5 / std::sqrt(1.25 + 1e-5), c = 0.5 / std::sqrt(1.25 + 1e-5);
    expect_compiled(norm, rows, {floats({3, 4}, {-a, -c, c, a, -a, -c, c, a, -a, -c, c, a}, d)}, 2e-5);
    check(
        {mixed({2, 3, 4}, 0, d), mixed({2, 3, 4, 5}, 1, d), mixed({1, 2, 2}, 3, d), mixed({3, 37, 5}, 1, d)},
        [](const Values& v) {
          return Values{sum(v[0], {0, 2}),       mean(v[0], {0, 2}),    max(v[0], {0, 2}),
                        sum(v[1], {0, 2, 3}),    mean(v[1], {0, 2, 3}), max(v[1], {0, 2, 3}),
                        min(v[1], {1, 3}, true), softmax(v[2], 1),      softmax(v[3], 0),
                        softmax(v[3], 1),        sum(v[3], {1}),        layer_norm(v[3], {.axis = 1})};
        },
        1e-5);
    check({floats({3, 2}, {200, 1, 0, 2, -200, 3}, d)}, [](const Values& v) { return softmax(v[0], 0); });
  }
  const std::vector<Tensor> big{ints(DType::i32, {2}, {16777216, 16777217}), ints(DType::i32, {}, {1})};
  check(
      big,
      [](const Values& v) {
        return Values{v[0] + v[1],
                      maximum(v[0], v[1]),
                      sum(v[0], {0}),
                      cumsum(v[0], 0),
                      equal(v[0], v[0] + v[1]),
                      concat({v[0], v[0]}, 0),
                      select(less(v[0], v[0] + v[1]), v[0] * v[1], v[0])};
      },
      0);
}

TEST(Pitfalls, P30_P31_CompiledFormsOfGeluAndTies) {
  const std::vector<Tensor> in{floats({1, 2}, {1, 1}), floats({2, 1}, {1, 1})};
  const Graph g = graph_of(in, [](const Values& v) {
    const Value y = matmul(v[0], v[1]), z = matmul(v[0] * like(v[0], 1), v[1] * like(v[1], 1));
    return Values{gelu(y), gelu_tanh(z), gelu(sum(v[0], {0, 1})), gelu_tanh(sum(v[0], {0, 1}))};
  });
  expect_compiled(
      g, in,
      {floats({1, 1}, {1.9544997}), floats({1, 1}, {1.9545977}), floats({}, {1.9544997}), floats({}, {1.9545977})},
      2e-7);
  const std::vector<Tensor> alone{floats({2, 3}, {1, 2, 0.5, 1, -1, 2}), floats({3, 1}, {0.5, 0.5, 1})};
  for (const bool exact : {true, false}) {
    const Graph fused = graph_of(alone, [&](const Values& v) {
      const Value y = matmul(v[0], v[1]);
      return exact ? gelu(y) : gelu_tanh(y);
    });
    EXPECT_EQ(steps_of(cpu_session({.threads = 1}).compile(fused), "matmul_fused"), 1);
    const double two = exact ? 1.9544997 : 1.9545977;
    expect_compiled(fused, alone, {floats({2, 1}, {two, two})}, 2e-7);
  }
  const std::vector<double> want{0, 2, 2, -0.0, -2};
  for (const DType d : {DType::f32, DType::f64}) {
    const std::vector<Tensor> ties{floats({5}, {0.5, 1.5, 2.5, -0.5, -1.5}, d)};
    const Graph r = graph_of(ties, [](const Values& v) { return Values{round(v[0]), neg(round(neg(v[0])))}; });
    expect_compiled(r, ties, {floats({5}, want, d), floats({5}, want, d)}, 0);
  }
}

TEST(Pitfalls, P67_R22_EveryOpStaysWithinItsOperands) {
  int ran = 0;
  const Session session = cpu_session({.threads = 1});
  for (const OpFolder& folder : op_folders()) {
    for (const OpDef* op : folder.ops()) {
      SCOPED_TRACE(op->name());
      int of_op = 0;
      for (const AnyCase& c : op->cases()) {
        const Bound b = program_of(bind_case(*op, c, {}, 1));
        const Executable exe = session.compile(b.graph, unfused(), careful);
        NamedTensors in;
        for (std::size_t i = 0; i < b.inputs.size(); ++i) in.emplace(b.graph.input_names[i], b.inputs[i]);
        expect_alike(run_fenced(exe, in, {.dims = &b.dims}), evaluate(b.graph, b.inputs, {false, b.dims}), 1e-4);
        ++of_op;
      }
      EXPECT_GT(of_op, 0);
      ran += of_op;
    }
  }
  EXPECT_GT(ran, 100);
}

}  // namespace
}  // namespace rlx::test
