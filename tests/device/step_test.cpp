// Steps over symbolic sizes: a kernel at every level, two results, state in place, 18-byte blocks.
#include "device/step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/error.h"
#include "core/levels.h"
#include "levels.h"
#include "ops/softmax/softmax.kernel.h"

namespace rlx {
namespace {

const Dim batch = Dim::symbol("B", 1, 64), length = Dim::symbol("S", 1, 512);

Step softmax_step(const Slot& in, const Slot& out) {
  StepBuilder s("softmax_rows");
  const auto x = s.read<float>(in);
  const auto y = s.write<float>(out);
  const auto cols = s.dim(in.type.dim(-1));
  const auto kernel = softmax_kernels().rows_f32;
  return s.run(batch * 4, 3, [=](const Memory& m, const DimValues& d, Range r) {
    const Index c = d[cols];
    kernel(m[x].data() + r.begin * c, m[y].data() + r.begin * c, r.end - r.begin, c);
  });
}

TEST(Step, RunsAKernelForAnyBindingAtEveryLevel) {
  const TensorType type(DType::f32, {batch, 4, length});
  at_every_level([&] {
    const Step step = softmax_step({0, type}, {1, type});
    for (const auto& [b, s] : {std::pair<Index, Index>{2, 37}, {3, 128}, {1, 1}}) {
      std::vector<float> x(static_cast<std::size_t>(b * 4 * s)), y(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) * 0.1f - 4;
      float* const buffers[] = {x.data(), y.data()};
      const BoundStep bound(step, {{"B", b}, {"S", s}},
                            [&](BufferId id) { return reinterpret_cast<std::byte*>(buffers[id]); });
      EXPECT_EQ(bound.items(), b * 4);
      bound.run_all();
      for (Index r = 0; r < b * 4; ++r) {
        double sum = 0;
        for (Index c = 0; c < s; ++c) sum += std::exp(static_cast<double>(x[static_cast<std::size_t>(r * s + c)]));
        for (Index c = 0; c < s; ++c) {
          const auto i = static_cast<std::size_t>(r * s + c);
          EXPECT_NEAR(y[i], std::exp(static_cast<double>(x[i])) / sum, 1e-6);
        }
      }
    }
  });
}

TEST(Step, DeclaresTwoResultsAndInPlaceState) {
  const TensorType type(DType::f32, {batch, 2});
  StepBuilder s("halve_into_state");
  const auto x = s.read<float>({0, type});
  const auto half = s.write<float>({1, type});
  const auto state = s.update<float>({2, type, Dim(8)});
  const auto n = s.dim(type.count());
  const Step step = s.run(1, 1, [=](const Memory& m, const DimValues& d, Range) {
    EXPECT_EQ(static_cast<Index>(m[x].size()), d[n]);
    for (std::size_t i = 0; i < m[x].size(); ++i) {
      m[half][i] = m[x][i] / 2;
      m[state][i] += m[half][i];
    }
  });
  ASSERT_EQ(step.uses.size(), 3U);
  EXPECT_EQ(step.uses[0].access, Access::read);
  EXPECT_EQ(step.uses[1].access, Access::write);
  EXPECT_EQ(step.uses[2].access, Access::update);
  EXPECT_EQ(step.uses[2].bytes, batch * 8);
  std::vector<float> a{2, 4, 6, 8}, b(4), c{-1, -1, 10, 20, 30, 40};
  std::vector<float>* const buffers[] = {&a, &b, &c};
  const BoundStep bound(step, {{"B", 2}},
                        [&](BufferId id) { return reinterpret_cast<std::byte*>(buffers[id]->data()); });
  bound.run_all();
  bound.run_all();
  EXPECT_EQ(b, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(c, (std::vector<float>{-1, -1, 12, 24, 36, 48}));
}

TEST(Step, SizesBlocksOfQuantisedTypes) {
  static constexpr Plane planes[] = {{"blocks", 18}};
  static constexpr Encoding q4{"q4_0", 32, planes};
  StepBuilder s("decode");
  s.read<std::byte>({0, TensorType(DType::f32, {length, 70}, q4, 1)});
  const Step step = s.run(length, 1, [](const Memory&, const DimValues&, Range) {});
  EXPECT_EQ(step.uses[0].bytes, length * 54);  // 70 elements are 3 blocks
}

TEST(Step, AMakerDeclinesWithAReason) {
  const Node node;
  std::string why;
  const StepArgs args{node, {}, {}, &why};
  const std::optional<Step> none = args.decline("strides are not dense");
  EXPECT_FALSE(none);
  EXPECT_EQ(why, "strides are not dense");
}

TEST(Step, MissingSizesAreErrors) {
  const TensorType type(DType::f32, {batch});
  StepBuilder s("nothing");
  s.read<float>({0, type});
  const Step step = s.run(1, 1, [](const Memory&, const DimValues&, Range) {});
  EXPECT_THROW(BoundStep(step, {}, [](BufferId) { return nullptr; }), Error);
  EXPECT_THROW(StepBuilder("no function").run(1, 1, nullptr), InternalError);
}

}  // namespace
}  // namespace rlx
