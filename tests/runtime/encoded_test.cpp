// Programs with encoded weights: compiled and run, exact and with activations in blocks, on one thread and two.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/cpu_device.h"
#include "conformance.h"
#include "encoded_tensors.h"
#include "levels.h"
#include "ops/constant/constant.h"
#include "ops/encode/encode.h"
#include "ops/gather/gather.h"
#include "ops/matmul/matmul.h"
#include "ops/scalar/scalar.h"

namespace rlx::test {
namespace {

constexpr Index width = 256, hidden = 512;

// Rows of an encoded table through a gated block of encoded matrices, with bias and residual.
Graph block(const Codec& codec) {
  Builder g;
  const Value ids = g.input("ids", {DType::i32, {Dim::symbol("T", 1, 512)}});
  const auto w = [&](Index n, Index k, unsigned seed) { return constant(g, *matrix(codec, n, k, seed)); };
  const Value table = w(40, width, 1);
  const Value x = gather(table, ids);
  const Value gate = matmul(x, w(hidden, width, 2), {false, true});
  const Value up = matmul(x, w(hidden, width, 3), {false, true});
  const Value down = matmul(silu(gate) * up, w(width, hidden, 4), {false, true});
  const Value bias = constant(g, numbers({width}, 5));
  return g.finish({x + (down + bias), matmul(x, table, {false, true})});
}

Tensor tokens(Index count) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::int64_t>(i * 7 % 40);
  return Tensor::of(DType::i32, {count}, v);
}

TEST(EncodedPrograms, ExactProgramsAreTheReference) {
  for (const Codec* codec : all_codecs()) {
    if (!matrix(*codec, 1, width, 1)) continue;
    SCOPED_TRACE(codec->encoding->name);
    const Graph g = block(*codec);
    const Executable one = cpu_session({.threads = 1}).compile(g, {}, {.poison = true, .check = true});
    const Executable two = cpu_session({.threads = 2}).compile(g);
    for (const Index count : {1, 5, 70}) {
      const Tensor ids = tokens(count);
      const std::vector<Tensor> want = evaluate(g, std::vector<Tensor>{ids}, {});
      const std::vector<Tensor> got = one.run({{"ids", ids}}), again = two.run({{"ids", ids}});
      for (std::size_t r = 0; r < want.size(); ++r) {
        const Difference d = compare(got[r], want[r], relative(1e-5));
        EXPECT_TRUE(d.ok) << count << " tokens, result " << r << " " << d.where;
        EXPECT_TRUE(identical(got[r], again[r])) << "two threads";
      }
    }
  }
}

TEST(EncodedPrograms, BlocksOfActivationsEqualTheirDefinition) {
  for (const Codec* codec : all_codecs()) {
    if (!codec->integers) continue;
    SCOPED_TRACE(codec->encoding->name);
    const Graph g = block(*codec);
    const CompileOptions fast{.encode_activations = true};
    const Session single = cpu_session({.threads = 1});
    Report report;
    const Executable one = single.compile(g, fast, {.poison = true, .check = true}, &report);
    EXPECT_TRUE(std::ranges::any_of(
        report.remarks, [](const Remark& r) { return r.text == "4 products of activations in 8-bit blocks"; }));
    const Executable two = cpu_session({.threads = 2}).compile(g, fast);
    const Tensor all = tokens(70);
    const std::vector<Tensor> rows = one.run({{"ids", all}}), again = two.run({{"ids", all}});
    const std::vector<Tensor> want = evaluate(g, std::vector<Tensor>{all}, {});
    for (std::size_t r = 0; r < rows.size(); ++r) {
      EXPECT_TRUE(identical(rows[r], again[r])) << "two threads";
      const Difference d = compare(rows[r], want[r], relative(0.03));
      EXPECT_TRUE(d.ok) << d.where;
      // A token alone has the bits that it has among others.
      const std::vector<double> many = load<double>(rows[r]);
      const Index columns = rows[r].shape()[1];
      const std::vector<double> alone = load<double>(one.run({{"ids", tokens(1)}})[r]);
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), many.begin()));
      EXPECT_EQ(static_cast<Index>(alone.size()), columns);
    }
  }
}

std::ptrdiff_t count(const Graph& g, std::string_view op) {
  return std::ranges::count_if(g.nodes, [&](const Node& n) { return n.op->name() == op; });
}

// One encoding serves all products of a value; gate and up are one step; nothing else is left beside them.
TEST(EncodedPrograms, ProductsShareBlocksAndJoin) {
  const Graph g = cpu_session({.threads = 1}).optimise(block(*find_codec("q8_0")), {.encode_activations = true});
  EXPECT_EQ(count(g, "encode"), 2);
  EXPECT_EQ(count(g, "gather"), 1);
  std::vector<std::ptrdiff_t> products;
  for (const Node& n : g.nodes) {
    for (const GraphPtr& b : n.bodies) products.push_back(count(*b, "matmul"));
  }
  std::ranges::sort(products);
  EXPECT_EQ(products, (std::vector<std::ptrdiff_t>{1, 2}));  // down with bias and residual; gate and up
  EXPECT_EQ(count(g, "matmul"), 1);
}

// Products of one value by matrices of one format become one, in the order of their columns.
TEST(EncodedPrograms, ProductsOfOneValueAreMerged) {
  for (const char* name : {"q8_0", "q4_k"}) {
    const Codec& codec = *find_codec(name);
    Builder b;
    const Value x = b.input("x", {DType::f32, {Dim::symbol("T", 1, 64), width}});
    Values out;
    for (const Index n : {96, 32, 32})
      out.push_back(matmul(x, constant(b, *matrix(codec, n, width, static_cast<unsigned>(n))), {false, true}));
    const Graph g = b.finish(out);
    const Session session = cpu_session({.threads = 2});
    for (const bool fast : {false, true}) {
      const CompileOptions options{.encode_activations = fast};
      EXPECT_EQ(count(session.optimise(g, options), "matmul"), 1);
      CompileOptions apart = options;
      apart.disabled = {"merge-matmuls"};
      const Tensor in = numbers({7, width}, 9);
      const std::vector<Tensor> got = session.compile(g, options).run({{"x", in}}),
                                want = session.compile(g, apart).run({{"x", in}});
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], want[i])) << name << " " << i;
    }
  }
}

// What joins two products changes no bit.
TEST(EncodedPrograms, JoinedPairsHaveTheBitsOfTheirParts) {
  const Graph g = block(*find_codec("q8_0"));
  const Tensor ids = tokens(37);
  at_every_level([&] {
    const Session session = cpu_session({.threads = 2});
    const CompileOptions joined{.encode_activations = true};
    CompileOptions apart = joined;
    apart.disabled = {"fuse-matmul", "fuse-elementwise"};
    const std::vector<Tensor> got = session.compile(g, joined).run({{"ids", ids}}),
                              want = session.compile(g, apart).run({{"ids", ids}});
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(identical(got[i], want[i])) << i;
  });
}

}  // namespace
}  // namespace rlx::test
