// Steps of transpose on the CPU.
#include "ops/transpose/transpose.h"

#include "device/copy_step.h"

namespace rlx {

// The operand as a view with its axes in the other order, copied.
static std::optional<Step> transpose_step(const StepArgs& n) {
  const Slot& x = n.in[0];
  if (x.type.dims.size() > most_axes) return n.decline("transpose has a kernel for up to 16 axes");
  if (!n.out[0].dense() && element_bytes(x.type.dtype) == 0) return n.decline("packed elements are written densely");
  const std::vector<Dim> strides = strides_of(x);
  Slot view = x;
  view.type = n.out[0].type;
  view.strides.clear();
  for (const Index axis : n.node.attrs.as<TransposeAttrs>().order) {
    view.strides.push_back(strides[static_cast<std::size_t>(x.type.axis(axis))]);
  }
  Step step = copy_step(view, n.out[0]);
  step.name = "transpose";
  return step;
}

std::span<const MakerRow> transpose_cpu() {
  static const MakerRow rows[] = {{&transpose_op, transpose_step}};
  return rows;
}

}  // namespace rlx
