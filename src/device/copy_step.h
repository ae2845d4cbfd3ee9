// Steps that move elements: a copy between slots in any layout, and what makers of such steps share.
#pragma once

#include <vector>

#include "core/strided_copy.h"
#include "device/view.h"

namespace rlx {

/// Sizes and strides of a slot, declared with a step: numbers in every run. Strides of a dense slot are row-major.
class Layout {
 public:
  struct Numbers {
    std::size_t rank = 0;
    std::array<Index, most_axes> size, stride;
    Index count() const;
  };
  /// The slot has at most `most_axes` axes.
  Layout(StepBuilder& s, const Slot& slot);
  Numbers operator()(const DimValues& d) const;

 private:
  std::vector<DimToken> sizes_, strides_;
};

/// Bytes of an element; 0 for packed element types.
inline Index element_bytes(DType type) { return bits(type) % 8 == 0 ? bits(type) / 8 : 0; }

/// Elements that one call of a copying step should have at least, when rows of the result have `row` elements of
/// `type`: about 64 KiB, and rows enough for whole tiles where the copy transposes.
Dim copy_grain(DType type, const Dim& row);

/// A step that copies the elements of `from` to `to` in row-major order; each slot is dense or strided. Their types
/// have the same element type or encoding and the same element count; sizes differ only where one of the slots is
/// dense. Encoded tensors are dense and of equal type; one plane is copied. Slots with more than `most_axes` axes are
/// an Error unless both are dense. The slots must not overlap.
Step copy_step(const Slot& from, const Slot& to);

}  // namespace rlx
