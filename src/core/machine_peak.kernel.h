// Kernels that show what the machine can do at most: multiply-add in registers, and reading and writing memory.
#pragma once

#include "core/levels.h"

namespace rlx {

/// Independent chains of multiply-add in registers. The result of run() only keeps the work from being left out.
struct MultiplyAddPeak {
  float (*run)(long steps) = nullptr;
  long operations = 0;  // of one step; a multiplication and an addition are two
};

/// By the type that is multiplied. A level without an instruction for bf16 or int8 has that of f32 there. Arrays start
/// at multiples of 64 bytes, have a multiple of 128 elements, and do not overlap.
struct MachinePeaks {
  MultiplyAddPeak f32, f64, bf16, i8;
  float (*read)(const float* a, long count);
  void (*copy)(const float* a, float* b, long count);
  void (*copy_streaming)(const float* a, float* b, long count);
  /// c = a + 0.5 b.
  void (*triad)(const float* a, const float* b, float* c, long count);
  void (*triad_streaming)(const float* a, const float* b, float* c, long count);
};

}  // namespace rlx

RLX_LEVELS(MachinePeaks, machine_peaks)

namespace rlx {
/// Those of a level that need not be the one in use.
inline const MachinePeaks& machine_peaks(Level level) {
  const MachinePeaks* const tables[] = {&v2::machine_peaks, &v3::machine_peaks, &v4::machine_peaks,
                                        &v4b::machine_peaks};
  return *tables[static_cast<int>(level)];
}
}  // namespace rlx
