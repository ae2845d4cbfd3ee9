// Views: lookup, and arithmetic on strides.
#include "device/view.h"

namespace rlx {

ViewMaker find_view(const OpDef* op) {
  static const auto table = [] {
    std::unordered_map<const OpDef*, ViewMaker> all;
    for (const ViewFolder folder : view_folders()) {
      for (const ViewRow& row : folder()) all.emplace(row.op, row.make);
    }
    return all;
  }();
  const auto it = table.find(op);
  return it == table.end() ? nullptr : it->second;
}

std::vector<Dim> dense_strides(std::span<const Dim> dims) {
  std::vector<Dim> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

std::vector<Dim> strides_of(const Slot& slot) { return slot.dense() ? dense_strides(slot.type.dims) : slot.strides; }

Slot view_of(const Slot& from, TensorType type, Dim offset, std::vector<Dim> strides) {
  const std::vector<Dim> dense = dense_strides(type.dims);
  bool differs = false;  // the stride of an axis of size 1 says nothing
  for (std::size_t i = 0; i < strides.size(); ++i) differs |= type.dims[i] != Dim(1) && strides[i] != dense[i];
  if (!differs) strides.clear();
  return {from.buffer, std::move(type), std::move(offset), std::move(strides), from.plane, nullptr};
}

}  // namespace rlx
