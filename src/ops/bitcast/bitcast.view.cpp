// bitcast as a view: the operand's memory as it lies.
#include "ops/bitcast/bitcast.h"

#include "device/view.h"

namespace rlx {

static std::optional<Slot> bitcast_of(const StepArgs& n) {
  Slot view = n.in[0];
  view.type = n.node.results[0];
  view.constant = nullptr;
  return view;
}

std::span<const ViewRow> bitcast_view() {
  static const ViewRow rows[] = {{&bitcast_op, bitcast_of}};
  return rows;
}

}  // namespace rlx
