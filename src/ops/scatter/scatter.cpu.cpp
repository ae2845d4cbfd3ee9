// Steps of scatter on the CPU: each line of the result along the axis belongs to one thread, which takes the updates in
// their order.
#include "ops/scatter/scatter.h"

#include <algorithm>
#include <cstring>

#include "core/element.h"
#include "core/num.h"
#include "ops/gather/index_view.h"

namespace rlx {

namespace {

// Integers wrap, a NaN stays.
template <ScatterKind kind, class N>
N joined(N a, N b) {
  const Num<N> x{a}, y{b};
  switch (kind) {
    case ScatterKind::add:
      return (x + y).v;
    case ScatterKind::mul:
      return (x * y).v;
    case ScatterKind::max:
      return maximum(x, y).v;
    case ScatterKind::min:
      return minimum(x, y).v;
    case ScatterKind::none:
      break;
  }
  return b;
}

// Where numbers are no elements, a line is held in scratch memory and rounded at the end.
template <class I, class T, ScatterKind kind>
Step scatter_lines(const StepArgs& n, std::size_t axis) {
  using N = decltype(number_of(T{}));
  constexpr bool rounds = !std::is_same_v<N, T>;
  const TensorType& out = n.out[0].type;
  Dim lines = 1;
  for (std::size_t i = 0; i < out.dims.size(); ++i) lines = i == axis ? lines : lines * out.dims[i];
  const Dim each = out.dims[axis] + n.in[1].type.dims[axis];
  StepBuilder s("scatter");
  const auto x = s.read<T>(n.in[0]);
  const auto updates = s.read<T>(n.in[1]);
  const auto indices = s.read<I>(n.in[2]);
  const auto y = s.write<T>(n.out[0]);
  s.may_overwrite(y, x);
  const auto scratch = s.scratch<N>(rounds ? out.count() : Dim(0));
  const Layout in(s, n.in[1]), result(s, n.out[0]);
  const auto count = s.dim(lines);
  s.flops(n.in[1].type.count());
  const Dim grain = max(max(ceildiv(32768, max(each, 1)), ceildiv(lines, 16)), 1);
  return s.run(max(lines, 1), grain, [=](const Memory& m, const DimValues& d, Range r) {
    const Layout::Numbers from = in(d), to = result(d);
    const Index extent = to.size[axis], stride = to.stride[axis];
    const I* index = m[indices].data();
    check_indices("scatter", index, from, static_cast<Index>(axis), extent);
    for (Index l = r.begin; l < std::min(r.end, d[count]); ++l) {
      const ScatterLine line = scatter_line(to, from, axis, l);
      const T* old = m[x].data() + line.to;
      T* elements = m[y].data() + line.to;
      N* numbers = nullptr;
      if constexpr (rounds) {
        numbers = m[scratch].data() + line.to;
      } else {
        numbers = elements;
      }
      for (Index i = 0; i < extent; ++i) numbers[i * stride] = number_of(old[i * stride]);
      for (Index j = 0; line.from >= 0 && j < from.size[axis]; ++j) {
        const Index at = line.from + j * from.stride[axis];
        N& number = numbers[position(index[at], extent) * stride];
        number = joined<kind>(number, number_of(m[updates][static_cast<std::size_t>(at)]));
      }
      if constexpr (rounds) {
        for (Index i = 0; i < extent; ++i) elements[i * stride] = element_of<T>(numbers[i * stride]);
      }
    }
  });
}

// Whether every element of a row goes to the same row: indices that a broadcast stretched along all axes but the first.
bool names_rows(const Slot& indices) {
  if (indices.dense()) return false;
  for (std::size_t i = 1; i < indices.strides.size(); ++i) {
    if (indices.strides[i] != Dim(0) && indices.type.dims[i] != Dim(1)) return false;
  }
  return indices.strides[0] == Dim(1);
}

// Whether updates fill the rows that they go to; rows without gaps, though there may be gaps between them.
bool same_rows(const Slot& updates, const TensorType& x) {
  const std::span<const Dim> row = std::span(updates.type.dims).subspan(1);
  if (!std::equal(row.begin(), row.end(), x.dims.begin() + 1, x.dims.end())) return false;
  if (updates.dense()) return true;
  const std::vector<Dim> strides = dense_strides(row);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (updates.strides[i + 1] != strides[i] && row[i] != Dim(1)) return false;
  }
  return true;
}

// Rows replaced by rows: threads share the columns, so that of rows which meet the later one stays. In place only the
// rows that are named are touched.
template <class I>
Step scatter_rows(const StepArgs& n) {
  const TensorType& out = n.out[0].type;
  const Index width = element_bytes(out.dtype);
  Dim columns = 1;
  for (std::size_t i = 1; i < out.dims.size(); ++i) columns = columns * out.dims[i];
  StepBuilder s("scatter_rows");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto updates = s.read<std::byte>(n.in[1]);
  const auto indices = s.read<I>(n.in[2]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.may_overwrite(y, x);
  s.needs_at_most(x, n.in[1].type.plane_bytes(0));
  const auto rows = s.dim(n.in[1].type.dims[0]), extent = s.dim(out.dims[0]), row = s.dim(columns);
  const auto apart = s.dim(strides_of(n.in[1])[0]);
  const std::size_t rank = out.dims.size();
  const Dim grain = max(ceildiv(65536 / width, max(n.in[1].type.dims[0], 1)), 64);
  return s.run(max(columns, 1), grain, [=](const Memory& m, const DimValues& d, Range r) {
    Layout::Numbers sizes{.rank = rank, .size = {}, .stride = {}};
    sizes.size.fill(1);
    sizes.size[0] = d[rows];
    const I* index = m[indices].data();
    check_indices("scatter", index, sizes, 0, d[extent]);
    const Index end = std::min(r.end, d[row]), stride = d[row] * width, step = d[apart] * width;
    const auto bytes = static_cast<std::size_t>((end - r.begin) * width);
    const std::byte *from = m[updates].data() + r.begin * width, *old = m[x].data() + r.begin * width;
    std::byte* to = m[y].data() + r.begin * width;
    if (end <= r.begin) return;
    for (Index i = 0; old != to && i < d[extent]; ++i) std::memcpy(to + i * stride, old + i * stride, bytes);
    for (Index i = 0; i < d[rows]; ++i) {
      std::memcpy(to + position(index[i], d[extent]) * stride, from + i * step, bytes);
    }
  });
}

// Packed elements share bytes: one thread writes them all.
template <class I>
Step scatter_packed(const StepArgs& n, std::size_t axis) {
  StepBuilder s("scatter_packed");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto updates = s.read<std::byte>(n.in[1]);
  const auto indices = s.read<I>(n.in[2]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.may_overwrite(y, x);
  const Layout in(s, n.in[1]), result(s, n.out[0]);
  const int width = bits(n.out[0].type.dtype);
  return s.run(1, 1, [=](const Memory& m, const DimValues& d, Range) {
    const Layout::Numbers from = in(d), to = result(d);
    const Index extent = to.size[axis], stride = to.stride[axis], lines = extent == 0 ? 0 : to.count() / extent;
    const I* index = m[indices].data();
    check_indices("scatter", index, from, static_cast<Index>(axis), extent);
    if (m[x].data() != m[y].data()) std::ranges::copy(m[x], m[y].begin());
    for (Index l = 0; l < lines; ++l) {
      const ScatterLine line = scatter_line(to, from, axis, l);
      for (Index j = 0; line.from >= 0 && j < from.size[axis]; ++j) {
        const Index at = line.from + j * from.stride[axis];
        const unsigned code = packed_at(m[updates].data(), at, width);
        set_packed(m[y].data(), line.to + position(index[at], extent) * stride, code, width);
      }
    }
  });
}

template <class I, class T>
Step scatter_kind(const StepArgs& n, std::size_t axis, ScatterKind kind) {
  switch (kind) {
    case ScatterKind::add:
      return scatter_lines<I, T, ScatterKind::add>(n, axis);
    case ScatterKind::mul:
      return scatter_lines<I, T, ScatterKind::mul>(n, axis);
    case ScatterKind::max:
      return scatter_lines<I, T, ScatterKind::max>(n, axis);
    default:
      return scatter_lines<I, T, ScatterKind::min>(n, axis);
  }
}

std::optional<Step> scatter_step(const StepArgs& n) {
  const TensorType& t = n.out[0].type;
  const auto& a = n.node.attrs.as<ScatterAttrs>();
  const auto axis = static_cast<std::size_t>(t.axis(a.axis));
  const Index width = element_bytes(t.dtype);
  const bool dense = n.in[0].dense() && n.out[0].dense();
  if (t.dims.size() > most_axes) return n.decline("scatter has a kernel for up to 16 axes");
  const bool whole_rows = a.kind == ScatterKind::none && axis == 0 && width > 0 && same_rows(n.in[1], t);
  if (dense && whole_rows && names_rows(n.in[2])) {
    return with_index_type(n.in[2].type.dtype, [&]<class I>() { return scatter_rows<I>(n); });
  }
  if (!dense || !n.in[1].dense() || !n.in[2].dense()) return n.decline("scatter reads and writes densely");
  return with_index_type(n.in[2].type.dtype, [&]<class I>() {
    if (a.kind != ScatterKind::none) {
      return with_element(t.dtype, [&]<class T>() { return scatter_kind<I, T>(n, axis, a.kind); });
    }
    if (width == 0) return scatter_packed<I>(n, axis);
    return with_width(width, [&]<class T>() { return scatter_lines<I, T, ScatterKind::none>(n, axis); });
  });
}

}  // namespace

std::span<const MakerRow> scatter_cpu() {
  static const MakerRow rows[] = {{&scatter_op, scatter_step}};
  return rows;
}

}  // namespace rlx
