// Probes the machine: peaks of multiply-add, bandwidths, and the round trip of a cache line between two processors.
// Prints lines of `NAME VALUE`, rates in G a second, times in ns; NAME ends in the number of threads.
// Usage: rlx_bench_probe [all | trip | peaks [THREADS] | TRAFFIC [THREADS]], TRAFFIC being read, copy, copy_streaming,
// triad or triad_streaming.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/machine_peak.h"
#include "core/thread_pool.h"

namespace {

using namespace rlx;

void line(const std::string& name, double value) {
  fmt::print("{} {:.5g}\n", name, value);
  std::fflush(stdout);
}

void round_trip() { line("round_trip_ns", cache_line_round_trip() * 1e9); }

void peaks(int threads) {
  struct Row {
    const char* name;
    DType type;
    Level level;
  };
  constexpr Row rows[] = {{"f32_avx512", DType::f32, Level::v4},
                          {"f32_avx2", DType::f32, Level::v3},
                          {"f64_avx512", DType::f64, Level::v4},
                          {"bf16", DType::bf16, Level::v4b},
                          {"int8", DType::i8, Level::v4b}};
  for (const Row& r : rows) {
    if (static_cast<int>(r.level) >= available_levels().count) continue;
    line(fmt::format("peak_{}_{}", r.name, threads),
         multiply_add_rate(r.type, r.level, {.threads = threads, .repetitions = 15, .seconds = 0.004}) / 1e9);
  }
}

constexpr Index kib = 1024, mib = 1024 * kib;

// `only`: the names of traffic that are measured, beyond the caches; empty: all, at every size.
void bandwidths(int threads, std::string_view only) {
  struct Row {
    const char* name;
    Traffic traffic;
  };
  constexpr Row rows[] = {{"read", Traffic::read},
                          {"copy", Traffic::copy},
                          {"copy_streaming", Traffic::copy_streaming},
                          {"triad", Traffic::triad},
                          {"triad_streaming", Traffic::triad_streaming}};
  for (const Index bytes : {32 * kib, 256 * kib, 8 * mib, 512 * mib}) {
    if (!only.empty() && bytes != 512 * mib) continue;
    for (const Row& r : rows) {
      if (!only.empty() && only != r.name) continue;
      const bool small = bytes < 100 * mib;
      line(fmt::format("{}_{}KiB_{}", r.name, bytes / kib, threads),
           bandwidth(r.traffic, bytes,
                     {.threads = threads, .repetitions = small ? 15 : 7, .seconds = small ? 0.004 : 0}) /
               1e9);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> args(arguments + 1, arguments + count);
  const std::string what = args.empty() ? "all" : args[0];
  if (args.size() > 2) {
    fmt::print(stderr, "usage: probe [all | trip | peaks [THREADS] | read | copy | ... [THREADS]]\n");
    return 2;
  }
  try {
    const int most = std::min(usable_processors(), 2);
    const int first = args.size() > 1 ? std::stoi(args[1]) : 1, last = args.size() > 1 ? first : most;
    if (what == "all" || what == "trip") round_trip();
    for (int threads = first; what != "trip" && threads <= last; ++threads) {
      if (what == "all" || what == "peaks") peaks(threads);
      if (what != "peaks") bandwidths(threads, what == "all" ? "" : what);
    }
    if (what == "all") round_trip();
  } catch (const std::exception& e) {
    fmt::print(stderr, "probe: {}\n", e.what());
    return 1;
  }
  return 0;
}
