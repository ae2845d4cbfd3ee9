// Measuring what the machine can do: pinned threads that start together and are timed until the last is done.
#include "core/machine_peak.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/machine_peak.kernel.h"
#include "core/os_posix.h"

namespace rlx {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// The processors that the process may use.
std::vector<int> processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> found;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return {0};
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) found.push_back(i);
  }
  return found;
}

void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);  // without it the figure is only less steady
}

// Threads meet here without sleeping.
class Meeting {
 public:
  explicit Meeting(int threads) : threads_(threads) {}
  void wait() {
    const int round = round_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_ = 0;
      round_.fetch_add(1);
    } else {
      while (round_.load() == round) {
      }
    }
  }

 private:
  int threads_;
  std::atomic<int> arrived_ = 0, round_ = 0;
};

// Where the threads go.
std::vector<int> places(const PeakOptions& o) {
  std::vector<int> where = processors();
  require(o.threads >= 1 && static_cast<std::size_t>(o.threads) <= where.size(),
          "{} threads are asked for, expected 1 to {}, the processors that the process may use", o.threads,
          where.size());
  return where;
}

// The best time of `work(thread, repeats)` on all threads together, over what one repeat takes.
double best_time(const PeakOptions& o, const std::function<void(int, long)>& work) {
  const std::vector<int> where = places(o);
  Meeting meeting(o.threads);
  double best = 0;
  long repeats = 1;
  const auto run = [&](int t) {
    pin(where[static_cast<std::size_t>(t)]);
    work(t, 1);
    for (int i = -1; i < o.repetitions; ++i) {
      meeting.wait();
      const auto begin = Clock::now();
      work(t, repeats);
      meeting.wait();
      if (t == 0) {
        const double time = seconds_since(begin) / static_cast<double>(repeats);
        if (i < 0) {
          repeats = std::max(1L, static_cast<long>(o.seconds / std::max(time, 1e-9)));  // the others wait below
        } else {
          best = i == 0 ? time : std::min(best, time);
        }
      }
      meeting.wait();
    }
  };
  std::vector<std::jthread> threads;
  for (int t = 0; t < o.threads; ++t) threads.emplace_back(run, t);
  threads.clear();
  return best;
}

std::atomic<float> kept = 0;  // what kernels give, so that their work counts as used

// `number` keeps arrays apart in the sets of the caches: equal places in pages would wait for each other.
class Array {
 public:
  Array(Index count, Index number) : bytes_(allocate_large((count + 16) * Index{sizeof(float)} + number * apart)) {
    const std::span<std::byte> all(const_cast<std::byte*>(bytes_.data.data()), bytes_.data.size());
    void* place = all.data();
    std::size_t room = all.size();
    std::align(64, room - 64, place, room);
    values_ = reinterpret_cast<float*>(static_cast<std::byte*>(place) + number * apart);
    for (Index i = 0; i < count; ++i) values_[i] = static_cast<float>(i % 1021);
  }
  float* data() const { return values_; }

 private:
  static constexpr Index apart = 1088;
  Bytes bytes_;
  float* values_ = nullptr;
};

}  // namespace

double multiply_add_rate(DType type, Level level, const PeakOptions& options) {
  const MachinePeaks& k = machine_peaks(level);
  const MultiplyAddPeak& peak = type == DType::f64    ? k.f64
                                : type == DType::bf16 ? k.bf16
                                : type == DType::i8   ? k.i8
                                                      : k.f32;
  constexpr long steps = 2000;
  const double time = best_time(options, [&](int, long repeats) { kept = peak.run(steps * repeats); });
  return static_cast<double>(peak.operations * steps) * options.threads / time;
}

double bandwidth(Traffic traffic, Index bytes, const PeakOptions& options) {
  (void)places(options);  // refuses numbers of threads before they divide
  const bool reads = traffic == Traffic::read;
  const bool triad = traffic == Traffic::triad || traffic == Traffic::triad_streaming;
  const Index arrays = reads ? 1 : triad ? 3 : 2;
  const Index each = std::max<Index>(bytes / arrays / Index{sizeof(float)} / options.threads / 128, 1) * 128;
  const Index count = each * options.threads;
  const Array a(count, 0), b(reads ? 0 : count, 1), c(triad ? count : 0, 2);
  const MachinePeaks& k = machine_peaks();
  const double time = best_time(options, [&](int thread, long repeats) {
    const Index at = thread * each;
    float sum = 0;
    for (long i = 0; i < repeats; ++i) {
      switch (traffic) {
        case Traffic::read:
          sum += k.read(a.data() + at, each);
          break;
        case Traffic::copy:
          k.copy(a.data() + at, b.data() + at, each);
          break;
        case Traffic::copy_streaming:
          k.copy_streaming(a.data() + at, b.data() + at, each);
          break;
        case Traffic::triad:
          k.triad(a.data() + at, b.data() + at, c.data() + at, each);
          break;
        case Traffic::triad_streaming:
          k.triad_streaming(a.data() + at, b.data() + at, c.data() + at, each);
          break;
      }
    }
    kept = sum;
  });
  return static_cast<double>(arrays * count) * sizeof(float) / time;
}

double cache_line_round_trip() {
  const std::vector<int> where = processors();
  if (where.size() < 2) return 0;
  constexpr int trips = 2000, tries = 7;
  struct alignas(128) Ball {
    std::atomic<int> at = 0;
  } ball;
  std::jthread other([&] {
    pin(where[1]);
    for (int i = 0; i < tries * trips; ++i) {
      while (ball.at.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      ball.at.store(2 * i + 2, std::memory_order_release);
    }
  });
  std::vector<double> times;
  std::jthread one([&] {
    pin(where[0]);
    for (int t = 0; t < tries; ++t) {
      const auto begin = Clock::now();
      for (int i = t * trips; i < (t + 1) * trips; ++i) {
        ball.at.store(2 * i + 1, std::memory_order_release);
        while (ball.at.load(std::memory_order_acquire) != 2 * i + 2) {
        }
      }
      times.push_back(seconds_since(begin) / trips);
    }
  });
  one.join();
  other.join();
  std::ranges::sort(times);
  return times[times.size() / 2];
}

}  // namespace rlx
