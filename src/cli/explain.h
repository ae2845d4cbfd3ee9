// Where the time of a run goes: every step beside its floor, the largest gaps, and why each kernel was chosen.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "runtime/report.h"

namespace rlx::cli {

/// What the machine can do at most with a number of threads, measured when the program asks.
struct MachineRates {
  struct Peak {
    DType type;
    double operations = 0;  // a second
  };
  struct Speed {
    Index working_set = 0;  // bytes
    double bytes = 0;       // a second, the better of reading and copying
  };
  int threads = 1;
  std::vector<Peak> peaks;
  std::vector<Speed> speeds;  // by growing working set

  /// Operations a second in this type; those of f32 for a type that was not measured.
  double peak(DType type) const;
  /// Bytes a second for a working set: of the largest that was measured and is no larger, so that a floor stays one.
  double speed(Index working_set) const;
};

/// Measures for about a second; more than the processors that the process may use count as these.
MachineRates measure_rates(int threads);

/// A step of a run beside its floor: the larger of operations / peak and fewest bytes / bandwidth.
struct StepFloor {
  double seconds = 0, floor = 0;  // time, and least time
  bool memory = false;            // the bytes bound it
};

/// `seconds` holds the time of every step. Constants count at the bandwidth of all constants of the program together,
/// since each run reads them all; other operands and results at that of the step's own bytes.
std::vector<StepFloor> step_floors(const RunReport& report, const MachineRates& rates,
                                   const std::vector<double>& seconds);

/// Steps of one kernel on equal operands, as the layers of a model have, and what they lose to their floors together.
struct Gap {
  std::vector<std::size_t> steps;
  double lost = 0;  // seconds
};

/// What loses most time to its floor, the worst first; at most five.
std::vector<Gap> worst_gaps(const RunReport& report, const std::vector<StepFloor>& floors);

/// `notes`: what the passes say about kernels that were not found.
std::string explain_table(const RunReport& report, const MachineRates& rates, const std::vector<StepFloor>& floors,
                          const std::vector<std::string>& notes);
/// The same as a JSON object.
std::string explain_json(const RunReport& report, const MachineRates& rates, const std::vector<StepFloor>& floors,
                         const std::vector<std::string>& notes);

}  // namespace rlx::cli
