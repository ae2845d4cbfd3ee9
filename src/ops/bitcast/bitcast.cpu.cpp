// Steps of bitcast on the CPU: a copy, for where the result cannot share the operand's memory.
#include "ops/bitcast/bitcast.h"

#include "device/copy_step.h"

namespace rlx {

static std::optional<Step> bitcast_step(const StepArgs& n) {
  Slot from = n.in[0];
  if (!from.dense() && !n.out[0].dense()) return n.decline("bitcast copies between slots of which one is dense");
  if (from.type.dims.size() > most_axes) return n.decline("bitcast has a kernel for up to 16 axes");
  from.type.dtype = n.out[0].type.dtype;
  Step step = copy_step(from, n.out[0]);
  step.name = "bitcast";
  return step;
}

std::span<const MakerRow> bitcast_cpu() {
  static const MakerRow rows[] = {{&bitcast_op, bitcast_step}};
  return rows;
}

}  // namespace rlx
