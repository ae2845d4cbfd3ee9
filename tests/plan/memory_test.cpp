// The memory plan: sharing, placement, and that the checker finds what is wrong.
#include "plan/memory.h"

#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "plan/binding.h"

namespace rlx {
namespace {

// Buffers of f32 vectors with these counts, all in the arena.
struct Sketch {
  Program program;
  std::vector<TensorType> types;

  BufferId buffer(const Dim& count, BufferKind kind = BufferKind::arena) {
    types.emplace_back(DType::f32, std::vector<Dim>{count});
    program.buffers.push_back({kind, 0, types.back().plane_bytes(0), {}});
    program.shares.push_back(static_cast<BufferId>(program.buffers.size() - 1));
    return program.shares.back();
  }
  Slot slot(BufferId b) const { return {b, types[b]}; }
  void step(const std::vector<BufferId>& reads, const std::vector<BufferId>& writes, bool in_place = false) {
    StepBuilder s("step");
    std::vector<Token<float, Access::read>> r;
    for (const BufferId b : reads) r.push_back(s.read<float>(slot(b)));
    for (const BufferId b : writes) {
      const auto w = s.write<float>(slot(b));
      for (const auto& t : r)
        if (in_place) s.may_overwrite(w, t);
    }
    program.steps.push_back(s.run(1, 1, [](const Memory&, const DimValues&, Range) {}));
    program.nodes.push_back(0);
  }
  std::vector<Index> bytes(const DimEnv& dims = {}) const {
    std::vector<Index> all;
    for (const Buffer& b : program.buffers) all.push_back(b.bytes.evaluate(dims));
    return all;
  }
  Placement place(const DimEnv& dims = {}) const { return rlx::place(program, lifetimes(program), bytes(dims)); }
};

TEST(MemoryPlan, ValuesThatAreNeverLiveTogetherShareMemory) {
  Sketch k;
  const BufferId x = k.buffer(100, BufferKind::input), a = k.buffer(100), b = k.buffer(100), c = k.buffer(100);
  k.step({x}, {a});
  k.step({a}, {b});
  k.step({b}, {c});
  const Placement p = k.place();
  EXPECT_EQ(p.bytes, 2 * 448);  // 400 bytes, rounded up to 64
  EXPECT_EQ(p.offsets[a], p.offsets[c]);
  check_plan(k.program, p, k.bytes(), {});
}

TEST(MemoryPlan, AResultTakesTheMemoryOfAnOperandThatEnds) {
  Sketch k;
  const Dim n = Dim::symbol("N", 0, 100);
  const BufferId x = k.buffer(n, BufferKind::input), a = k.buffer(n), b = k.buffer(n), c = k.buffer(n + 1);
  k.step({x}, {a});
  k.step({a}, {b}, true);
  k.step({b}, {c}, true);  // of another size
  share_in_place(k.program);
  EXPECT_EQ(k.program.owner(b), a);
  EXPECT_EQ(k.program.owner(c), c);
  for (const Index size : {0, 1, 100})
    check_plan(k.program, k.place({{"N", size}}), k.bytes({{"N", size}}), {{"N", size}});
}

TEST(MemoryPlan, AnOperandWithALaterReaderIsNotOverwritten) {
  Sketch k;
  const BufferId x = k.buffer(8, BufferKind::input), a = k.buffer(8), b = k.buffer(8), c = k.buffer(8);
  k.step({x}, {a});
  k.step({a}, {b}, true);
  k.step({a, b}, {c}, true);
  share_in_place(k.program);
  EXPECT_EQ(k.program.owner(b), b);
  EXPECT_TRUE(k.program.owner(c) == a || k.program.owner(c) == b);
  check_plan(k.program, k.place(), k.bytes(), {});
}

TEST(MemoryPlan, InputsAndOutputsAreNeverShared) {
  Sketch k;
  const BufferId x = k.buffer(8, BufferKind::input), a = k.buffer(8), y = k.buffer(8, BufferKind::output);
  k.step({x}, {a}, true);
  k.step({a}, {y}, true);
  share_in_place(k.program);
  EXPECT_EQ(k.program.owner(a), a);
  EXPECT_EQ(k.program.owner(y), y);
}

TEST(MemoryPlan, TheCheckerFindsOverlaps) {
  Sketch k;
  const BufferId x = k.buffer(8, BufferKind::input), a = k.buffer(8), b = k.buffer(8), c = k.buffer(8);
  k.step({x}, {a});
  k.step({x}, {b});
  k.step({a, b}, {c});
  Placement p = k.place();
  p.offsets[b] = p.offsets[a];
  EXPECT_THROW(check_plan(k.program, p, k.bytes(), {}), InternalError);
  p = k.place();
  p.offsets[c] = p.bytes - 16;
  EXPECT_THROW(check_plan(k.program, p, k.bytes(), {}), InternalError);
  p = k.place();
  k.program.shares[c] = a;  // the step did not declare it
  EXPECT_THROW(check_plan(k.program, p, k.bytes(), {}), InternalError);
}

TEST(MemoryPlan, TheCheckerFindsReadsOfWhatNothingWrote) {
  Sketch k;
  const BufferId a = k.buffer(8), b = k.buffer(8);
  k.step({a}, {b});
  EXPECT_THROW(check_plan(k.program, k.place(), k.bytes(), {}), InternalError);
}

TEST(MemoryPlan, TheCheckerFindsWritesToInputs) {
  Sketch k;
  const BufferId x = k.buffer(8, BufferKind::input);
  k.step({}, {x});
  EXPECT_THROW(check_plan(k.program, k.place(), k.bytes(), {}), InternalError);
}

TEST(MemoryPlan, RandomProgramsHaveValidPlans) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    Sketch k;
    const Dim n = Dim::symbol("N", 0, 1000);
    std::vector<BufferId> made{k.buffer(n, BufferKind::input)};
    for (int s = 0; s < 30; ++s) {
      const Index sizes[] = {0, 1, 7, 64, 100};
      std::vector<BufferId> reads;
      for (unsigned r = 0; r < 1 + random() % 3; ++r) reads.push_back(made[random() % made.size()]);
      const Dim count = random() % 2 ? n : n * static_cast<Index>(random() % 3) + sizes[random() % 5];
      const BufferId w = k.buffer(count, random() % 10 ? BufferKind::arena : BufferKind::output);
      k.step(reads, {w}, random() % 2 == 0);
      made.push_back(w);
    }
    share_in_place(k.program);
    for (const Index size : {0, 1, 13, 1000})
      check_plan(k.program, k.place({{"N", size}}), k.bytes({{"N", size}}), {{"N", size}});
  }
}

TEST(Order, ReadersWaitForWritersAndWritersForReaders) {
  Sketch k;
  const BufferId x = k.buffer(8, BufferKind::input), a = k.buffer(8), b = k.buffer(8), c = k.buffer(8);
  k.step({x}, {a});
  k.step({x}, {b});
  k.step({a}, {c}, true);
  k.step({b, c}, {k.buffer(8)});
  const auto waits = dependencies(k.program);
  EXPECT_EQ(waits[0], std::vector<std::uint32_t>{});
  EXPECT_EQ(waits[1], std::vector<std::uint32_t>{});
  EXPECT_EQ(waits[2], std::vector<std::uint32_t>{0});
  EXPECT_EQ(waits[3], (std::vector<std::uint32_t>{1, 2}));
  // When c lies in the memory of a, another reader of a must come before.
  Sketch shared;
  const BufferId y = shared.buffer(8, BufferKind::input), d = shared.buffer(8), e = shared.buffer(8);
  shared.step({y}, {d});
  shared.step({d}, {shared.buffer(8)});
  shared.step({d}, {e}, true);
  share_in_place(shared.program);
  ASSERT_EQ(shared.program.owner(e), d);
  EXPECT_EQ(dependencies(shared.program)[2], (std::vector<std::uint32_t>{0, 1}));
}

TEST(DimTable, EqualSizesAreEvaluatedOnce) {
  DimTable t;
  const Dim n = Dim::symbol("N", 1, 9);
  EXPECT_EQ(t.add(n * 2), t.add(n + n));
  EXPECT_NE(t.add(n), t.add(n * 2));
  EXPECT_EQ(t.evaluate({{"N", 4}}), (std::vector<Index>{8, 4}));
}

}  // namespace
}  // namespace rlx
