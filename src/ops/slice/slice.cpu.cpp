// Steps of slice on the CPU.
#include "ops/slice/slice.h"

#include <algorithm>

#include "device/copy_step.h"

namespace rlx {

namespace {

// The box as reads of the operand: where its first element stands, and the strides.
struct SliceBox {
  Layout in, out;
  std::vector<DimToken> starts;
  std::vector<Index> steps;

  CopyBox operator()(const DimValues& d, Index& first) const {
    const Layout::Numbers x = in(d), y = out(d);
    CopyBox box;
    first = 0;
    for (std::size_t i = 0; i < y.rank; ++i) {
      first += d[starts[i]] * x.stride[i];
      box.add(y.size[i], x.stride[i] * step_along(steps, i), y.stride[i]);
    }
    return box;
  }
};

SliceBox slice_box(StepBuilder& s, const StepArgs& n) {
  const auto& a = n.node.attrs.as<SliceAttrs>();
  SliceBox box{Layout(s, n.in[0]), Layout(s, n.out[0]), {}, a.steps};
  for (const Dim& start : a.starts) box.starts.push_back(s.dim(start));
  return box;
}

Step slice_packed(const StepArgs& n) {
  StepBuilder s("slice_packed");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.needs_at_most(x, n.out[0].type.plane_bytes(0));
  const SliceBox slice = slice_box(s, n);
  const int width = bits(n.out[0].type.dtype);
  const Index each = packed_in_byte(width);
  return s.run(n.out[0].type.plane_bytes(0), 8192, [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end) return;
    Index first = 0;
    const CopyBox box = slice(d, first);
    m[y][static_cast<std::size_t>(r.end - 1)] = std::byte{0};  // its upper part may hold no element
    strided_copy_packed(box, width, m[x].data(), first, m[y].data(), 0, each * r.begin,
                        std::min(each * r.end, box.count()));
  });
}

std::optional<Step> slice_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  if (t.dims.size() > most_axes) return n.decline("slice has a kernel for up to 16 axes");
  const Index width = element_bytes(t.dtype);
  if (width == 0 && !n.out[0].dense()) return n.decline("packed elements are written densely");
  if (width == 0) return slice_packed(n);
  StepBuilder s("slice");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.needs_at_most(x, n.out[0].type.plane_bytes(0));
  const SliceBox slice = slice_box(s, n);
  const Dim grain = copy_grain(t.dtype, t.rank() > 0 ? t.dim(-1) : Dim(1));
  return s.run(t.count(), grain, [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end) return;
    Index first = 0;
    const CopyBox box = slice(d, first);
    strided_copy(box, width, m[x].data() + first * width, m[y].data(), r.begin, r.end);
  });
}

}  // namespace

std::span<const MakerRow> slice_cpu() {
  static const MakerRow rows[] = {{&slice_op, slice_step}};
  return rows;
}

}  // namespace rlx
