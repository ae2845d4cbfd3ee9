// The thread pool: the caller works too, workers spin for a short time and then sleep.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/executor.h"

namespace rlx {

/// Processors that this process may use: its affinity, cut by the quota of its control group, at least 1.
int usable_processors();

/// width() - 1 workers, started by the first run that needs them, and anew in a forked child. Idle workers sleep.
class ThreadPool final : public Executor {
 public:
  /// `width` threads in all, the caller included; 0: usable_processors(). Throws Error for a negative width or one over
  /// 1024.
  explicit ThreadPool(int width = 0);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int width() const override { return width_; }
  void run(Index items, Index grain, RangeFunction function) override;

 private:
  struct Job;
  struct Slot {
    std::atomic<bool> taken = false;
    std::atomic<Job*> job = nullptr;
    std::atomic<int> readers = 0;
  };
  struct Shared;

  void start();
  static void work(Shared& shared);
  static bool help(Shared& shared);

  int width_;
  std::atomic<bool> started_ = false;
  std::mutex start_;
  std::unique_ptr<Shared> shared_;
};

/// The pool of usable_processors() threads that everybody shares who asks for no other; made by the first call.
std::shared_ptr<Executor> shared_thread_pool();

}  // namespace rlx
