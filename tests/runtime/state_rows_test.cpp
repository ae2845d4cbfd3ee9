// Rows scattered into a state: only those which are named are touched, in place, whatever meets.
#include <gtest/gtest.h>

#include <random>

#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "ops/broadcast/broadcast.h"
#include "ops/reshape/reshape.h"
#include "ops/scatter/scatter.h"
#include "ops/slice/slice.h"
#include "runtime/evaluate.h"

namespace rlx {
namespace {

// state pool [S,2,3]: rows `at` become the columns 3.. of x [T,10], three at a time; `old` also gives the old pool.
Graph rows_graph(DType type, bool old) {
  Builder b;
  const Dim tokens = Dim::symbol("T", 0, 1024);
  const Value pool = b.input("pool", {type, {Dim::symbol("S", 1), 2, 3}});
  const Value x = b.input("x", {type, {tokens, 10}}), at = b.input("at", {DType::i32, {tokens}});
  const Value rows = reshape(slice(x, 1, 3, 9), {tokens, 2, 3});
  const Value next = scatter(pool, rows, broadcast(unsqueeze(at, {1, 2}), rows.type().dims), 0);
  b.state("pool", pool, next);
  return old ? b.finish({next, pool}) : b.finish({next});
}

Tensor numbers(DType type, std::vector<Index> shape, unsigned seed) {
  std::mt19937 random(seed);
  Tensor t(type, std::move(shape));
  for (Index i = 0; i < t.count(); ++i) t.set_code(i, random() & ((std::uint64_t{1} << (bits(type) - 1)) - 1));
  return t;
}

void expect_like_reference(const Executable& exe, const Graph& g, DType type, const std::vector<std::int32_t>& at) {
  const auto tokens = static_cast<Index>(at.size());
  const NamedTensors in{{"x", numbers(type, {tokens, 10}, 7)},
                        {"at", Tensor::of(DType::i32, {tokens}, std::vector<Index>(at.begin(), at.end()))}};
  State ours(g, {{"S", 40}}), theirs(g, {{"S", 40}});
  for (State* s : {&ours, &theirs}) s->set("pool", numbers(type, {40, 2, 3}, 9));
  const std::vector<Tensor> want = evaluate(g, in, &theirs), got = exe.run(in, {.state = &ours});
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(identical(got[i], want[i])) << name(type) << " output " << i;
  EXPECT_TRUE(identical(ours.at("pool"), theirs.at("pool"))) << name(type);
}

TEST(StateRows, EqualTheReference) {
  for (const DType type : {DType::f32, DType::f16, DType::i64, DType::u8}) {
    for (const bool old : {false, true}) {
      const Graph g = rows_graph(type, old);
      const Executable exe = cpu_session().compile(g, {}, {.poison = true, .check = true});
      for (const std::vector<std::int32_t>& at :
           {std::vector<std::int32_t>{}, {5}, {0, 39, 7}, {3, 3, -37, 3}, {-1, -40, 39, 0}}) {
        expect_like_reference(exe, g, type, at);
      }
    }
  }
}

TEST(StateRows, AreWrittenInPlace) {
  const Executable exe = cpu_session().compile(rows_graph(DType::f32, false));
  const RunReport report = exe.report({{"S", 1 << 20}, {"T", 3}});
  EXPECT_EQ(report.steps[0].kernel, "scatter_rows");
  EXPECT_LT(report.arena_bytes, 4096);
}

TEST(StateRows, AnIndexOutOfRangeIsAnErrorBeforeAnythingIsWritten) {
  const Graph g = rows_graph(DType::f32, false);
  const Executable exe = cpu_session().compile(g);
  State state(g, {{"S", 4}});
  const NamedTensors in{{"x", numbers(DType::f32, {2, 10}, 1)}, {"at", Tensor::of<Index>(DType::i32, {2}, {1, 4})}};
  try {
    exe.run(in, {.state = &state});
    FAIL() << "row 4 of 4 is accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("index 4 at [1,0,0] is out of range for axis 0 of size 4"), std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace rlx
