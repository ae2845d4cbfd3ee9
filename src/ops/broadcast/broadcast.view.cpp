// broadcast as a view: stride 0 along stretched axes.
#include "ops/broadcast/broadcast.h"

#include "device/view.h"

namespace rlx {

static std::optional<Slot> broadcast_of(const StepArgs& n) {
  const Slot& from = n.in[0];
  if (bits(from.type.dtype) < 8) return n.decline("elements of less than a byte have no strides");
  const TensorType& to = n.node.results[0];
  const std::vector<Dim> old = strides_of(from);
  std::vector<Dim> strides(to.dims.size(), 0);
  const std::size_t added = to.dims.size() - old.size();
  for (std::size_t i = 0; i < old.size(); ++i) {
    const bool stretched = from.type.dims[i] == Dim(1) && to.dims[added + i] != Dim(1);
    if (!stretched) strides[added + i] = old[i];
  }
  return view_of(from, to, from.offset, std::move(strides));
}

std::span<const ViewRow> broadcast_view() {
  static const ViewRow rows[] = {{&broadcast_op, broadcast_of}};
  return rows;
}

}  // namespace rlx
