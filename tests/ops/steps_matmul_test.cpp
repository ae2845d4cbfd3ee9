// Steps of matmul at every level: against the reference and f64, and one order of sums whatever the sizes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "levels.h"
#include "matmul_product.h"

namespace rlx::test {
namespace {

// Largest error in units of what rounding may do: (K + 2)·unit·sum |a||b|, and one rounding of the result.
double error_in_bounds(const Tensor& a, const Tensor& b, const Tensor& c, double unit, double result_unit) {
  const Index m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  const std::vector<double> x = load<double>(a), y = load<double>(b), z = load<double>(c);
  double worst = 0;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (Index q = 0; q < k; ++q) {
        const double p = x[static_cast<std::size_t>(i * k + q)] * y[static_cast<std::size_t>(q * n + j)];
        sum += p;
        size += std::fabs(p);
      }
      const double bound = static_cast<double>(k + 2) * unit * size + result_unit * std::fabs(sum) + 1e-300;
      worst = std::max(worst, std::fabs(z[static_cast<std::size_t>(i * n + j)] - sum) / bound);
    }
  }
  return worst;
}

TEST(MatmulSteps, EveryCaseAtEveryLevel) {
  const CaseCount count = check_steps(matmul_op, relative(2e-6, "sums of f32 instead of f64"));
  EXPECT_GT(count.ran, 500);
  EXPECT_EQ(count.declined, 0);
}

TEST(MatmulSteps, ConstantsArePackedToTheSameBits) {
  int compared = 0;
  const std::vector<AnyCase> cases = matmul_op.cases();
  for (const AnyCase& c : cases) {
    for (const auto& replace : type_variants(c)) {
      std::optional<Bound> b;
      try {
        b = bind_case(matmul_op, c, replace, 3);
      } catch (const Error&) {
        continue;  // the type is refused
      }
      const auto attrs = c.attrs.as<MatmulAttrs>();
      at_every_level([&] {
        const Tensor loose = product(b->inputs[0], b->inputs[1], attrs);
        for (const unsigned pieces : {0u, 5u}) {
          EXPECT_TRUE(identical(product(b->inputs[0], b->inputs[1], attrs, true, pieces), loose));
        }
        ++compared;
      });
    }
  }
  EXPECT_GT(compared, 300);
}

struct Precision {
  DType dtype;
  double unit, result_unit;
};
constexpr Precision precisions[] = {{DType::f32, 0x1p-24, 0},
                                    {DType::f64, 0x1p-53, 0x1p-52},
                                    {DType::f16, 0x1p-24, 0x1p-11},
                                    {DType::bf16, 0x1p-24, 0x1p-8}};

void check_size(Index m, Index k, Index n, unsigned seed) {
  SCOPED_TRACE(fmt::format("{}x{}x{}", m, k, n));
  for (const Precision& p : precisions) {
    SCOPED_TRACE(name(p.dtype));
    const Tensor a = numbers(p.dtype, {m, k}, seed), b = numbers(p.dtype, {k, n}, seed + 1);
    const Tensor at = transposed(a), bt = transposed(b);
    at_every_level([&] {
      const Tensor c = product(a, b);
      EXPECT_LE(error_in_bounds(a, b, c, p.unit, p.result_unit), 1.0);
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          for (const bool packed : {false, true}) {
            const Tensor same = product(ta ? at : a, tb ? bt : b, {ta, tb}, packed, seed);
            EXPECT_TRUE(identical(same, c)) << ta << tb << packed;
          }
        }
      }
    });
  }
}

TEST(MatmulSteps, RandomSizes) {
  std::mt19937_64 random(4);
  const Index sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 15, 16, 17, 31, 33, 64, 65, 72, 73, 97};
  const auto pick = [&] { return sizes[random() % std::size(sizes)]; };
  for (unsigned i = 0; i < 40; ++i) check_size(pick(), pick(), pick(), 10 + i);
}

TEST(BulkMatmulSteps, ManyRandomSizes) {
  std::mt19937_64 random(5);
  const auto pick = [&](Index most) { return 1 + static_cast<Index>(random() % static_cast<std::uint64_t>(most)); };
  for (unsigned i = 0; i < 25; ++i) check_size(pick(320), pick(160), pick(200), 100 + i);
}

TEST(MatmulSteps, SumsContinueThroughBlocksOfTheInnerSize) {
  for (const Index k : {383, 384, 385, 769, 1543}) check_size(7, k, 70, static_cast<unsigned>(k));
  check_size(80, 401, 17, 8);
}

TEST(MatmulSteps, EmptySizes) {
  for (const Index m : {0, 1, 9}) {
    for (const Index k : {0, 3}) {
      for (const Index n : {0, 1, 70}) check_size(m, k, n, 1);
    }
  }
  at_every_level([] {
    const Tensor zeros = product(Tensor(DType::f32, {9, 0}), Tensor(DType::f32, {0, 70}));
    EXPECT_TRUE(identical(zeros, Tensor(DType::f32, {9, 70})));
  });
}

// The bits of a row do not depend on the other rows: the batch size of a served model does not change its answers.
TEST(MatmulSteps, ARowAloneHasTheBitsOfTheRowAmongOthers) {
  for (const Precision& p : precisions) {
    SCOPED_TRACE(name(p.dtype));
    const Tensor a = numbers(p.dtype, {128, 389}, 1), b = numbers(p.dtype, {389, 99}, 2);
    at_every_level([&] {
      const Tensor all = product(a, b);
      for (const bool packed : {false, true}) {
        for (Index i = 0; i < 128; i += 25) {
          EXPECT_TRUE(identical(product(rows_of(a, i, 1), b, {}, packed), rows_of(all, i, 1))) << i;
        }
        for (const Index rows : {2, 3, 4, 5, 7, 8, 12, 13}) {
          EXPECT_TRUE(identical(product(rows_of(a, rows, rows), b, {}, packed), rows_of(all, rows, rows))) << rows;
        }
      }
    });
  }
}

TEST(MatmulSteps, AColumnAloneHasTheBitsOfTheColumnAmongOthers) {
  for (const Precision& p : precisions) {
    const Tensor a = numbers(p.dtype, {11, 97}, 1), bt = numbers(p.dtype, {141, 97}, 2);
    at_every_level([&] {
      const Tensor all = transposed(product(a, bt, {false, true}));
      for (const Index columns : {1, 3, 16, 63, 64, 65}) {
        const Tensor some = transposed(product(a, rows_of(bt, 7, columns), {false, true}));
        EXPECT_TRUE(identical(some, rows_of(all, 7, columns))) << columns;
      }
    });
  }
}

TEST(MatmulSteps, IntegersWrap) {
  for (const DType d : {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::i64, DType::u64}) {
    SCOPED_TRACE(name(d));
    Tensor a(d, {5, 90}), b(d, {90, 70});
    std::mt19937_64 random(3);
    for (Index i = 0; i < a.count(); ++i) a.set_code(i, random());
    for (Index i = 0; i < b.count(); ++i) b.set_code(i, random());
    Tensor want(d, {5, 70});
    for (Index i = 0; i < 5; ++i) {
      for (Index j = 0; j < 70; ++j) {
        std::uint64_t sum = 0;
        for (Index k = 0; k < 90; ++k) sum += a.code(i * 90 + k) * b.code(k * 70 + j);
        want.set_code(i * 70 + j, sum);
      }
    }
    at_every_level([&] {
      EXPECT_TRUE(identical(product(a, b), want));
      EXPECT_TRUE(identical(product(transposed(a), transposed(b), {true, true}, true), want));
    });
  }
}

TEST(MatmulSteps, NothingIsLeftOutForBeingZero) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const DType d : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor a = Tensor::of<double>(d, {3, 2}, {0, 1, 1, 1, -0.0, -0.0});
    const Tensor b = Tensor::of<double>(d, {2, 4}, {inf, nan, 1, 1, 1, 1, -inf, 0});
    at_every_level([&] {
      const std::vector<double> c = load<double>(product(a, b));
      for (const std::size_t i : {0U, 1U, 5U, 8U, 9U, 10U}) EXPECT_TRUE(std::isnan(c[i])) << i;
      EXPECT_EQ(c[2], -inf);
      EXPECT_EQ(c[3], 0);
      EXPECT_EQ(c[4], inf);
      EXPECT_EQ(c[6], -inf);
      EXPECT_EQ(c[7], 1);
      EXPECT_FALSE(std::signbit(c[11]));  // sums begin at +0
    });
  }
}

// Denormal halves of f16 count at every level; those of bf16 do where the level has no instruction for pairs.
TEST(MatmulSteps, DenormalsCount) {
  const Tensor a = Tensor::of<double>(DType::f16, {1, 3}, {0x1p-24, 0x3p-24, -0x1p-20});
  const Tensor b = Tensor::of<double>(DType::f16, {3, 1}, {2, 1, 0.5});
  const Tensor x = Tensor::of<double>(DType::bf16, {1, 2}, {0x1p-130, 0x1p-131});
  const Tensor y = Tensor::of<double>(DType::bf16, {2, 1}, {1, 4});
  const Tensor u = Tensor::of<double>(DType::f32, {1, 2}, {0x1p-140, 0x1p-149}),
               v = Tensor::of<double>(DType::f32, {2, 1}, {1, 4});
  at_every_level([&] {
    EXPECT_EQ(load<double>(product(a, b))[0], 0x5p-24 - 0x1p-21);
    EXPECT_EQ(load<double>(product(u, v))[0], 0x1p-140 + 0x1p-147);
    EXPECT_EQ(load<double>(product(x, y))[0], level() == Level::v4b ? 0 : 0x1p-130 + 0x1p-129);
  });
}

TEST(MatmulSteps, HalvesOverflowToInfinityAndRoundToEven) {
  const Tensor big = Tensor::of<double>(DType::f16, {1, 2}, {65504, 16}),
               one = Tensor::of<double>(DType::f16, {2, 3}, {1, 1, 1, 1, 0.5, 0.984375});
  const Tensor tie = Tensor::of<double>(DType::bf16, {1, 2}, {256, 1}),
               ones = Tensor::of<double>(DType::bf16, {2, 2}, {1, 1, 1, 3});
  at_every_level([&] {
    EXPECT_EQ(load<double>(product(big, one)), (std::vector<double>{INFINITY, 65504, 65504}));
    EXPECT_EQ(load<double>(product(tie, ones)), (std::vector<double>{256, 260}));
  });
}

// --- layouts ---

// A matrix inside a larger buffer: the product with strides has the bits of the dense one.
struct Inside {
  Tensor buffer;
  Index offset = 0;
  std::vector<Dim> strides;
};

std::optional<Tensor> strided_product(const Inside& a, const Shape& a_shape, const Inside& b, const Shape& b_shape,
                                      MatmulAttrs attrs = {}) {
  const auto type = [](const Tensor& t, const Shape& s) {
    return TensorType(t.dtype(), std::vector<Dim>(s.begin(), s.end()));
  };
  Builder g;
  const Value x = g.input("a", type(a.buffer, a_shape)), y = g.input("b", type(b.buffer, b_shape));
  const Graph graph = g.finish({g.emit_one(matmul_op, attrs, {x, y})});
  const Node& node = graph.nodes[graph.outputs[0].node];
  const Index width = bits(a.buffer.dtype()) / 8;
  const Slot in[] = {{0, graph.type(node.operands[0]), a.offset * width, a.strides},
                     {1, graph.type(node.operands[1]), b.offset * width, b.strides}};
  const Slot out[] = {{2, node.results[0]}};
  const std::optional<Step> step = cpu_makers().make({node, in, out, nullptr});
  if (!step) return {};
  Shape shape;
  for (const Dim& d : node.results[0].dims) shape.push_back(d.constant());
  Tensor c(a.buffer.dtype(), shape);
  std::byte* const memory[] = {const_cast<std::byte*>(a.buffer.bytes().data()),
                               const_cast<std::byte*>(b.buffer.bytes().data()), c.mutable_bytes().data()};
  BoundStep(*step, {}, [&](BufferId id) { return memory[id]; }).run_all();
  return c;
}

// Elements of `i` in the order of its strides.
Tensor dense(const Inside& i, const Shape& shape) {
  Tensor t(i.buffer.dtype(), shape);
  for (Index n = 0; n < t.count(); ++n) {
    Index at = i.offset, rest = n;
    for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) at += rest % shape[d] * i.strides[d].constant();
    t.set_code(n, i.buffer.code(at));
  }
  return t;
}

TEST(MatmulSteps, PartsOfLargerBuffersNeedNoCopy) {
  for (const DType d : {DType::f32, DType::bf16}) {
    const Tensor qkv = numbers(d, {2, 40, 3 * 96}, 1), w = numbers(d, {300, 120}, 2);
    // Heads of 32 columns of a projection to queries, keys and values: [2, 3, 40, 32].
    const Inside q{qkv, 0, {40 * 288, 32, 288, 1}}, k{qkv, 96, {40 * 288, 32, 288, 1}},
        v{qkv, 192, {40 * 288, 32, 288, 1}};
    const Shape heads{2, 3, 40, 32};
    const Inside rows{w, 5, {120, 1}}, columns{w, 7, {1, 120}};
    at_every_level([&] {
      const auto scores = strided_product(q, heads, k, heads, {false, true});
      ASSERT_TRUE(scores);
      EXPECT_TRUE(identical(*scores, product(dense(q, heads), dense(k, heads), {false, true})));
      const Tensor p = numbers(d, {2, 3, 40, 40}, 3);
      const auto mixed = strided_product({p, 0, {3 * 40 * 40, 40 * 40, 40, 1}}, {2, 3, 40, 40}, v, heads);
      ASSERT_TRUE(mixed);
      EXPECT_TRUE(identical(*mixed, product(p, dense(v, heads))));
      // Every pair of rows and columns with unit stride.
      for (const Inside& a : {rows, columns}) {
        for (const Inside& b : {rows, columns}) {
          for (const Index m : {1, 5, 90}) {
            const auto c = strided_product(a, {m, 70}, b, {70, 33});
            ASSERT_TRUE(c);
            EXPECT_TRUE(identical(*c, product(dense(a, {m, 70}), dense(b, {70, 33}))));
          }
        }
      }
    });
    EXPECT_FALSE(strided_product({w, 0, {240, 2}}, {4, 4}, rows, {4, 4}));
    EXPECT_FALSE(strided_product(rows, {4, 4}, {w, 0, {240, 2}}, {4, 4}));
  }
}

TEST(MatmulSteps, ABatchOverOneMatrixIsOneProduct) {
  const Dim b = Dim::symbol("B", 1, 64), s = Dim::symbol("S", 1, 512);
  Builder g;
  const Value x = g.input("x", {DType::f32, {b, s, 48}}), w = constant(g, numbers(DType::f32, {48, 64}, 1));
  const Graph graph = g.finish({matmul(x, w)});
  const Node& node = graph.nodes[graph.outputs[0].node];
  const Slot in[] = {{0, graph.type(node.operands[0])}, {1, graph.type(node.operands[1])}};
  const Slot out[] = {{2, node.results[0]}};
  Slot constant_in[] = {in[0], in[1]};
  const Tensor weights = numbers(DType::f32, {48, 64}, 1);
  constant_in[1].constant = &weights;
  const std::optional<Step> step = cpu_makers().make({node, constant_in, out, nullptr});
  ASSERT_TRUE(step);
  EXPECT_EQ(step->items.evaluate({{"B", 6}, {"S", 12}}), 1);  // 72 rows
  EXPECT_EQ(step->flops, b * s * (48 * 64 * 2));
  EXPECT_GT(step->grain.evaluate({{"B", 6}, {"S", 12}}), 1);
}

}  // namespace
}  // namespace rlx::test
