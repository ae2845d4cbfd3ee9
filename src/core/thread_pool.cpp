// The thread pool. A run publishes its job in a slot; workers take pieces from any published job.
#include "core/thread_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <system_error>

#include "core/error.h"

namespace rlx {

namespace {

// A worker that finds nothing looks for about this long before it sleeps: longer than the gap between two steps.
constexpr std::chrono::microseconds spin_time{60};
constexpr Index pieces_per_thread = 4;

// Counts forks, so that a pool notices that its threads stayed in the parent.
std::atomic<int> forks = 0;
int watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  return registered;
}

int quota_processors(int most) {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return most;
  const double limit = std::strtod(quota.c_str(), nullptr) / period;
  return limit > 0 ? std::clamp(static_cast<int>(limit + 0.999), 1, most) : most;
}

}  // namespace

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return quota_processors(std::max(1, CPU_COUNT(&set)));
}

struct ThreadPool::Job {
  RangeFunction function;
  Index items, piece;
  std::atomic<Index> next = 0;
  std::atomic<Index> failed_at = std::numeric_limits<Index>::max();  // the lowest piece that threw
  std::mutex lock;
  std::exception_ptr error = nullptr;

  // Takes pieces until none is left.
  void work() {
    for (;;) {
      const Index begin = next.fetch_add(piece, std::memory_order_relaxed);
      // Pieces are handed out in order: those below one that threw are run, so that the lowest error is always found.
      if (begin >= items || begin > failed_at.load(std::memory_order_relaxed)) return;
      try {
        function(begin, std::min(items, begin + piece));
      } catch (...) {
        const std::lock_guard guard(lock);
        if (begin < failed_at) {
          error = std::current_exception();
          failed_at = begin;
        }
      }
    }
  }
  bool open() const { return next.load(std::memory_order_relaxed) < items; }
};

struct ThreadPool::Shared {
  std::array<Slot, 16> slots;
  std::atomic<std::uint32_t> news = 0;  // changes when a job comes; sleepers wait on it
  std::atomic<int> sleepers = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> workers;
  int forks_at_start = 0;
};

ThreadPool::ThreadPool(int width) : width_(width == 0 ? usable_processors() : width) {
  require(width >= 0 && width <= 1024, "{} threads are asked for, expected 0 to 1024", width);
  watch_forks();
}

ThreadPool::~ThreadPool() {
  if (!shared_) return;
  if (shared_->forks_at_start != forks) {
    [[maybe_unused]] Shared* const leaked = shared_.release();  // the threads are another process's
    return;
  }
  shared_->stop = true;
  shared_->news.fetch_add(1);
  shared_->news.notify_all();
  for (std::thread& t : shared_->workers) t.join();
}

void ThreadPool::start() {
  const std::lock_guard guard(start_);
  if (started_ && shared_->forks_at_start == forks) return;
  [[maybe_unused]] Shared* const leaked = shared_.release();
  shared_ = std::make_unique<Shared>();
  shared_->forks_at_start = forks;
  Shared& s = *shared_;
  try {
    for (int i = 1; i < width_; ++i) s.workers.emplace_back([&s] { work(s); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // The system gives no more threads: those that are there, and the callers, do the work.
  }
  started_ = true;
}

// Works on whatever job is open; false when there is none.
bool ThreadPool::help(Shared& shared) {
  bool any = false;
  for (Slot& slot : shared.slots) {
    if (!slot.job.load(std::memory_order_relaxed)) continue;
    // The job lives on its caller's stack, which waits for readers after it has taken the job back.
    slot.readers.fetch_add(1);
    Job* const job = slot.job.load();
    if (job && job->open()) {
      job->work();
      any = true;
    }
    slot.readers.fetch_sub(1);
  }
  return any;
}

void ThreadPool::work(Shared& shared) {
  using Clock = std::chrono::steady_clock;
  for (;;) {
    const std::uint32_t seen = shared.news.load();
    if (shared.stop) return;
    if (help(shared)) continue;
    const auto until = Clock::now() + spin_time;
    bool news = false;
    while (!news && Clock::now() < until) {
      for (int i = 0; i < 32 && !news; ++i) {
        _mm_pause();
        news = shared.news.load(std::memory_order_relaxed) != seen;
      }
    }
    if (news) continue;
    shared.sleepers.fetch_add(1);
    shared.news.wait(seen);
    shared.sleepers.fetch_sub(1);
  }
}

void ThreadPool::run(Index items, Index grain, RangeFunction function) {
  if (items <= 0) return;
  const Index share = (items + width_ * pieces_per_thread - 1) / (width_ * pieces_per_thread);
  const Index piece = std::max<Index>(std::max<Index>(grain, 1), share);
  if (width_ == 1 || piece >= items) return function(0, items);
  if (!started_.load(std::memory_order_acquire) || shared_->forks_at_start != forks) start();
  Shared& shared = *shared_;
  Job job{.function = function, .items = items, .piece = piece};
  Slot* mine = nullptr;
  for (Slot& slot : shared.slots) {
    if (!slot.taken.exchange(true)) {
      mine = &slot;
      slot.job.store(&job);
      break;
    }
  }
  if (mine) {
    shared.news.fetch_add(1);
    if (shared.sleepers.load() > 0) shared.news.notify_all();
  }
  job.work();
  if (mine) {
    mine->job.store(nullptr);
    // A worker that lost its processor in the middle of a piece gets this one.
    for (int spins = 0; mine->readers.load() != 0; ++spins) spins < 4096 ? _mm_pause() : std::this_thread::yield();
    mine->taken.store(false);  // only here, so that readers of another job are never waited for
  }
  if (job.error) std::rethrow_exception(job.error);
}

std::shared_ptr<Executor> shared_thread_pool() {
  static const auto pool = std::make_shared<ThreadPool>();
  return pool;
}

}  // namespace rlx
