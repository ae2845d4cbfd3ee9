// The thread pool: every item once, exceptions, several callers, fork.
#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>

#include "core/error.h"

namespace rlx {
namespace {

std::vector<int> count_items(Executor& pool, Index items, Index grain) {
  std::vector<std::atomic<int>> hits(static_cast<std::size_t>(items));
  const auto piece = [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
  };
  pool.run(items, grain, piece);
  return {hits.begin(), hits.end()};
}

TEST(ThreadPool, EveryItemRunsOnce) {
  for (const int width : {1, 2, 3, 8}) {
    ThreadPool pool(width);
    EXPECT_EQ(pool.width(), width);
    for (const Index items : {0, 1, 2, 17, 1000, 100'000}) {
      for (const Index grain : {1, 3, 1000}) {
        const std::vector<int> hits = count_items(pool, items, grain);
        EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), Index{0}), items);
        EXPECT_TRUE(std::all_of(hits.begin(), hits.end(), [](int h) { return h == 1; }));
      }
    }
  }
}

TEST(ThreadPool, PiecesHaveAtLeastTheGrain) {
  ThreadPool pool(4);
  std::atomic<int> small = 0, calls = 0;
  const auto piece = [&](Index begin, Index end) {
    ++calls;
    if (end - begin < 100 && end != 1050) ++small;
  };
  pool.run(1050, 100, piece);
  EXPECT_EQ(small, 0);
  EXPECT_GT(calls, 1);
}

TEST(ThreadPool, ManyShortRunsFromSeveralThreads) {
  ThreadPool pool(4);
  std::vector<std::thread> callers;
  std::atomic<Index> sum = 0;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        const auto piece = [&](Index begin, Index end) { sum += end - begin; };
        pool.run(64, 4, piece);
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum, 8 * 300 * 64);
}

TEST(ThreadPool, ThrowsTheErrorOfTheLowestPieceAndStaysUsable) {
  ThreadPool pool(4);
  for (int round = 0; round < 50; ++round) {
    const auto piece = [&](Index begin, Index) {
      if (begin == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
      fail("piece {}", begin);
    };
    try {
      pool.run(64, 1, piece);
      FAIL();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "piece 0");
    }
    EXPECT_EQ(count_items(pool, 100, 1).size(), 100U);
  }
}

TEST(ThreadPool, AForkedChildHasThreadsOfItsOwn) {
  ThreadPool pool(3);
  EXPECT_EQ(count_items(pool, 100, 1).size(), 100U);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::vector<int> hits = count_items(pool, 1000, 1);
    _exit(std::all_of(hits.begin(), hits.end(), [](int h) { return h == 1; }) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(count_items(pool, 100, 1).size(), 100U);
}

TEST(ThreadPool, RefusesWidths) {
  EXPECT_THROW(ThreadPool(-1), Error);
  EXPECT_THROW(ThreadPool(1025), Error);
  EXPECT_GE(usable_processors(), 1);
  EXPECT_EQ(ThreadPool(0).width(), usable_processors());
}

}  // namespace
}  // namespace rlx
