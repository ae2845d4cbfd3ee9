// What benchmarks of one thread compare with: the peak of multiply-add in registers; and the time of a thread.
#pragma once

#include <ctime>

#include "core/machine_peak.kernel.h"

namespace rlx::bench {

/// Processor time of this thread, so that other programs count less.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

inline constexpr long probe_steps = 200'000;
inline volatile float probe_result;

/// Operations of one probe.
inline double probe_flops(Level level, MultiplyAddPeak MachinePeaks::* type = &MachinePeaks::f32) {
  return static_cast<double>((machine_peaks(level).*type).operations) * static_cast<double>(probe_steps);
}

/// Chains of multiply-add in the registers of a level, of f32 or of another type.
inline void probe(Level level, MultiplyAddPeak MachinePeaks::* type = &MachinePeaks::f32) {
  probe_result = (machine_peaks(level).*type).run(probe_steps);
}

}  // namespace rlx::bench
