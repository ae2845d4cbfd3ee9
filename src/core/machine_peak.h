// What the machine can do at most, measured: operations a second, bytes a second, and the time of a cache line from
// one processor to another. Floors of reports and probes of benchmarks compare with these.
#pragma once

#include "core/dtype.h"
#include "core/levels.h"

namespace rlx {

/// What a bandwidth is measured on. Bytes are counted as the program moves them: what a store reads first is not.
enum class Traffic : std::uint8_t {
  read,             // sums one array
  copy,             // b = a
  copy_streaming,   // with stores that pass by the caches
  triad,            // c = a + 0.5 b
  triad_streaming,  // with stores that pass by the caches
};

/// How many threads take part, thread i pinned to the i-th processor that the process may use, and how often the work,
/// of about `seconds`, is done; the best counts. Throws Error for fewer than 1 thread and for more than there are
/// processors.
struct PeakOptions {
  int threads = 1;
  int repetitions = 5;
  double seconds = 0.002;
};

/// Operations a second of multiply-add on values of `type` (f32, f64, bf16 or i8; i8 stands for u8 times s8) in the
/// registers of a level that the machine has; a multiplication and an addition are two.
double multiply_add_rate(DType type, Level level, const PeakOptions& options);

/// Bytes a second over arrays of `bytes` together, which the threads share, at the level in use.
double bandwidth(Traffic traffic, Index bytes, const PeakOptions& options);

/// Seconds that a cache line takes from the first processor that the process may use to the second and back: the median
/// of several tries. 0 when there is one processor only.
double cache_line_round_trip();

}  // namespace rlx
