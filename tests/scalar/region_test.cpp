// Regions as steps: a body run as one step gives the bits of its nodes run one by one, at every level; broadcasts,
// casts, several results, sizes that no block divides.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "graph_steps.h"
#include "levels.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "passes/passes.h"
#include "pitfalls.h"

namespace rlx::test {
namespace {

// The graph node by node, and with all nodes in one body, run whole, in pieces, strided and in place: the same bits.
// Gives the results of the highest level.
std::vector<Tensor> check(const Graph& g, const std::vector<Tensor>& in) {
  const Graph body = fused(g);
  std::size_t regions = 0;
  for (const Node& n : body.nodes) regions += n.op == &fusion_op();
  EXPECT_EQ(regions, 1u);
  std::vector<Tensor> last;
  at_every_level([&] {
    last = run_steps(g, in);
    for (const StepRun& how : {StepRun{}, StepRun{.pieces = 1}, StepRun{.pieces = 2, .strided = true},
                               StepRun{.pieces = 3, .in_place = true}}) {
      const std::vector<Tensor> got = run_steps(body, in, how);
      for (std::size_t i = 0; i < last.size(); ++i) {
        EXPECT_TRUE(identical(got[i], last[i])) << "result " << i << " pieces " << how.pieces;
      }
    }
  });
  return last;
}

using Shape = std::vector<Index>;

TEST(ScalarRegion, P1_P2_P3_P4_R14_OperandsStretchAnyWay) {
  const std::vector<std::vector<Shape>> all{{{4, 8}, {4, 1}, {4, 8}},
                                            {{4, 1}, {1, 8}, {4, 8}},
                                            {{2, 1, 4}, {3, 1}, {2, 3, 4}},
                                            {{2, 4, 3}, {2, 1, 3}, {2, 4, 3}},
                                            {{5}, {3, 7, 1}, {3, 7, 5}},
                                            {{3, 1, 5, 1}, {1, 7, 5, 5}, {3, 7, 5, 5}},
                                            {{}, {2, 3}, {2, 3}},
                                            {{7}, {1}, {7}},
                                            {{37, 1}, {1, 1033}, {37, 1033}},
                                            {{3, 300}, {300}, {3, 300}},
                                            {{3, 700}, {3, 1}, {3, 700}},
                                            {{2, 1, 257}, {5, 1}, {2, 5, 257}},
                                            {{0, 3}, {1, 3}, {0, 3}},
                                            {{1, 1}, {1}, {1, 1}}};
  for (const auto& shapes : all) {
    for (const DType d : {DType::f32, DType::f64, DType::i64, DType::f16, DType::i8, DType::c64}) {
      SCOPED_TRACE(text(std::span(shapes[0])) + " " + text(std::span(shapes[1])) + " " + std::string(name(d)));
      const Tensor a = counted(shapes[0], 1, 1.0 / 8, d == DType::c64 ? DType::f32 : d);
      const Tensor b = counted(shapes[1], 2, 1, d == DType::c64 ? DType::f32 : d);
      const Graph g = graph_of({a, b}, [&](const Values& v) {
        const Value x = cast(v[0], d), y = cast(v[1], d);
        return broadcast((x + y) * y - x, {shapes[2].begin(), shapes[2].end()});
      });
      const std::vector<Tensor> got = check(g, {a, b});
      const Tensor want = evaluate(g, std::vector{a, b})[0];
      const Difference e = compare(got[0], want, relative(1e-6));
      EXPECT_TRUE(e.ok) << e.where;
    }
  }
}

TEST(ScalarRegion, P2_P4_ComparisonsAndSelectionStretch) {
  for (const Shape& shape : {Shape{3, 1}, Shape{3}, Shape{}, Shape{1, 3}, Shape{3, 3}}) {
    const Tensor x = counted({3, 3}, 0, 1), y = counted(shape, 1, 3);
    const std::vector<Tensor> got =
        check(graph_of({x, y},
                       [](const Values& v) {
                         const Value below = less(v[0], v[1]);
                         return Values{below, select(below, v[1], v[0]), cast(less_equal(v[1], v[0]), DType::f32)};
                       }),
              {x, y});
    for (std::size_t i = 0; i < 9; ++i) {
      const double a = reals(x)[i], b = reals(y)[source(shape, {3, 3}, i)];
      EXPECT_EQ(reals(got[0])[i], a < b);
      EXPECT_EQ(reals(got[1])[i], a < b ? b : a);
      EXPECT_EQ(reals(got[2])[i], b <= a);
    }
  }
}

TEST(ScalarRegion, P5_ABoolIsOneByte) {
  const Tensor three = ints(DType::i64, {}, {3});
  const std::vector<Tensor> got = check(graph_of({three},
                                                 [](const Values& v) {
                                                   const Value on = less(iota(*v[0].builder, DType::i64, {6}), v[0]);
                                                   return Values{cast(on, DType::f32), bitwise_not(on)};
                                                 }),
                                        {three});
  EXPECT_EQ(reals(got[0]), (std::vector<double>{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(reals(got[1]), (std::vector<double>{0, 0, 0, 1, 1, 1}));
}

TEST(ScalarRegion, P18_CastsInsideAChainCount) {
  const Tensor x = floats({6}, {-2.5, 3.7, 5.9, -0.1, 8.8, 0});
  const std::vector<Tensor> got = check(graph_of({x},
                                                 [](const Values& v) {
                                                   const Value whole = cast(relu(v[0]), DType::i32);
                                                   const Value half = cast(v[0], DType::f16);
                                                   return Values{whole + whole, cast(half, DType::f32) * like(v[0], 2)};
                                                 }),
                                        {x});
  EXPECT_EQ(reals(got[0]), (std::vector<double>{0, 6, 10, 0, 16, 0}));
  EXPECT_EQ(reals(got[1])[2], 11.796875);
}

TEST(ScalarRegion, P20_AnOperandThatIsNoSuffix) {
  for (const DType d : {DType::f32, DType::f64, DType::f16}) {
    const Tensor x = counted({2, 4, 3}, 0, 1, d), row = counted({2, 1, 3}, 1, 1, d);
    const std::vector<Tensor> got =
        check(graph_of({x, row}, [](const Values& v) { return relu((v[0] + v[1]) * v[1] - v[0]); }), {x, row});
    for (std::size_t i = 0; i < 24; ++i) {
      const double a = static_cast<double>(i),
                   r = static_cast<double>(1 + i / 12 * 3 + i % 3);  // NOLINT(bugprone-integer-division)
      EXPECT_EQ(reals(got[0])[i], (a + r) * r - a);
    }
  }
}

TEST(ScalarRegion, P30_TheTwoGeluFormsStayApart) {
  const Tensor x = floats({3, 5}, std::vector<double>(15, 2.0));
  const std::vector<Tensor> got =
      check(graph_of({x}, [](const Values& v) { return Values{gelu(v[0]), gelu_tanh(v[0])}; }), {x});
  expect_near(got[0], std::vector<double>(15, 1.9544997), 3e-7);
  expect_near(got[1], std::vector<double>(15, 1.9545977), 3e-7);
}

TEST(ScalarRegion, P31_TiesRoundToEven) {
  const Tensor x = floats({7}, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5});
  const std::vector<Tensor> got =
      check(graph_of({x}, [](const Values& v) { return round(v[0]) + like(v[0], 0); }), {x});
  EXPECT_EQ(reals(got[0]), (std::vector<double>{0, 2, 2, 0, -2, -2, 4}));
}

TEST(ScalarRegion, P33_AnOperandThatIsReadAgainIsIntact) {
  // relu(x) could take the memory of x, of which the sum has need.
  const Tensor x = counted({3000}, -1500, 1);
  const std::vector<Tensor> got = check(graph_of({x},
                                                 [](const Values& v) {
                                                   const Value y = relu(v[0]);
                                                   return Values{y, v[0] + y, exp(v[0] + y)};
                                                 }),
                                        {x});
  for (std::size_t i = 0; i < 3000; ++i) {
    const double v = static_cast<double>(i) - 1500;
    EXPECT_EQ(reals(got[1])[i], v + std::max(v, 0.0));
    if (i % 500) i += 99;
  }
}

TEST(ScalarRegion, HalvesRoundEveryStep) {
  const Tensor x = floats({3}, {2048, 1, 0.1}, DType::f16), one = floats({3}, {1, 1, 1}, DType::f16);
  const std::vector<Tensor> got =
      check(graph_of({x, one}, [](const Values& v) { return v[0] + v[1] - v[0]; }), {x, one});
  EXPECT_EQ(reals(got[0])[0], 0);  // 2049 is no f16
}

TEST(ScalarRegion, HalfBytesReshapesAndCoordinates) {
  const Tensor x = counted({5, 1, 7}, 0, 0.4), y = counted({7}, -8, 1, DType::i4);
  const std::vector<Tensor> got = check(graph_of({x, y},
                                                 [](const Values& v) {
                                                   const Value flat = reshape(v[0] * v[0], {Dim(5), Dim(7)});
                                                   const Value at =
                                                       iota(*v[0].builder, DType::f32, {Dim(5), Dim(7)}, 0);
                                                   const Value low = cast(v[1], DType::f32);
                                                   return Values{flat + at, cast(at + low, DType::i4), flat * low};
                                                 }),
                                        {x, y});
  for (std::size_t i = 0; i < 35; ++i) {
    const double v = reals(x)[i], row = static_cast<double>(i / 7),  // NOLINT(bugprone-integer-division)
        low = static_cast<double>(i % 7) - 8;
    EXPECT_FLOAT_EQ(static_cast<float>(reals(got[0])[i]), static_cast<float>(v * v + row));
    EXPECT_EQ(wholes(got[1])[i], static_cast<Index>(row + low));
  }
}

TEST(ScalarRegion, DivisionOfAnIntegerByZeroIsAnError) {
  const Tensor x = ints(DType::i32, {3}, {1, 2, 3}), y = ints(DType::i32, {3}, {1, 0, 1});
  const Graph g = graph_of({x, y}, [](const Values& v) { return v[0] / v[1]; });
  EXPECT_THROW(run_steps(g, std::vector{x, y}), Error);
}

TEST(ScalarRegion, SymbolicSizesOfAnyValue) {
  const Dim b = Dim::symbol("B", 0, 64), s = Dim::symbol("S", 0, 4096);
  Builder builder;
  const Value x = builder.input("x", {DType::f32, {b, s}}), y = builder.input("y", {DType::f32, {b, 1}});
  const Value z = builder.input("z", {DType::f32, {s}});
  const Graph g = builder.finish({tanh(x + y) * z, exp(x)});
  for (const auto& [rows, columns] : {std::pair<Index, Index>{3, 1000}, {1, 1}, {64, 3}, {0, 5}, {5, 0}, {2, 4096}}) {
    const std::vector<Tensor> in{counted({rows, columns}, -1, 1e-3), counted({rows, 1}, 0, 0.1),
                                 counted({columns}, 1, 1)};
    check(g, in);
  }
}

// Random bodies over a few shapes and types.
class Bodies {
 public:
  explicit Bodies(unsigned seed) : random_(seed) {}

  Graph make() {
    const Index rows = 1 + pick(5), columns = pick(8) == 0 ? 300 + pick(800) : 1 + pick(9);
    full_ = {Dim(rows), Dim(columns)};
    const std::vector<std::vector<Dim>> shapes{full_, {Dim(rows), Dim(1)}, {Dim(columns)}, {}, {Dim(1), Dim(columns)}};
    for (int i = 0; i < 4; ++i) {
      const DType d = types[static_cast<std::size_t>(pick(std::size(types)))];
      values_.push_back(builder_.input("x" + std::to_string(i), {d, shapes[static_cast<std::size_t>(pick(5))]}));
    }
    const Index steps = 3 + pick(20);
    for (Index i = 0; i < steps; ++i) values_.push_back(node());
    Values out;
    for (Index i = 0; i < 1 + pick(3); ++i) {
      const Value v = values_[values_.size() - 1 - static_cast<std::size_t>(pick(3))];
      out.push_back(broadcast(v, full_));
    }
    return builder_.finish(out);
  }

 private:
  static constexpr DType types[] = {DType::f32, DType::f32, DType::f32,     DType::f16, DType::bf16, DType::f64,
                                    DType::i32, DType::i64, DType::boolean, DType::u8,  DType::i8};
  Index pick(std::size_t n) { return static_cast<Index>(random_() % n); }
  Value any() { return values_[static_cast<std::size_t>(pick(values_.size()))]; }

  Value node() {
    const Value a = any();
    Value b = any();
    if (b.dtype() != a.dtype()) b = cast(b, a.dtype());
    if (pick(6) == 0) return cast(a, types[static_cast<std::size_t>(pick(std::size(types)))]);
    if (pick(6) == 0) return select(cast(any(), DType::boolean), a, b);
    if (pick(6) == 0) return less(a, b);
    if (a.dtype() == DType::boolean) return bitwise_xor(a, b);
    if (is_integer(a.dtype())) {
      Value (*const whole[])(Value, Value) = {add, sub, mul, maximum, minimum, bitwise_and, shift_left};
      return whole[pick(std::size(whole))](a, b);
    }
    Value (*const two[])(Value, Value) = {add, sub, mul, div, maximum, minimum, pow, atan2, fmod};
    Value (*const one[])(Value) = {exp, tanh, sin, gelu, silu, sqrt, neg, abs, log, sigmoid, round, relu, erf, mish};
    return pick(2) == 0 ? two[pick(std::size(two))](a, b) : one[pick(std::size(one))](a);
  }

  std::mt19937 random_;
  Builder builder_;
  Values values_;
  std::vector<Dim> full_;
};

Tensor drawn(const TensorType& t, unsigned seed) {
  CaseInput in(t);
  if (is_integer(t.dtype)) in.range(is_signed_integer(t.dtype) ? -9 : 0, 9);
  return fill(in, {}, seed);
}

// Bits of every NaN alike: which operand's payload comes through is free.
Tensor plain(Tensor t) {
  if (!is_float(t.dtype())) return t;
  for (Index i = 0; i < t.count(); ++i) {
    if (std::isnan(decode_float(t.dtype(), t.code(i)))) t.set_code(i, encode_float(t.dtype(), std::nan("")));
  }
  return t;
}

void check_random(unsigned first, unsigned last) {
  const DeviceInfo device;
  const CompileOptions options;
  std::size_t regions = 0;
  for (unsigned seed = first; seed < last; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Graph g = Bodies(seed).make();
    std::vector<Tensor> in;
    for (const Id i : g.inputs) in.push_back(drawn(g.nodes[i].results[0], seed + i));
    Report report;
    PassContext context{device, options, report};
    const Graph joined = fuse_elementwise(g, context);
    for (const Node& n : joined.nodes) regions += n.op == &fusion_op();
    at_every_level([&] {
      const std::vector<Tensor> want = run_steps(g, in);
      for (const Graph& form : {joined, fused(g)}) {
        for (const StepRun& how :
             {StepRun{}, StepRun{.pieces = seed + 1, .strided = true}, StepRun{.pieces = seed + 2, .in_place = true}}) {
          const std::vector<Tensor> got = run_steps(form, in, how);
          for (std::size_t i = 0; i < want.size(); ++i) {
            EXPECT_TRUE(identical(plain(got[i]), plain(want[i]))) << "result " << i << " pieces " << how.pieces;
          }
        }
      }
    });
  }
  EXPECT_GT(regions, (last - first) / 2);
}

TEST(ScalarRegion, RandomBodiesGiveTheBitsOfTheirNodes) { check_random(0, 60); }
TEST(BulkScalarRegion, ManyRandomBodiesGiveTheBitsOfTheirNodes) { check_random(1000, 2000); }

}  // namespace
}  // namespace rlx::test
