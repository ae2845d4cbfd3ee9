// Steps of take_along on the CPU.
#include "ops/take_along/take_along.h"

#include <algorithm>
#include <cstring>

#include "ops/gather/index_view.h"

namespace rlx {

namespace {

// Calls f(i, other) for elements [begin, end) of the indices, `other` being the operand's element at the same
// coordinate but 0 along the axis.
template <class F>
void every_index(const Layout::Numbers& x, const Layout::Numbers& y, std::size_t axis, Index begin, Index end, F f) {
  std::array<Index, most_axes> at{};
  Index rest = begin, other = 0;
  for (std::size_t d = y.rank; d-- > 0;) {
    at[d] = rest % y.size[d];
    rest /= y.size[d];
    if (d != axis) other += at[d] * x.stride[d];
  }
  for (Index i = begin; i < end; ++i) {
    f(i, other);
    for (std::size_t d = y.rank; d-- > 0;) {
      const Index stride = d == axis ? 0 : x.stride[d];
      other += stride;
      if (++at[d] < y.size[d]) break;
      other -= stride * y.size[d];
      at[d] = 0;
    }
  }
}

template <class I, class T>
Step take_elements(const StepArgs& n, std::size_t axis) {
  StepBuilder s("take_along");
  const auto x = s.read<T>(n.in[0]);
  const auto indices = s.read<I>(n.in[1]);
  const auto y = s.write<T>(n.out[0]);
  s.needs_at_most(x, n.out[0].type.plane_bytes(0));
  const Layout in(s, n.in[0]), shape(s, n.in[1]);
  const Dim items = n.out[0].type.count();
  return s.run(
      max(items, 1), indexed_grain(n.out[0].type.dtype, items, 1), [=](const Memory& m, const DimValues& d, Range r) {
        const Layout::Numbers from = in(d), to = shape(d);
        const Index extent = from.size[axis], stride = from.stride[axis];
        const I* index = m[indices].data();
        check_indices("take_along", index, to, static_cast<Index>(axis), extent);
        const T* values = m[x].data();
        T* result = m[y].data();
        const Index end = std::min(r.end, static_cast<Index>(m[y].size()));
        if (r.begin >= end) return;
        every_index(from, to, axis, r.begin, end,
                    [&](Index i, Index other) { result[i] = values[other + position(index[i], extent) * stride]; });
      });
}

// Packed elements; threads own whole bytes of the result.
template <class I>
Step take_packed(const StepArgs& n, std::size_t axis) {
  StepBuilder s("take_along_packed");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto indices = s.read<I>(n.in[1]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.needs_at_most(x, n.out[0].type.plane_bytes(0));
  const Layout in(s, n.in[0]), shape(s, n.in[1]);
  const Dim items = n.out[0].type.plane_bytes(0);
  const int width = bits(n.out[0].type.dtype);
  const Index each = packed_in_byte(width);
  return s.run(
      max(items, 1), indexed_grain(n.out[0].type.dtype, items, 1), [=](const Memory& m, const DimValues& d, Range r) {
        const Layout::Numbers from = in(d), to = shape(d);
        const Index extent = from.size[axis], stride = from.stride[axis];
        const I* index = m[indices].data();
        check_indices("take_along", index, to, static_cast<Index>(axis), extent);
        if (r.begin >= r.end || m[y].empty()) return;
        m[y][static_cast<std::size_t>(r.end - 1)] = std::byte{0};  // its upper part may hold no element
        every_index(from, to, axis, each * r.begin, std::min(each * r.end, to.count()), [&](Index i, Index other) {
          const Index at = other + position(index[i], extent) * stride;
          set_packed(m[y].data(), i, packed_at(m[x].data(), at, width), width);
        });
      });
}

std::optional<Step> take_along_step(const StepArgs& n) {
  const Slot &x = n.in[0], &indices = n.in[1];
  if (!indices.dense() || !n.out[0].dense()) return n.decline("take_along reads indices and writes densely");
  if (x.type.dims.size() > most_axes) return n.decline("take_along has a kernel for up to 16 axes");
  const auto axis = static_cast<std::size_t>(x.type.axis(n.node.attrs.as<TakeAlongAttrs>().axis));
  const Index width = element_bytes(x.type.dtype);
  return with_index_type(indices.type.dtype, [&]<class I>() {
    if (width == 0) return take_packed<I>(n, axis);
    return with_width(width, [&]<class T>() { return take_elements<I, T>(n, axis); });
  });
}

}  // namespace

std::span<const MakerRow> take_along_cpu() {
  static const MakerRow rows[] = {{&take_along_op, take_along_step}};
  return rows;
}

}  // namespace rlx
