// Parts of tensors: gather, slice, split, where, top-k, triangles.
#include <algorithm>
#include <limits>

#include "core/error.h"
#include "io/onnx/grid.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter/scatter.h"
#include "ops/slice/slice.h"
#include "ops/take_along/take_along.h"
#include "ops/topk/topk.h"

namespace rlx::onnx {

namespace {

Values gather_operator(NodeArgs& n) {
  n.expect(2, 2);
  const Index axis = axis_of(n.integer("axis", 0), n[0].rank());
  if (axis == 0) {
    if (const auto v = gather_of_grid(n.importer(), n[0], n[1])) return {*v};
  }
  return {gather(n[0], n[1], axis)};
}

// The columns of the indices of a GatherND, one for every axis they name.
Values columns_of(Value indices, Index k) {
  const std::vector<Dim> heads(indices.type().dims.begin(), indices.type().dims.end() - 1);
  Builder& b = *indices.builder;
  const Node& n = b.graph().nodes[indices.at.node];
  Values columns;
  if (n.op == &concat_op && static_cast<Index>(n.operands.size()) == k &&
      indices.type().axis(n.attrs.as<ConcatAttrs>().axis) == indices.rank() - 1) {
    const std::vector<Operand> parts = n.operands;  // emitting moves the nodes
    for (const Operand o : parts) {
      if (b.graph().type(o).dims.back() == Dim(1)) columns.push_back(reshape(Value{&b, o}, heads));
    }
    if (static_cast<Index>(columns.size()) == k) return columns;
    columns.clear();
  }
  for (Index i = 0; i < k; ++i) columns.push_back(reshape(slice(indices, -1, i, i + 1), heads));
  return columns;
}

Values gather_elements(NodeArgs& n) {
  n.expect(2, 2);
  return {take_along(n[0], n[1], n.integer("axis", 0))};
}

// The first axes are those of the indices too: their coordinates are named before the given ones.
Value gather_nd_of_batches(NodeArgs& n, Index batch) {
  const Value x = n[0], indices = n[1];
  require(0 < batch && batch < std::min(x.rank(), indices.rank()), "batch_dims is {} for ranks {} and {}", batch,
          x.rank(), indices.rank());
  const Dim& depth = indices.dim(-1);
  require(depth.is_constant() && depth.constant() >= 1 && depth.constant() <= x.rank() - batch,
          "the last size of the indices is {}, expected 1 to {}", depth.text(), x.rank() - batch);
  const Index k = depth.constant();
  const auto first = static_cast<std::size_t>(batch);
  for (Index i = 0; i < batch; ++i)
    n.builder().check(x.dim(i), indices.dim(i), fmt::format("size of batch axis {}", i));
  const std::span<const Dim> dims(x.type().dims);
  // One table of all batches: an index counts within its own batch, and one outside of it finds nothing.
  std::vector<Dim> table{product(dims.first(first + static_cast<std::size_t>(k)))};
  table.insert(table.end(), dims.begin() + batch + k, dims.end());
  std::vector<Dim> heads(indices.type().dims.begin(), indices.type().dims.end() - 1);
  const Dim each = product(dims.subspan(first, static_cast<std::size_t>(k)));
  const Value inside = joined_positions(indices, dims.subspan(first, static_cast<std::size_t>(k)));
  const Value number = reshape(iota(n.builder(), DType::i64, {product(std::span<const Dim>(heads).first(first))}), [&] {
    std::vector<Dim> shape(heads.begin(), heads.begin() + batch);
    shape.resize(heads.size(), Dim(1));
    return shape;
  }());
  return gather(reshape(x, table), number * n.known(DType::i64, {each}, false) + inside, 0);
}

// The rows of `indices` name elements of the first axes of `x`, which become one axis; an index out of range makes the
// position one that no axis has.
Values gather_nd(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0], indices = n[1];
  const Index batch = n.integer("batch_dims", 0);
  require(indices.dtype() == DType::i64 && indices.rank() >= 1, "indices are {}, expected i64", indices.type().text());
  if (batch != 0) return {gather_nd_of_batches(n, batch)};
  const Dim& depth = indices.dim(-1);
  require(depth.is_constant() && depth.constant() >= 1 && depth.constant() <= x.rank(),
          "the last size of the indices is {}, expected 1 to {}", depth.text(), x.rank());
  const Index k = depth.constant();
  const Values columns = columns_of(indices, k);
  if (const auto v = gather_of_grid(n.importer(), x, columns)) return {*v};
  if (k == 1) return {gather(x, columns[0], 0)};
  std::vector<Dim> table{product(std::span(x.type().dims).first(static_cast<std::size_t>(k)))};
  table.insert(table.end(), x.type().dims.begin() + k, x.type().dims.end());
  std::optional<Value> position, inside;
  for (Index i = 0; i < k; ++i) {
    const Value column = columns[static_cast<std::size_t>(i)];
    const Value extent = n.known(DType::i64, {x.dim(i)}, false), zero = like(column, 0);
    const Value ok = bitwise_and(less(column, extent), less_equal(-extent, column));
    const Value at = select(less(column, zero), column + extent, column);
    position = position ? *position * extent + at : at;
    inside = inside ? bitwise_and(*inside, ok) : ok;
  }
  const Value nowhere = constant(n.builder(), Tensor::of<std::int64_t>(DType::i64, {}, {Index{1} << 62}));
  return {gather(reshape(x, table), select(*inside, *position, nowhere), 0)};
}

ScatterKind scatter_kind(NodeArgs& n) {
  const std::string reduction = n.string("reduction", "none");
  const auto names = enum_names(ScatterKind::none);
  const auto it = std::ranges::find(names, reduction);
  require(it != names.end(), "reduction is {}, expected none, add, mul, max or min", in_quotes(reduction));
  return static_cast<ScatterKind>(it - names.begin());
}

Values scatter_elements(NodeArgs& n) {
  n.expect(3, 3);
  const ScatterKind kind = scatter_kind(n);
  return {scatter(n[0], n[2], n[1], n.integer("axis", 0), kind)};
}

Values scatter_nd_operator(NodeArgs& n) {
  n.expect(3, 3);
  return {scatter_nd(n[0], n[2], n[1], scatter_kind(n))};
}

Values where(NodeArgs& n) {
  n.expect(3, 3);
  const Value c = n[0], a = n[1], b = n[2];
  require(c.dtype() == DType::boolean, "the condition is {}, expected bool", c.type().text());
  const auto known = n.importer().known(c), x = n.importer().known(a), y = n.importer().known(b);
  const bool shapes = known && x && y && is_integer(a.dtype()) && a.dtype() == b.dtype();
  if (!shapes) return {select(c, a, b)};
  const std::size_t count = std::max({known->size(), x->size(), y->size()});
  std::vector<Dim> out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](const std::vector<Dim>& v) -> const Dim& {
      require(v.size() == 1 || v.size() == count, "operands of {} and {} elements do not broadcast", v.size(), count);
      return v[v.size() == 1 ? 0 : i];
    };
    const Dim &l = at(*x), &r = at(*y);
    if (at(*known) == Dim(0)) {
      out.push_back(r);
    } else {
      out.push_back(l);
    }
  }
  return {n.known(a.dtype(), std::move(out), c.rank() + a.rank() + b.rank() > 0)};
}

// Ends of slices come as the least and the largest integers: closer ones mean the same.
Dim closer(const Dim& d) {
  constexpr Index far = Index{1} << 45;
  return d.is_constant() ? Dim(std::clamp(d.constant(), -far, far)) : d;
}

Values slice_operator(NodeArgs& n) {
  const Value x = n[0];
  std::vector<Dim> starts, ends;
  std::vector<Index> axes, steps;
  if (n.opset() < 10) {
    n.expect(1, 1);
    const auto s = n.integers("starts"), e = n.integers("ends"), a = n.integers("axes");
    require(s && e, "starts or ends are missing");
    starts.assign(s->begin(), s->end());
    ends.assign(e->begin(), e->end());
    if (a) axes = *a;
  } else {
    n.expect(3, 5);
    starts = n.sizes(1);
    ends = n.sizes(2);
    if (n.has(3)) axes = n.numbers(3);
    if (n.has(4)) steps = n.numbers(4);
  }
  const std::size_t count = starts.size();
  if (axes.empty()) {
    for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<Index>(i));
  }
  if (steps.empty()) steps.assign(count, 1);
  require(ends.size() == count && axes.size() == count && steps.size() == count,
          "{} starts, {} ends, {} axes and {} steps are given", count, ends.size(), axes.size(), steps.size());
  require(count <= most_axes, "{} starts are given", count);
  std::vector<bool> seen(x.type().dims.size(), false);
  Value v = x;
  for (std::size_t i = 0; i < count; ++i) {
    const Index axis = axis_of(axes[i], x.rank());
    require(!seen[static_cast<std::size_t>(axis)], "axis {} is listed twice", axis);
    seen[static_cast<std::size_t>(axis)] = true;
    constexpr Index far = Index{1} << 45;
    v = clamped_slice(v, axis, closer(starts[i]), closer(ends[i]), std::clamp(steps[i], -far, far));
  }
  return {v};
}

// Sizes of the parts, which must add up to `extent`.
std::vector<Dim> part_sizes(NodeArgs& n, const Dim& extent) {
  std::optional<std::vector<Index>> attribute;
  if (n.opset() < 13) attribute = n.integers("split");
  if (attribute) return {attribute->begin(), attribute->end()};
  if (n.opset() >= 13 && n.has(1)) return n.sizes(1);
  const auto count = static_cast<Index>(n.node().outputs.size());
  require(count > 0, "the node has no results");
  if (n.opset() >= 18 && n.given("num_outputs")) {
    require(n.integer("num_outputs") == count, "num_outputs is {}, the node has {} results", n.integer("num_outputs"),
            count);
  }
  // All parts have one size, except that the last may be smaller from version 18 on.
  const Dim size = n.opset() >= 18 ? ceildiv(extent, count) : floordiv(extent, count);
  std::vector<Dim> parts(static_cast<std::size_t>(count), size);
  if (n.opset() >= 18) parts.back() = extent - size * (count - 1);
  return parts;
}

Values split(NodeArgs& n) {
  n.expect(1, 2);
  const Value x = n[0];
  const Index axis = axis_of(n.integer("axis", 0), x.rank());
  const std::vector<Dim> parts = part_sizes(n, x.dim(axis));
  require(parts.size() == n.node().outputs.size(), "{} parts, the node has {} results", parts.size(),
          n.node().outputs.size());
  Values out;
  Dim start = 0;
  for (const Dim& size : parts) {
    require(size.bounds().hi >= 0, "a part has the size {}", size.text());
    const Dim end = start + size;
    out.push_back(slice(x, axis, start, end));
    start = end;
  }
  n.builder().check(start, x.dim(axis), "sum of the parts of a split");
  return out;
}

Values top_k(NodeArgs& n) {
  n.ignore("sorted");  // the order of sorted results is one of those that unsorted ones may have
  const Index axis = n.integer("axis", -1);
  const bool largest = n.integer("largest", 1) != 0;
  Dim k = 0;
  if (n.opset() < 10) {
    n.expect(1, 1);
    k = n.integer("k");
  } else {
    n.expect(2, 2);
    const std::vector<Dim> given = n.found_sizes(1);
    require(given.size() == 1, "k has {} elements, expected 1", given.size());
    k = given[0];
  }
  const TopkValues v = topk(n[0], k, axis, largest);
  return {v.values, v.indices};
}

Values trilu(NodeArgs& n) {
  n.expect(1, 2);
  const Value x = n[0];
  require(x.rank() >= 2, "operand is {}, expected rank 2 or more", x.type().text());
  const bool upper = n.integer("upper", 1) != 0;
  Builder& b = n.builder();
  const Value row = iota(b, DType::i64, {x.dim(-2), 1}, 0), column = iota(b, DType::i64, {1, x.dim(-1)}, 1);
  const Value diagonal = n.has(1) ? row + reshape(n[1], {}) : row;
  const Value keep = upper ? greater_equal(column, diagonal) : less_equal(column, diagonal);
  return {select(keep, x, like(x, 0))};
}

Values one_hot(NodeArgs& n) {
  n.expect(3, 3);
  const Value indices = n[0], values = n[2];
  const std::vector<Dim> depth =
      is_float(n[1].dtype()) ? std::vector<Dim>{static_cast<Index>(n.scalar(1))} : n.found_sizes(1);
  require(depth.size() == 1 && values.rank() == 1, "depth or values have the wrong number of elements");
  const Index rank = indices.rank() + 1, axis = axis_of(n.integer("axis", -1), rank);
  Builder& b = n.builder();
  const Value at = cast(unsqueeze(indices, {axis}), DType::i64);
  std::vector<Dim> along(static_cast<std::size_t>(rank), Dim(1));
  along[static_cast<std::size_t>(axis)] = depth[0];
  const Value extent = n.known(DType::i64, {depth[0]}, false);
  const Value position = select(less(at, like(at, 0)), at + extent, at);
  const Value hit = equal(position, iota(b, DType::i64, along, axis));
  const auto element = [&](Index i) { return reshape(slice(values, 0, i, i + 1), {}); };
  return {select(hit, element(1), element(0))};
}

}  // namespace

OperatorRows select_rows() {
  static constexpr OperatorRow rows[] = {
      {"Gather", 1, gather_operator},
      {"GatherElements", 11, gather_elements},
      {"GatherND", 11, gather_nd},
      {"Scatter", 9, scatter_elements},
      {"ScatterElements", 11, scatter_elements},
      {"ScatterND", 11, scatter_nd_operator},
      {"Where", 9, where},
      {"Slice", 1, slice_operator},
      {"Split", 2, split},
      {"TopK", 1, top_k},
      {"Trilu", 14, trilu},
      {"OneHot", 9, one_hot},
  };
  return rows;
}

}  // namespace rlx::onnx
