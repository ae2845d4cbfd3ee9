// Steps of integer products and of quantisation at every level, and products with the scaling behind them as one step.
#include <algorithm>
#include <random>

#include "ir/outline.h"
#include "levels.h"
#include "matmul_product.h"
#include "ops/cast/cast.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/quantize/quantize.h"
#include "ops/scalar/scalar.h"

namespace rlx::test {
namespace {

TEST(IntegerSteps, EveryCaseAtEveryLevel) {
  const CaseCount products = check_steps(matmul_integer_op, exact);
  EXPECT_GT(products.ran, 100);
  EXPECT_EQ(products.declined, 0);
  EXPECT_GT(check_steps(quantize_op, exact, true).ran, 40);
  EXPECT_GT(check_steps(dequantize_op, std::nullopt, true).ran, 20);
  EXPECT_GT(check_steps(quantize_rows_op, exact).ran, 20);
}

// All codes of a type; every third element is one of its ends.
Tensor codes(DType d, const Shape& shape, unsigned seed) {
  Tensor t(d, shape);
  std::mt19937 random(seed);
  std::vector<std::int64_t> v(static_cast<std::size_t>(t.count()));
  const std::int64_t low = d == DType::i8 ? -128 : 0;
  const auto below = [&random](unsigned n) { return static_cast<std::int64_t>(random() % n); };
  for (std::int64_t& x : v) x = low + (below(3) == 0 ? 255 * below(2) : below(256));
  store(t, v);
  return t;
}

Tensor integer_product(const Tensor& a, const Tensor& b, bool packed, MatmulAttrs attrs = {}, unsigned pieces = 0) {
  Builder g;
  const Value x = g.input("a", a.type()), y = packed ? constant(g, b) : g.input("b", b.type());
  const Graph graph = g.finish({g.emit_one(matmul_integer_op, attrs, {x, y})});
  const std::vector<Tensor> in{a, b};
  std::string why;
  const auto out = run_node(graph, graph.outputs[0].node, in, {}, cpu_makers(), {.pieces = pieces}, &why);
  EXPECT_TRUE(out) << why;
  return out ? (*out)[0] : Tensor();
}

// Against a plain loop in i64, for all pairs of signs, packed and not.
void check_size(Index m, Index k, Index n, unsigned seed) {
  for (const DType da : {DType::i8, DType::u8}) {
    for (const DType db : {DType::i8, DType::u8}) {
      SCOPED_TRACE(fmt::format("{} {} {}x{}x{}", name(da), name(db), m, k, n));
      const Tensor a = codes(da, {m, k}, seed), b = codes(db, {k, n}, seed + 1);
      const std::vector<std::int64_t> x = load<std::int64_t>(a), y = load<std::int64_t>(b);
      std::vector<std::int64_t> z(static_cast<std::size_t>(m * n));
      for (Index i = 0; i < m; ++i) {
        for (Index q = 0; q < k; ++q) {
          for (Index j = 0; j < n; ++j)
            z[static_cast<std::size_t>(i * n + j)] +=
                x[static_cast<std::size_t>(i * k + q)] * y[static_cast<std::size_t>(q * n + j)];
        }
      }
      const Tensor want = Tensor::of(DType::i32, {m, n}, z);
      at_every_level([&] {
        for (const bool packed : {false, true}) {
          EXPECT_TRUE(identical(integer_product(a, b, packed), want)) << packed;
          EXPECT_TRUE(identical(integer_product(a, b, packed, {}, 3), want)) << packed;
          EXPECT_TRUE(identical(integer_product(a, transposed(b), packed, {false, true}), want)) << packed;
          EXPECT_TRUE(identical(integer_product(transposed(a), b, packed, {true, false}), want)) << packed;
        }
      });
    }
  }
}

TEST(IntegerSteps, SizesAroundTiles) {
  check_size(1, 1, 1, 1);
  check_size(1, 7, 300, 2);
  check_size(2, 64, 65, 3);
  check_size(7, 5, 63, 4);
  check_size(0, 4, 5, 5);
  check_size(5, 0, 70, 6);
  check_size(75, 33, 129, 7);
}

TEST(IntegerSteps, SumsContinueThroughBlocksOfTheInnerSize) {
  for (const Index k : {767, 769, 1535, 1536, 1537}) check_size(3, k, 70, static_cast<unsigned>(k));
  check_size(73, 1550, 17, 8);
}

TEST(BulkIntegerSteps, RandomSizes) {
  std::mt19937_64 random(5);
  const auto pick = [&](Index most) { return 1 + static_cast<Index>(random() % static_cast<std::uint64_t>(most)); };
  for (unsigned i = 0; i < 20; ++i) check_size(pick(160), pick(200), pick(300), 100 + i);
}

// Pairs of products do not fit 16 bits: instructions that saturate there would give 32767 a pair.
TEST(IntegerSteps, NothingSaturatesAt16Bits) {
  at_every_level([] {
    const Tensor a = Tensor::of(DType::u8, {1, 64}, std::vector<std::int64_t>(64, 255));
    const Tensor b = Tensor::of(DType::i8, {64, 1}, std::vector<std::int64_t>(64, 127));
    for (const bool packed : {false, true})
      EXPECT_EQ(load<std::int64_t>(integer_product(a, b, packed))[0], 64 * 255 * 127);
  });
}

// Nearest, ties to even, and the largest magnitude is 127 of either sign: at every level, wherever in the row it is.
TEST(QuantizeRowsSteps, P31_TiesGoToEvenInEveryLane) {
  at_every_level([] {
    for (const Index columns : {1, 5, 16, 37, 130}) {
      std::vector<double> v(static_cast<std::size_t>(columns)), want(v.size());
      for (std::size_t i = 0; i < v.size(); ++i) {
        v[i] = static_cast<double>(i % 100) - 49.5;
        want[i] = std::nearbyint(v[i]);
      }
      v.back() = -127;
      want.back() = -127;
      Builder g;
      const Value x = g.input("x", {DType::f32, {1, columns}});
      const QuantizedRows q = quantize_rows(x);
      const Graph graph = g.finish({q.codes, q.scale});
      const std::vector<Tensor> in{Tensor::of(DType::f32, {1, columns}, v)};
      const auto out = run_node(graph, graph.outputs[0].node, in, {}, cpu_makers());
      ASSERT_TRUE(out);
      EXPECT_EQ(load<double>((*out)[0]), want);
      EXPECT_EQ(load<double>((*out)[1])[0], 1);
    }
  });
}

// --- products with what follows them ---

struct Scaled {
  Value sums, row, column, bias;
};

// x[rows, inner] by rows times w, scaled, and what `rest` puts behind it: one step with the bits of the ops alone.
template <class F>
void check_scaled(std::vector<Index> batch, Index rows, Index inner, Index columns, F rest) {
  const Dim m = Dim::symbol("M", 0, 512);
  const DimEnv dims{{"M", rows}};
  for (const bool packed : {false, true}) {
    SCOPED_TRACE(fmt::format("{}x{}x{} packed {}", rows, inner, columns, packed));
    Builder g;
    std::vector<Dim> x_dims(batch.begin(), batch.end()), row_dims = x_dims;
    x_dims.insert(x_dims.end(), {m, inner});
    row_dims.insert(row_dims.end(), {m, 1});
    const Value x = g.input("x", {DType::i8, x_dims});
    const Value row = g.input("row", {DType::f32, row_dims});
    const Value column = g.input("column", {DType::f32, {columns}}), bias = g.input("bias", {DType::f32, {columns}});
    const Tensor weights = codes(DType::i8, {inner, columns}, 9);
    const Value w = packed ? constant(g, weights) : g.input("w", weights.type());
    const Graph plain = g.finish({rest(Scaled{matmul_integer(x, w), row, column, bias})});
    const Graph one = fused_by_pass(plain);
    ASSERT_TRUE(std::ranges::none_of(one.nodes, [](const Node& n) { return n.op == &matmul_integer_op; }));
    std::vector<Tensor> in;
    unsigned seed = 3;
    for (const Id id : plain.inputs) {
      const TensorType& t = plain.nodes[id].results[0];
      in.push_back(
          fill(CaseInput(t).range(t.dtype == DType::i8 ? -128 : -2, t.dtype == DType::i8 ? 127 : 3), dims, seed++));
    }
    expect_same_bits_by_steps(one, plain, in, dims);
  }
}

template <class F>
void check_all(F rest) {
  check_scaled({}, 1, 1, 1, rest);
  check_scaled({}, 7, 13, 63, rest);
  check_scaled({}, 80, 33, 300, rest);
  check_scaled({2, 3}, 9, 8, 5, rest);
  check_scaled({3}, 75, 4, 64, rest);
  check_scaled({}, 0, 4, 4, rest);
  check_scaled({}, 3, 1600, 70, rest);
}

Value scaled(const Scaled& s) { return cast(s.sums, DType::f32) * s.row * s.column; }

TEST(FusedIntegerMatmul, ScaleBiasAndActivation) {
  check_all([](const Scaled& s) { return scaled(s); });
  check_all([](const Scaled& s) { return scaled(s) + s.bias; });
  check_all([](const Scaled& s) { return gelu(scaled(s) + s.bias); });
}

TEST(FusedIntegerMatmul, OtherOrdersAndTypes) {
  check_all([](const Scaled& s) { return cast(s.sums, DType::f32) * s.column * s.row + s.bias; });
  check_all([](const Scaled& s) { return s.bias + s.column * (s.row * cast(s.sums, DType::f32)); });
  check_all([](const Scaled& s) { return scaled(s) * s.bias; });
  check_all([](const Scaled& s) { return relu(cast(s.sums, DType::f32)); });
  check_all([](const Scaled& s) { return cast(scaled(s), DType::bf16); });
  check_all([](const Scaled& s) { return s.sums + s.sums; });
  check_all([](const Scaled& s) { return scaled(s) + scaled(s); });
}

// A row's bits do not depend on the other rows, scaling included.
TEST(FusedIntegerMatmul, ARowAloneHasTheBitsOfTheRowAmongOthers) {
  const Tensor w = codes(DType::i8, {200, 150}, 1), a = codes(DType::i8, {90, 200}, 2);
  const Tensor row = numbers(DType::f32, {90, 1}, 3), column = numbers(DType::f32, {150}, 4);
  const auto run = [&](Index first, Index rows) {
    Builder g;
    const Value x = g.input("x", {DType::i8, {rows, 200}}), r = g.input("r", {DType::f32, {rows, 1}});
    const Value c = g.input("c", {DType::f32, {150}});
    const Graph one = fused_by_pass(g.finish({scaled({matmul_integer(x, constant(g, w)), r, c, c}) + c}));
    return by_steps(one, std::vector<Tensor>{rows_of(a, first, rows), rows_of(row, first, rows), column}, {}, 0)[0];
  };
  at_every_level([&] {
    const Tensor all = run(0, 90);
    for (const Index rows : {1, 2, 3, 5, 8, 13}) EXPECT_TRUE(identical(run(rows, rows), rows_of(all, rows, rows)));
  });
}

// Zero points of rows, subtracted by the kernel: every bit of the definition, at every level, packed or not, scaled.
TEST(FusedIntegerMatmul, ZeroPointsOfRows) {
  for (const DType d : {DType::u8, DType::i8}) {
    for (const DType e : {DType::u8, DType::i8}) {
      const Tensor w = codes(e, {130, 70}, 1), a = codes(d, {80, 130}, 2), z = codes(d, {80, 1}, 3);
      const Tensor row = numbers(DType::f32, {80, 1}, 4), column = numbers(DType::f32, {70}, 5);
      for (const bool packed : {false, true}) {
        Builder g;
        const Value x = g.input("x", a.type()), zero = g.input("z", z.type());
        const Value r = g.input("r", row.type()), c = g.input("c", column.type());
        std::vector<Tensor> in{a, z, row, column};
        if (!packed) in.push_back(w);
        const Value y = packed ? constant(g, w) : g.input("w", w.type());
        const Graph plain = g.finish({scaled({matmul_integer(x, y, zero, MatmulAttrs{}), r, c, c}) + c});
        const Graph one = fused_by_pass(plain);
        const Tensor want = evaluate(plain, in)[0];
        at_every_level([&] {
          EXPECT_TRUE(identical(by_steps(plain, in, {}, 2)[0], want));
          EXPECT_TRUE(identical(by_steps(one, in, {}, 2)[0], want));
        });
      }
    }
  }
}

// Codes with zero points: (a - za)(b - zb), by hand.
TEST(MatmulInteger, ZeroPointsByHand) {
  Builder g;
  const Value a = g.input("a", {DType::u8, {2, 3}}), b = g.input("b", {DType::u8, {3, 2}});
  const Value za = g.input("za", {DType::u8, {2, 1}}), zb = g.input("zb", {DType::u8, {2}});
  const Graph graph = g.finish({matmul_integer(a, b, za, zb)});
  const std::vector<Tensor> in{Tensor::of<std::int64_t>(DType::u8, {2, 3}, {11, 7, 3, 200, 0, 255}),
                               Tensor::of<std::int64_t>(DType::u8, {3, 2}, {1, 4, 2, 5, 3, 6}),
                               Tensor::of<std::int64_t>(DType::u8, {2, 1}, {12, 100}),
                               Tensor::of<std::int64_t>(DType::u8, {2}, {0, 10})};
  // Row 0: (-1, -5, -9), row 1: (100, -100, 155); columns (1, 2, 3) and (-6, -5, -4).
  const std::vector<std::int64_t> want{-38, 67, 365, -720};
  EXPECT_EQ(load<std::int64_t>(evaluate(graph, in)[0]), want);
}

}  // namespace
}  // namespace rlx::test
