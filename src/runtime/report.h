// What an executable says about itself.
#pragma once

#include <string>
#include <vector>

#include "core/dim.h"
#include "plan/program.h"

namespace rlx {

struct StepReport {
  std::string kernel, node;
  Index items = 0, grain = 0, flops = 0;
  Index bytes_read = 0, bytes_written = 0;
  Index least_bytes = 0, least_weight_bytes = 0;  // that any kernel must move: each element once; constants apart
  DType arithmetic = DType::f32;                  // of the operations
  std::vector<std::string> declined;              // why kernels that were asked first are not used
  std::vector<std::uint32_t> waits_for;
};

struct BufferReport {
  std::string value, kind;
  Index bytes = 0, offset = 0;       // offset in the arena
  std::uint32_t begin = 0, end = 0;  // steps
  bool shared = false;               // lies in the memory of another
};

struct RunReport {
  std::string device;
  DimEnv dims;
  Index arena_bytes = 0;
  Index constant_bytes = 0;  // constants read as they are
  Index packed_bytes = 0;    // constants in the forms of kernels
  std::vector<StepReport> steps;
  std::vector<BufferReport> buffers;
  std::vector<std::string> remarks;
};

struct MemoryUse {
  Index arenas = 0;   // of runs that are over, kept for the next
  Index weights = 0;  // packed or uploaded constants, those of other programs of the session included
  Index outputs = 0;  // results that were given back and wait for the next run
};

}  // namespace rlx
