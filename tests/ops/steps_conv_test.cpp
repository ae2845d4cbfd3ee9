// Steps of convolutions and pools on every case and element type, at every level, against the references.
#include <gtest/gtest.h>

#include <limits>

#include "levels.h"
#include "ops/conv/conv.h"
#include "ops/conv_transpose/conv_transpose.h"
#include "ops/pool/pool.h"
#include "run_step.h"

namespace rlx::test {
namespace {

TEST(StepsConv, Conv) { EXPECT_GT(check_steps(conv_op, std::nullopt, true).ran, 0); }
TEST(StepsConv, ConvTranspose) { EXPECT_GT(check_steps(conv_transpose_op, std::nullopt, true).ran, 0); }
TEST(StepsConv, Pool) { EXPECT_GT(check_steps(pool_op).ran, 0); }
TEST(StepsConv, PoolIndex) { EXPECT_GT(check_steps(pool_index_op, exact).ran, 0); }

// Whole packs, their ends, cut lines; NaN and infinities anywhere. The reference decides bit by bit.
TEST(StepsConv, WideMaxima) {
  using enum PoolKind;
  const PoolAttrs forms[] = {
      {max, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {35, 41}, {}},
      {max, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {35, 42}, {}},
      {max, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {70, 83}, {}},
      {max, {2, 3}, {3, 3}, {1, 2}, {0, 2}, {23, 28}, {}},
      {max, {5, 70}, {1, 1}, {1, 1}, {2, 35}, {70, 83}, {}},
      {max, {1, 40}, {1, 1}, {1, 3}, {0, 60}, {70, 86}, {}},
      {max, {3}, {1}, {1}, {1}, {83}, {}},
  };
  for (const PoolAttrs& a : forms) {
    Bound b = bind_case(pool_op, {Attrs(a), {.inputs = {CaseInput(DType::f32, {2, 70, 83})}}}, {}, 3);
    std::vector<double> v = load<double>(b.inputs[0]);
    constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t i = 0; i < v.size(); i += 97) v[i] = i % 4 == 0 ? nan : i % 4 == 1 ? inf : -inf;
    store(b.inputs[0], v);
    const Tensor want = evaluate(b.graph, b.inputs)[0];
    at_every_level([&] {
      for (const unsigned pieces : {0U, 5U}) {
        const auto got = run_node(b, cpu_makers(), {.pieces = pieces});
        ASSERT_TRUE(got);
        const Difference d = compare((*got)[0], want, exact);
        EXPECT_TRUE(d.ok) << Attrs(a).print() << ": " << d.where;
      }
    });
  }
}

// Every phase, with strides greater than the kernel, parts of lines and more results than are reached.
TEST(StepsConv, WideTransposedConvolutions) {
  struct Form {
    ConvAttrs attrs;
    std::vector<Dim> x, w;
  };
  const Form forms[] = {
      {{{2, 2}, {1, 1}, {0, 0}, {18, 26}, 1}, {2, 5, 9, 13}, {5, 70, 2, 2}},
      {{{2, 2}, {1, 1}, {1, 1}, {18, 26}, 1}, {1, 5, 9, 13}, {5, 20, 4, 4}},
      {{{3, 2}, {2, 1}, {1, 2}, {14, 12}, 2}, {1, 4, 4, 7}, {4, 9, 3, 5}},
      {{{4, 5}, {1, 1}, {0, 0}, {17, 24}, 1}, {1, 3, 4, 5}, {3, 17, 2, 3}},
      {{{1, 1}, {1, 1}, {1, 1}, {6, 900}, 1}, {1, 2, 6, 900}, {2, 3, 3, 3}},
      {{{2}, {1}, {1}, {1000}, 1}, {1, 3, 500}, {3, 5, 4}},
      {{{1, 1}, {3, 2}, {0, 0}, {8, 3}, 3}, {2, 3, 2, 1}, {3, 1, 3, 2}},
  };
  for (const Form& f : forms) {
    const AnyCase c{Attrs(f.attrs), {.inputs = {CaseInput(DType::f32, f.x), CaseInput(DType::f32, f.w)}}};
    const Bound b = bind_case(conv_transpose_op, c, {}, 4);
    const Tensor want = evaluate(b.graph, b.inputs)[0];
    at_every_level([&] {
      const auto one = run_node(b, cpu_makers());
      ASSERT_TRUE(one);
      const Difference d = compare((*one)[0], want, relative(1e-6));
      EXPECT_TRUE(d.ok) << Attrs(f.attrs).print() << ": " << d.where;
      EXPECT_TRUE(identical((*run_node(b, cpu_makers(), {.pieces = 4}))[0], (*one)[0]));
    });
  }
}

}  // namespace
}  // namespace rlx::test
