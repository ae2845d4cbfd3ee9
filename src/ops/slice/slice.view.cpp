// slice as a view, forwards.
#include "ops/slice/slice.h"

#include "device/view.h"

namespace rlx {

static std::optional<Slot> slice_of(const StepArgs& n) {
  const Slot& from = n.in[0];
  const auto& a = n.node.attrs.as<SliceAttrs>();
  if (bits(from.type.dtype) < 8) return n.decline("elements of less than a byte have no strides");
  std::vector<Dim> strides = strides_of(from);
  Dim elements = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    const Index step = step_along(a.steps, i);
    if (step < 1) return n.decline("a backward slice is copied");
    elements = elements + a.starts[i] * strides[i];
    strides[i] = strides[i] * step;
  }
  return view_of(from, n.node.results[0], from.offset + elements * storage_bytes(from.type.dtype, 1),
                 std::move(strides));
}

std::span<const ViewRow> slice_view() {
  static const ViewRow rows[] = {{&slice_op, slice_of}};
  return rows;
}

}  // namespace rlx
