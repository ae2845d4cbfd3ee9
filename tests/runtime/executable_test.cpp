// Executables against the reference evaluator: shapes, views, states, errors, threads.
#include "runtime/executable.h"

#include <gtest/gtest.h>

#include "all_ops.h"
#include "backend/cpu/cpu_device.h"
#include "core/error.h"
#include "runtime/evaluate.h"
#include "runtime/session.h"

namespace rlx {
namespace {

constexpr ExecutableOptions careful{.poison = true, .check = true};

Session session(int threads = 1) { return Session(cpu_device(), {.threads = threads}); }

Tensor ramp(std::vector<Index> shape, double start = -1, double step = 0.37) {
  Tensor t(DType::f32, std::move(shape));
  std::vector<double> v(static_cast<std::size_t>(t.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = start + step * static_cast<double>(i % 23);
  store<double>(t, v);
  return t;
}

TEST(Executable, RunsAProductWithASoftmaxAtSeveralSizes) {
  Builder b;
  const Dim s = Dim::symbol("S", 1, 64);
  const Value x = b.input("x", {DType::f32, {s, 4}});
  const Value w = constant(b, ramp({4, 6}));
  const Graph g = b.finish({softmax(matmul(x, w))});
  const Executable exe = session().compile(g, {}, careful);
  for (const Index size : {1, 5, 64, 5}) {
    const Tensor in = ramp({size, 4});
    const std::vector<Tensor> got = exe.run({{"x", in}}), want = evaluate(g, {{"x", in}});
    ASSERT_EQ(got[0].shape(), want[0].shape());
    const auto a = load<double>(got[0]), e = load<double>(want[0]);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], e[i], 1e-6);
  }
}

}  // namespace
}  // namespace rlx
