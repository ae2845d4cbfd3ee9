// Steps of gather on the CPU: slices are copied as bytes.
#include "ops/gather/gather.h"

#include <algorithm>
#include <cstring>

#include "ops/encode/encoded_source.h"
#include "ops/gather/index_view.h"

namespace rlx {

namespace {

// Sizes of the table before, at and behind the axis.
struct TableSizes {
  DimToken outer, extent, inner;
};

TableSizes table_sizes(StepBuilder& s, const TensorType& t, std::size_t axis) {
  const std::span<const Dim> dims(t.dims);
  return {s.dim(product(dims.first(axis))), s.dim(dims[axis]), s.dim(product(dims.subspan(axis + 1)))};
}

template <std::size_t bytes>
void copy_fixed(const std::byte* from, std::byte* to) {
  std::memcpy(to, from, bytes);
}

// Copies slice after slice of `bytes` bytes: slices [begin, end) of `indices.size()` for each part of the table.
template <class I, class Copy>
void copy_slices(const std::byte* table, std::byte* to, std::span<const I> indices, Index extent, Index bytes,
                 Index begin, Index end, Copy copy) {
  const auto n = static_cast<Index>(indices.size());
  while (begin < end) {
    const Index o = begin / n, first = begin % n, behind = std::min(n, first + end - begin);
    const std::byte* part = table + o * extent * bytes;
    for (Index j = first; j < behind; ++j, ++begin) {
      copy(part + position(indices[static_cast<std::size_t>(j)], extent) * bytes, to + begin * bytes);
    }
  }
}

template <class I>
void gather_slices(const std::byte* table, std::byte* to, std::span<const I> indices, Index extent, Index bytes,
                   Index begin, Index end) {
  const auto run = [&](auto copy) { copy_slices(table, to, indices, extent, bytes, begin, end, copy); };
  switch (bytes) {
    case 0:
      return;
    case 1:
      return run(copy_fixed<1>);
    case 2:
      return run(copy_fixed<2>);
    case 4:
      return run(copy_fixed<4>);
    case 8:
      return run(copy_fixed<8>);
    default:
      return run([=](const std::byte* x, std::byte* y) { std::memcpy(y, x, static_cast<std::size_t>(bytes)); });
  }
}

template <class I>
Step gather_bytes(const StepArgs& n, std::size_t axis) {
  const TensorType& table = n.in[0].type;
  const Index width = element_bytes(table.dtype);
  StepBuilder s("gather");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto indices = s.read<I>(n.in[1]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.needs_at_most(x, n.out[0].type.plane_bytes(0));
  const Layout shape(s, n.in[1]);
  const TableSizes sizes = table_sizes(s, table, axis);
  const std::span<const Dim> dims(table.dims);
  const Dim items = product(dims.first(axis)) * n.in[1].type.count(), inner = product(dims.subspan(axis + 1));
  return s.run(max(items, 1), indexed_grain(table.dtype, items, inner),
               [=](const Memory& m, const DimValues& d, Range r) {
                 const Index extent = d[sizes.extent];
                 check_indices("gather", m[indices].data(), shape(d), static_cast<Index>(axis), extent);
                 const Index all = d[sizes.outer] * static_cast<Index>(m[indices].size());
                 gather_slices(m[x].data(), m[y].data(), m[indices], extent, d[sizes.inner] * width, r.begin,
                               std::min(r.end, all));
               });
}

// Packed elements one by one; threads own whole bytes of the result.
template <class I>
Step gather_packed(const StepArgs& n, std::size_t axis) {
  StepBuilder s("gather_packed");
  const auto x = s.read<std::byte>(n.in[0]);
  const auto indices = s.read<I>(n.in[1]);
  const auto y = s.write<std::byte>(n.out[0]);
  s.needs_at_most(x, n.out[0].type.plane_bytes(0));
  const Layout shape(s, n.in[1]);
  const TableSizes sizes = table_sizes(s, n.in[0].type, axis);
  const Dim items = n.out[0].type.plane_bytes(0);
  const int width = bits(n.out[0].type.dtype);
  const Index each = packed_in_byte(width);
  return s.run(max(items, 1), indexed_grain(n.in[0].type.dtype, items, 1),
               [=](const Memory& m, const DimValues& d, Range r) {
                 const Index extent = d[sizes.extent], inner = d[sizes.inner];
                 check_indices("gather", m[indices].data(), shape(d), static_cast<Index>(axis), extent);
                 const auto count = static_cast<Index>(m[indices].size());
                 const Index all = d[sizes.outer] * count * inner;
                 if (all == 0 || r.begin >= r.end) return;
                 m[y][static_cast<std::size_t>(r.end - 1)] = std::byte{0};  // its upper part may hold no element
                 for (Index i = each * r.begin; i < std::min(each * r.end, all); ++i) {
                   const Index at = position(m[indices][static_cast<std::size_t>(i / inner % count)], extent);
                   const Index from = (i / (inner * count) * extent + at) * inner + i % inner;
                   set_packed(m[y].data(), i, packed_at(m[x].data(), from, width), width);
                 }
               });
}

// Slices of an encoded table, decoded; an item is one row of blocks.
template <class I>
Step gather_decoded(const StepArgs& n, std::size_t axis) {
  const TensorType& table = n.in[0].type;
  StepBuilder s("gather_decoded");
  const EncodedSource x(s, n.in[0]);
  const auto indices = s.read<I>(n.in[1]);
  const auto y = s.write<float>(n.out[0]);
  const Layout shape(s, n.in[1]);
  const std::span<const Dim> dims(table.dims);
  const TableSizes sizes = table_sizes(s, table, axis);
  const auto columns = s.dim(table.dim(-1));
  const Dim lines = product(dims.subspan(axis + 1, dims.size() - axis - 2));  // rows of a slice
  const auto height = s.dim(lines);
  const Dim count = n.in[1].type.count(), items = product(dims.first(axis)) * count * lines;
  const Encoding& encoding = *table.encoding;
  if (encoding.planes.size() == 1)
    s.needs_at_most(x.token(), items * floordiv(table.dim(-1), encoding.block) * encoding.planes[0].bytes);
  return s.run(max(items, 1), indexed_grain(DType::f32, items, table.dim(-1)),
               [=](const Memory& m, const DimValues& d, Range r) {
                 const Index extent = d[sizes.extent], width = d[columns], rows = d[height];
                 check_indices("gather", m[indices].data(), shape(d), static_cast<Index>(axis), extent);
                 const auto n_indices = static_cast<Index>(m[indices].size());
                 const Index all = d[sizes.outer] * n_indices * rows;
                 for (Index i = r.begin; i < std::min(r.end, all); ++i) {
                   const Index line = i % rows, j = i / rows % n_indices, o = i / rows / n_indices;
                   const Index at = position(m[indices][static_cast<std::size_t>(j)], extent);
                   x.decode(m, width, (o * extent + at) * rows + line, 1, 0, width, m[y].data() + i * width);
                 }
               });
}

std::optional<Step> gather_step(const StepArgs& n) {
  if (!n.in[0].dense() || !n.in[1].dense() || !n.out[0].dense()) return n.decline("gather reads and writes densely");
  if (n.in[1].type.dims.size() > most_axes) return n.decline("gather has a kernel for indices of up to 16 axes");
  const TensorType& table = n.in[0].type;
  const auto axis = static_cast<std::size_t>(table.axis(n.node.attrs.as<GatherAttrs>().axis));
  if (table.encoding && !EncodedSource::takes(n.in[0]))
    return n.decline("an encoded table is a constant, or one plane");
  return with_index_type(n.in[1].type.dtype, [&]<class I>() {
    if (table.encoding) return gather_decoded<I>(n, axis);
    return element_bytes(table.dtype) == 0 ? gather_packed<I>(n, axis) : gather_bytes<I>(n, axis);
  });
}

}  // namespace

std::span<const MakerRow> gather_cpu() {
  static const MakerRow rows[] = {{&gather_op, gather_step}};
  return rows;
}

}  // namespace rlx
