// Matmul with the elementwise ops behind it as one step: the bits of the ops one after the other, at every level.
#include <algorithm>

#include "ir/outline.h"
#include "levels.h"
#include "matmul_product.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/scalar/scalar.h"

namespace rlx::test {
namespace {

std::size_t count_of(const Graph& g, const OpDef& op) {
  return static_cast<std::size_t>(std::ranges::count_if(g.nodes, [&](const Node& n) { return n.op == &op; }));
}

struct Operands {
  Builder& g;
  Value product;
  const Dim &rows, &columns;
  DType dtype;
  std::vector<TensorType>& types;
  // Another input.
  Value operator()(std::vector<Dim> dims, std::optional<DType> d = {}) const {
    types.emplace_back(d.value_or(dtype), std::move(dims));
    return g.input("e" + std::to_string(types.size()), types.back());
  }
};

// x[..,rows,inner] times w, and what `rest` puts behind it, must run as one step with equal bits.
template <class F>
void check(DType d, std::vector<Index> batch, Index rows, Index inner, Index columns, F rest) {
  const Dim m = Dim::symbol("M", 0, 512), n = Dim::symbol("N", 0, 512);
  const DimEnv dims{{"M", rows}, {"N", columns}};
  for (const bool packed : {false, true}) {
    SCOPED_TRACE(fmt::format("{} {}x{}x{} packed {}", name(d), rows, inner, columns, packed));
    Builder g;
    std::vector<TensorType> types;
    std::vector<Dim> x_dims(batch.begin(), batch.end());
    x_dims.insert(x_dims.end(), {m, inner});
    const Value x = g.input("x", types.emplace_back(d, x_dims));
    const Value w = packed ? constant(g, numbers(d, {inner, columns}, 77))
                           : g.input("w", types.emplace_back(d, std::vector<Dim>{inner, n}));
    const Value product = matmul(x, w);
    const Dim& width = product.dim(-1);
    const Graph plain = g.finish({rest(Operands{g, product, m, width, d, types})});
    const Graph one = fused_by_pass(plain);
    ASSERT_EQ(count_of(one, fusion_op()), 1U);
    ASSERT_EQ(count_of(one, matmul_op), 0U);
    std::vector<Tensor> in;
    unsigned seed = 5;
    for (const TensorType& t : types) in.push_back(fill(CaseInput(t), dims, seed++));
    expect_same_bits_by_steps(one, plain, in, dims);
  }
}

struct Size {
  std::vector<Index> batch;
  Index rows, inner, columns;
};
const Size sizes[] = {{{}, 1, 1, 1},    {{}, 1, 5, 300}, {{}, 7, 13, 63}, {{}, 80, 33, 129}, {{2, 3}, 9, 8, 5},
                      {{3}, 75, 4, 64}, {{}, 0, 4, 4},   {{}, 5, 0, 70},  {{}, 5, 3, 0},     {{}, 11, 1001, 133}};

template <class F>
void check_all(DType d, F rest) {
  for (const Size& s : sizes) check(d, s.batch, s.rows, s.inner, s.columns, rest);
}

TEST(FusedMatmul, BiasAndActivation) {
  for (const DType d : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    check_all(d, [](const Operands& o) { return o.product + o({o.columns}); });
    check_all(d, [](const Operands& o) { return tanh(o.product + o({o.columns})); });
  }
  check_all(DType::f32, [](const Operands& o) { return gelu(o.product + o({o.columns})); });
  check_all(DType::f32, [](const Operands& o) { return silu(o.product); });
}

// Products of halves with a bias in f32, as products in a lower precision have them: the kernel rounds, widens, adds.
TEST(FusedMatmul, HalvesWithAnF32Bias) {
  for (const DType d : {DType::bf16, DType::f16}) {
    const auto sum = [](const Operands& o) { return cast(o.product, DType::f32) + o({o.columns}, DType::f32); };
    check_all(d, sum);
    check_all(d, [&](const Operands& o) { return cast(sum(o), o.dtype); });
    check_all(d, [&](const Operands& o) { return cast(gelu(sum(o)), o.dtype); });
    check_all(d, [&](const Operands& o) { return cast(sum(o), o.dtype) * o({o.columns}); });
    check_all(d, [&](const Operands& o) {
      return cast(o({1, o.columns}, DType::f32) + cast(o.product, DType::f32), DType::f64);
    });
    check_all(d, [](const Operands& o) { return cast(o.product, DType::f32) + o({o.rows, 1}, DType::f32); });
  }
}

TEST(FusedMatmul, IntegersToo) {
  check_all(DType::i32, [](const Operands& o) { return o.product + o({o.columns}); });
  check_all(DType::i8, [](const Operands& o) { return maximum(o.product, o({o.columns})); });
}

TEST(FusedMatmul, ResidualAndScale) {
  for (const DType d : {DType::f32, DType::bf16}) {
    check_all(d, [](const Operands& o) { return o(o.product.type().dims) + o.product; });
    check_all(d, [](const Operands& o) { return (o.product * like(o.product, 0.125) + o({1})) * o({}); });
    check_all(d, [](const Operands& o) { return (o.product - o({1, o.columns})) * o({o.rows, 1}); });
  }
}

TEST(FusedMatmul, CastsAndSelections) {
  check_all(DType::bf16,
            [](const Operands& o) { return gelu(cast(o.product, DType::f32) + o({o.columns}, DType::f32)); });
  check_all(DType::f32, [](const Operands& o) { return cast(o.product * o.product, DType::f16); });
  check_all(DType::f32, [](const Operands& o) {
    return select(o({o.rows, o.columns}, DType::boolean), o.product, like(o.product, -1e30));
  });
  check_all(DType::f32, [](const Operands& o) { return less(o.product, o({o.columns})); });
}

TEST(FusedMatmul, AStretchedOperandMayBeAView) {
  check_all(DType::f32, [](const Operands& o) {
    const Value b = o({o.columns});
    return exp(o.product + broadcast(b, o.product.type().dims));
  });
}

// A body may give the product and what is made of it; its second result is the product itself.
TEST(FusedMatmul, ABodyMayKeepItsProduct) {
  Builder g;
  const Value x = g.input("x", {DType::f32, {70, 4}}), w = g.input("w", {DType::f32, {4, 150}});
  const Value b = g.input("b", {DType::f32, {150}}), c = matmul(x, w);
  const Graph plain = g.finish({c, relu(c + b)});
  std::vector<Id> root(plain.nodes.size());
  for (Id i = 0; i < root.size(); ++i) root[i] = is_input(plain.nodes[i]) ? i : plain.outputs[0].node;
  const Graph one = outline(plain, root);
  const std::vector<Tensor> in{numbers(DType::f32, {70, 4}, 1), numbers(DType::f32, {4, 150}, 2),
                               numbers(DType::f32, {150}, 3)};
  at_every_level([&] {
    const std::vector<Tensor> want = by_steps(plain, in, {}, 0), got = by_steps(one, in, {}, 2);
    ASSERT_EQ(got.size(), 2U);
    EXPECT_TRUE(identical(got[0], want[0]));
    EXPECT_TRUE(identical(got[1], want[1]));
  });
}

TEST(FusedMatmul, DeclinesOtherBodiesWithAReason) {
  const auto reason = [](auto make) {
    Builder g;
    const Value x = g.input("x", {DType::f32, {4, 4}}), w = g.input("w", {DType::f32, {4, 4}});
    const Graph plain = g.finish({make(x, w)});
    std::vector<Id> root(plain.nodes.size());
    for (Id i = 0; i < root.size(); ++i) root[i] = is_input(plain.nodes[i]) ? i : plain.outputs[0].node;
    const Graph one = outline(plain, root);
    const std::vector<Tensor> in{numbers(DType::f32, {4, 4}, 1), numbers(DType::f32, {4, 4}, 2)};
    std::string why;
    EXPECT_FALSE(run_node(one, one.outputs[0].node, in, {}, cpu_makers(), {}, &why));
    return why;
  };
  EXPECT_NE(reason([](Value x, Value w) { return matmul(matmul(x, w), w); }).find("joined by an activation and mul"),
            std::string::npos);
  EXPECT_NE(reason([](Value x, Value w) { return matmul(matmul(matmul(x, w), w), w); }).find("bodies with one matmul"),
            std::string::npos);
  EXPECT_NE(reason([](Value x, Value w) { return matmul(exp(x), w); }).find("are inputs of the body"),
            std::string::npos);
}

}  // namespace
}  // namespace rlx::test
