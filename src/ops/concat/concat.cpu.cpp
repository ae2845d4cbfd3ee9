// Steps of concat on the CPU: the elements of one operand after the other are the work.
#include "ops/concat/concat.h"

#include <algorithm>

#include "device/copy_step.h"

namespace rlx {

namespace {

struct Part {
  Token<std::byte, Access::read> x;
  Layout layout;
};

// Calls f(part, box, first, begin, end) for what [r.begin, r.end) has of each operand: elements begin to end of a box
// that is written from element `first` of the result.
template <class F>
void every_part(const std::vector<Part>& parts, const Layout::Numbers& y, std::size_t axis, const DimValues& d, Range r,
                F f) {
  Index before = 0, column = 0;
  for (const Part& part : parts) {
    const Layout::Numbers x = part.layout(d);
    CopyBox box;
    for (std::size_t i = 0; i < x.rank; ++i) box.add(x.size[i], x.stride[i], y.stride[i]);
    const Index count = box.count(), begin = std::max<Index>(r.begin - before, 0),
                end = std::min(r.end - before, count);
    if (begin < end) f(part, box, column * y.stride[axis], begin, end);
    before += count;
    column += x.size[axis];
  }
}

// Bytes at the seams hold elements of two operands: one thread writes all.
Step concat_packed(StepBuilder& s, const StepArgs& n, const std::vector<Part>& parts, std::size_t axis) {
  const auto y = s.write<std::byte>(n.out[0]);
  const Layout out(s, n.out[0]);
  const int width = bits(n.out[0].type.dtype);
  return s.run(1, 1, [=](const Memory& m, const DimValues& d, Range r) {
    if (r.begin >= r.end || m[y].empty()) return;
    m[y].back() = std::byte{0};  // its upper part may hold no element
    const Layout::Numbers to = out(d);
    every_part(parts, to, axis, d, {0, to.count()},
               [&](const Part& p, const CopyBox& box, Index first, Index begin, Index end) {
                 strided_copy_packed(box, width, m[p.x].data(), 0, m[y].data(), first, begin, end);
               });
  });
}

std::optional<Step> concat_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  if (t.dims.size() > most_axes) return n.decline("concat has a kernel for up to 16 axes");
  const Index width = element_bytes(t.dtype);
  if (width == 0 && !n.out[0].dense()) return n.decline("packed elements are written densely");
  const auto axis = static_cast<std::size_t>(t.axis(n.node.attrs.as<ConcatAttrs>().axis));
  StepBuilder s(width == 0 ? "concat_packed" : "concat");
  std::vector<Part> parts;
  for (const Slot& x : n.in) parts.push_back({s.read<std::byte>(x), Layout(s, x)});
  if (width == 0) return concat_packed(s, n, parts, axis);
  const auto y = s.write<std::byte>(n.out[0]);
  const Layout out(s, n.out[0]);
  return s.run(t.count(), copy_grain(t.dtype, t.dim(-1)), [=](const Memory& m, const DimValues& d, Range r) {
    every_part(parts, out(d), axis, d, r, [&](const Part& p, const CopyBox& box, Index first, Index begin, Index end) {
      strided_copy(box, width, m[p.x].data(), m[y].data() + first * width, begin, end);
    });
  });
}

}  // namespace

std::span<const MakerRow> concat_cpu() {
  static const MakerRow rows[] = {{&concat_op, concat_step}};
  return rows;
}

}  // namespace rlx
