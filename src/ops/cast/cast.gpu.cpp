// cast on GPUs: an elementwise kernel of one node.
#include "ops/cast/cast.h"

#include "ops/scalar/scalar_text.h"

namespace rlx {

std::span<const GpuMakerRow> cast_gpu() {
  static constexpr GpuMakerRow rows[] = {{&cast_op, elementwise_launch}};
  return rows;
}

}  // namespace rlx
