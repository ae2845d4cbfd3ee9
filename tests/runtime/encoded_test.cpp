// Programs with encoded weights: compiled and run, exact and with activations in blocks, on one thread and two.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rlx::test
