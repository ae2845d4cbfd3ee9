// Probes the machine: peaks of multiply-add, bandwidths, and the round trip of a cache line between two processors.
// Prints lines of `NAME VALUE`, rates in G a second, times in ns; NAME ends in the number of threads.
#include <fmt/core.h>

#include <cstdio>
#include <string>

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

void bandwidths(int threads, bool all) {
  struct Row {
    const char* name;
    Traffic traffic;
  };
  constexpr Row rows[] = {{"read", Traffic::read},
                          {"copy", Traffic::copy},
                          {"copy_streaming", Traffic::copy_streaming},
                          {"triad", Traffic::triad},
                          {"triad_streaming", Traffic::triad_streaming}};
  constexpr Index kib = 1024, mib = 1024 * kib;
  for (const Index bytes : {32 * kib, 256 * kib, 8 * mib, 512 * mib}) {
    if (!all && bytes != 512 * mib) continue;
    for (const Row& r : rows) {
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
  const std::string what = count > 1 ? arguments[1] : "all";
  if (count > 2 || (what != "all" && what != "peaks" && what != "memory" && what != "trip")) {
    fmt::print(stderr, "usage: probe [all | peaks | memory | trip]\n");
    return 2;
  }
  try {
    round_trip();
    for (int threads = 1; what != "trip" && threads <= usable_processors() && threads <= 2; ++threads) {
      if (what != "memory") peaks(threads);
      if (what != "peaks") bandwidths(threads, what == "all");
    }
    if (what == "all") round_trip();
  } catch (const std::exception& e) {
    fmt::print(stderr, "probe: {}\n", e.what());
    return 1;
  }
  return 0;
}
