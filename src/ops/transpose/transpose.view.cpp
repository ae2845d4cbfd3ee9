// transpose as a view.
#include "ops/transpose/transpose.h"

#include "device/view.h"

namespace rlx {

static std::optional<Slot> transpose_of(const StepArgs& n) {
  const Slot& from = n.in[0];
  if (bits(from.type.dtype) < 8) return n.decline("elements of less than a byte have no strides");
  const std::vector<Dim> old = strides_of(from);
  std::vector<Dim> strides;
  for (const Index axis : n.node.attrs.as<TransposeAttrs>().order)
    strides.push_back(old[static_cast<std::size_t>(from.type.axis(axis))]);
  return view_of(from, n.node.results[0], from.offset, std::move(strides));
}

std::span<const ViewRow> transpose_view() {
  static const ViewRow rows[] = {{&transpose_op, transpose_of}};
  return rows;
}

}  // namespace rlx
