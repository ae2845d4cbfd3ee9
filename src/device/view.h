// Views: results that need no step, because they are an operand's memory under other sizes and strides.
#pragma once

#include <span>
#include <unordered_map>

#include "device/step.h"

namespace rlx {

/// The slot of the only result, in the buffer of operand 0; nothing when the result is no view of this slot.
/// `out` is empty here.
using ViewMaker = std::optional<Slot> (*)(const StepArgs&);

/// A folder NAME with a NAME.view.cpp exports `std::span<const ViewRow> NAME_view()`.
struct ViewRow {
  const OpDef* op = nullptr;
  ViewMaker make = nullptr;
};
using ViewFolder = std::span<const ViewRow> (*)();
/// One row a folder with a NAME.view.cpp (generated).
std::span<const ViewFolder> view_folders();

/// The view rule of an op, or null.
ViewMaker find_view(const OpDef* op);

/// Strides of a dense tensor, in elements.
std::vector<Dim> dense_strides(std::span<const Dim> dims);
/// Strides of a slot in elements, also where it is dense.
std::vector<Dim> strides_of(const Slot& slot);
/// A slot in the buffer of `from`, at another offset and with other strides; these may turn out to be dense.
Slot view_of(const Slot& from, TensorType type, Dim offset, std::vector<Dim> strides);

}  // namespace rlx
