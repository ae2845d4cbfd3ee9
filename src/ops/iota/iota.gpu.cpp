// iota on GPUs: an elementwise kernel of one node.
#include "ops/iota/iota.h"

#include "ops/scalar/scalar_text.h"

namespace rlx {

std::span<const GpuMakerRow> iota_gpu() {
  static constexpr GpuMakerRow rows[] = {{&iota_op, elementwise_launch}};
  return rows;
}

}  // namespace rlx
