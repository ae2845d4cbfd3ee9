// broadcast on GPUs: an elementwise kernel of one node.
#include "ops/broadcast/broadcast.h"

#include "ops/scalar/scalar_text.h"

namespace rlx {

std::span<const GpuMakerRow> broadcast_gpu() {
  static constexpr GpuMakerRow rows[] = {{&broadcast_op, elementwise_launch}};
  return rows;
}

}  // namespace rlx
