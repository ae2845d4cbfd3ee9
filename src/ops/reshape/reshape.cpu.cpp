// Steps of reshape on the CPU: a copy, for where the result cannot share the operand's memory.
#include "ops/reshape/reshape.h"

#include "device/copy_step.h"

namespace rlx {

static std::optional<Step> reshape_step(const StepArgs& n) {
  const Slot &x = n.in[0], &y = n.out[0];
  if (!x.dense() && !y.dense()) return n.decline("reshape copies between slots of which one is dense");
  const std::size_t axes = (x.dense() ? y : x).type.dims.size();
  if (x.dense() != y.dense() && axes > most_axes) return n.decline("reshape has a kernel for up to 16 axes");
  Step step = copy_step(x, y);
  step.name = "reshape";
  return step;
}

std::span<const MakerRow> reshape_cpu() {
  static const MakerRow rows[] = {{&reshape_op, reshape_step}};
  return rows;
}

}  // namespace rlx
