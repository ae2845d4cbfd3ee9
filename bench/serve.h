// A benchmark that stays alive and measures on request, so that it can take turns with another in a second process:
// it reads lines `TYPE M K N ROTATE SECONDS` and answers each with `MEDIAN BEST SAMPLES`, times of one product in
// seconds, or with `error TEXT`. Includes nothing of rlx: programs of peers use it too.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace bench {

/// A product [M,K] x [K,N]; `rotate` right-hand sides take turns, so that together they can exceed the caches.
struct Request {
  std::string type;  // f32, bf16, int8 (u8 times s8)
  long m = 0, k = 0, n = 0;
  int rotate = 1;
};

/// Runs every right-hand side once.
using Work = std::function<void()>;

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Samples of at least a fifth of a millisecond, for about `budget` seconds.
inline std::vector<double> sample(const Work& work, double budget) {
  work();
  auto begin = std::chrono::steady_clock::now();
  work();
  const int repeats = std::max(1, static_cast<int>(2e-4 / std::max(seconds_since(begin), 1e-9)) + 1);
  std::vector<double> times;
  for (const auto start = std::chrono::steady_clock::now(); times.size() < 3 || seconds_since(start) < budget;) {
    begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) work();
    times.push_back(seconds_since(begin) / repeats);
  }
  std::sort(times.begin(), times.end());
  return times;
}

/// Prints the answer to a request: times of what `prepare` gives, each over `parts`, or why there are none.
inline void answer(const std::function<Work()>& prepare, double budget, int parts = 1) {
  try {
    const std::vector<double> times = sample(prepare(), budget);
    std::printf("%.9g %.9g %zu\n", times[times.size() / 2] / parts, times.front() / parts, times.size());
  } catch (const std::exception& e) {
    std::string text = e.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    std::printf("error %s\n", text.c_str());
  }
  std::fflush(stdout);
}

/// Serves standard input until it ends. `prepare` makes the work of a request; the last works are kept.
inline int serve(const std::function<Work(const Request&)>& prepare) {
  Request r;
  double budget = 0;
  while (std::cin >> r.type >> r.m >> r.k >> r.n >> r.rotate >> budget) {
    answer([&] { return prepare(r); }, budget, r.rotate);
  }
  return 0;
}

}  // namespace bench
