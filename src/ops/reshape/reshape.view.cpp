// reshape as a view: dense memory always; strided memory where every group of axes that changes is dense in itself.
#include "ops/reshape/reshape.h"

#include "device/view.h"

namespace rlx {

namespace {

// Strides of axes `dims` that share the memory of axes `from` with `strides`, both with the same number of elements;
// false when the old axes are not one run.
bool regroup(std::span<const Dim> from, std::span<const Dim> strides, std::span<const Dim> dims,
             std::vector<Dim>& result) {
  Dim run = 1;
  bool any = false;
  for (std::size_t i = from.size(); i-- > 0;) {
    if (from[i] == Dim(1)) continue;
    if (any && strides[i] != run) return false;
    run = strides[i] * from[i];
    any = true;
  }
  Dim stride = 1;
  for (std::size_t i = from.size(); i-- > 0;) {
    if (from[i] == Dim(1)) continue;
    stride = strides[i];
    break;
  }
  std::vector<Dim> part(dims.size());
  for (std::size_t i = dims.size(); i-- > 0;) {
    part[i] = stride;
    stride = stride * dims[i];
  }
  result.insert(result.end(), part.begin(), part.end());
  return true;
}

std::optional<Slot> reshape_of(const StepArgs& n) {
  const Slot& from = n.in[0];
  const TensorType& to = n.node.results[0];
  if (from.dense()) return view_of(from, to, from.offset, dense_strides(to.dims));
  const std::span<const Dim> old = from.type.dims, dims = to.dims, strides = from.strides;
  std::vector<Dim> result;
  std::size_t i = 0, k = 0;
  while (i < old.size() || k < dims.size()) {
    // The shortest groups from here on with equal numbers of elements.
    const std::size_t i0 = i, k0 = k;
    Dim a = i < old.size() ? old[i++] : Dim(1), b = k < dims.size() ? dims[k++] : Dim(1);
    while (a != b) {
      // The group that is provably smaller grows; where that is not known, either may.
      if (k < dims.size() && (i == old.size() || (a - b).bounds().lo >= 0)) {
        b = b * dims[k++];
      } else if (i < old.size()) {
        a = a * old[i++];
      } else {
        return n.decline("the axes of a strided reshape do not fall into groups of equal size");
      }
    }
    if (!regroup(old.subspan(i0, i - i0), strides.subspan(i0, i - i0), dims.subspan(k0, k - k0), result))
      return n.decline("axes that a reshape joins are not one run of memory");
  }
  return view_of(from, to, from.offset, std::move(result));
}

}  // namespace

std::span<const ViewRow> reshape_view() {
  static const ViewRow rows[] = {{&reshape_op, reshape_of}};
  return rows;
}

}  // namespace rlx
