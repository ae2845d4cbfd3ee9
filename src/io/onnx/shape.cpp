// Shapes: sizes as values, reshapes, axes, repetition, constants and ranges.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ir/measure.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/iota/iota.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

Index clamped(Index at, Index rank) { return std::clamp<Index>(at < 0 ? at + rank : at, 0, rank); }

Values shape(NodeArgs& n) {
  n.expect(1, 1);
  const std::vector<Dim>& dims = n[0].type().dims;
  const auto rank = static_cast<Index>(dims.size());
  const Index begin = clamped(std::clamp(n.integer("start", 0), -rank, rank), rank);
  const Index end = n.given("end") ? clamped(std::clamp(n.integer("end"), -rank, rank), rank) : rank;
  if (begin >= end) return {sizes(n.builder(), {})};
  return {n.known(DType::i64, {dims.begin() + begin, dims.begin() + end}, true)};
}

Values size(NodeArgs& n) {
  n.expect(1, 1);
  return {n.known(DType::i64, {n[0].type().count()}, false)};
}

// Sizes of a reshape: 0 keeps a size (unless allowzero), -1 is what is left.
Values reshape_operator(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0];
  const bool allow_zero = n.integer("allowzero", 0) != 0;
  std::vector<Dim> dims = n.sizes(1);
  require(dims.size() <= most_axes, "{} sizes, at most {} are supported", dims.size(), most_axes);
  Dim others = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == Dim(-1)) {
      require(!open, "two sizes are -1");
      open = i;
      continue;
    }
    if (dims[i] == Dim(0) && !allow_zero) {
      require(static_cast<Index>(i) < x.rank(), "size {} is 0 and the operand has rank {}", i, x.rank());
      dims[i] = x.dim(static_cast<Index>(i));
    }
    require(dims[i].bounds().hi >= 0, "size {} is {}", i, dims[i].text());
    others = others * dims[i];
  }
  if (!open) return {reshape(x, std::move(dims))};
  // Sizes that stand on both sides cancel, be they 0 or not.
  require(others != Dim(0), "size -1 among sizes of which one is 0");
  dims[*open] = floordiv(x.type().count(), others);
  return {reshape(x, std::move(dims))};
}

Values flatten(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  Index axis = n.integer("axis", 1);
  require(-x.rank() <= axis && axis <= x.rank(), "axis {} is out of range for rank {}", axis, x.rank());
  if (axis < 0) axis += x.rank();
  const std::span<const Dim> dims(x.type().dims);
  const auto at = static_cast<std::size_t>(axis);
  return {reshape(x, {product(dims.first(at)), product(dims.subspan(at))})};
}

Values transpose_operator(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  auto order = n.integers("perm");
  if (!order) {
    order.emplace();
    for (Index i = x.rank(); i-- > 0;) order->push_back(i);
  }
  return {transpose(x, *order)};
}

// Axes as positions, ascending, none twice.
std::vector<Index> positions_of(std::vector<Index> axes, Index rank) {
  require(axes.size() <= most_axes, "{} axes are given", axes.size());
  for (Index& a : axes) a = axis_of(a, rank);
  std::ranges::sort(axes);
  require(std::ranges::adjacent_find(axes) == axes.end(), "an axis is listed twice");
  return axes;
}

Values squeeze_operator(NodeArgs& n) {
  n.expect(1, 2);
  const Value x = n[0];
  const auto given = n.axes(13, 1);
  std::vector<bool> gone(x.type().dims.size(), false);
  if (given) {
    for (const Index a : positions_of(*given, x.rank())) gone[static_cast<std::size_t>(a)] = true;
  }
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    const Dim& d = x.type().dims[i];
    if (!given) {
      const Bounds b = d.bounds();
      require(d.is_constant() || b.lo > 1 || b.hi < 1, "no axes are given and size {} may be 1 or not", d.text());
      gone[i] = d == Dim(1);
    }
    if (gone[i]) {
      n.builder().check(d, 1, fmt::format("size of the squeezed axis {}", i));
    } else {
      dims.push_back(d);
    }
  }
  return {reshape(x, std::move(dims))};
}

Values unsqueeze_operator(NodeArgs& n) {
  n.expect(1, 2);
  const Value x = n[0];
  const auto axes = n.axes(13, 1);
  require(axes.has_value(), "no axes are given");
  const Index rank = x.rank() + static_cast<Index>(axes->size());
  require(rank <= static_cast<Index>(most_axes), "the result would have rank {}", rank);
  return {unsqueeze(x, positions_of(*axes, rank))};
}

// `x` stretched together with `dims`, as two operands of an addition are.
Value expanded(Value x, std::vector<Dim> dims) {
  require(dims.size() <= most_axes, "{} sizes, at most {} are supported", dims.size(), most_axes);
  const std::vector<Dim>& from = x.type().dims;
  if (dims.size() < from.size()) dims.insert(dims.begin(), from.size() - dims.size(), Dim(1));
  for (std::size_t i = 0; i < from.size(); ++i) {
    Dim& to = dims[i + dims.size() - from.size()];
    if (from[i] != Dim(1)) {
      // Where the wanted size is a symbol that may be 1, a run checks that it is the operand's.
      if (to != Dim(1)) x.builder->check(from[i], to, "expand");
      to = from[i];
    }
  }
  for (const Dim& d : dims) require(d.bounds().hi >= 0, "size {} is negative", d.text());
  return broadcast(x, std::move(dims));
}

Values expand(NodeArgs& n) {
  n.expect(2, 2);
  return {expanded(n[0], n.sizes(1))};
}

Values tile(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0];
  const std::vector<Dim> repeats = n.found_sizes(1);
  require(static_cast<Index>(repeats.size()) == x.rank(), "{} repeats are given for rank {}", repeats.size(), x.rank());
  std::vector<Dim> apart, stretched, joined;
  for (std::size_t i = 0; i < repeats.size(); ++i) {
    const Dim& d = x.type().dims[i];
    require(repeats[i].bounds().lo >= 0, "repeat {} is {}", i, repeats[i].text());
    if (repeats[i] != Dim(1)) {
      apart.emplace_back(1);
      stretched.push_back(repeats[i]);
    }
    apart.push_back(d);
    stretched.push_back(d);
    joined.push_back(repeats[i] * d);
  }
  return {reshape(broadcast(reshape(x, apart), stretched), joined)};
}

Values concat_operator(NodeArgs& n) {
  const Values all = n.all();
  return {concat(all, n.opset() < 4 ? n.integer("axis", 1) : n.integer("axis"))};
}

Values constant_operator(NodeArgs& n) {
  n.expect(0, 0);
  Builder& b = n.builder();
  if (const auto t = n.tensor("value")) return {constant(b, *t)};
  if (n.given("value_int")) return {constant(b, Tensor::of<std::int64_t>(DType::i64, {}, {n.integer("value_int")}))};
  if (n.given("value_float")) return {constant(b, DType::f32, n.real("value_float", 0))};
  if (const auto v = n.integers("value_ints")) return {constant(b, *v)};
  if (const auto v = n.reals("value_floats")) {
    const std::vector<double> wide(v->begin(), v->end());
    return {constant(b, Tensor::of<double>(DType::f32, {static_cast<Index>(wide.size())}, wide))};
  }
  fail("the constant is none of value, value_int, value_ints, value_float and value_floats");
}

Values constant_of_shape(NodeArgs& n) {
  n.expect(1, 1);
  std::vector<Dim> dims = n.found_sizes(0);
  require(dims.size() <= most_axes, "{} sizes, at most {} are supported", dims.size(), most_axes);
  for (const Dim& d : dims) require(d.bounds().hi >= 0, "size {} is negative", d.text());
  const auto value = n.tensor("value");
  require(!value || value->count() == 1, "the value has {} elements, expected 1", value ? value->count() : 0);
  const Value fill = value ? constant(n.builder(), value->reshaped({})) : constant(n.builder(), DType::f32, 0);
  return {broadcast(fill, std::move(dims))};
}

// Number of elements of an integer range.
Dim range_count(const Dim& start, const Dim& limit, Index step) {
  const Dim way = step > 0 ? limit - start : start - limit;
  require(step != std::numeric_limits<Index>::min(), "the step of the range is {}", step);
  return ceildiv(max(way, 0), step > 0 ? step : -step);
}

Values range_of_reals(NodeArgs& n, DType dtype) {
  const double start = n.scalar(0), limit = n.scalar(1), step = n.scalar(2);
  require(step != 0, "the step of the range is 0");
  const double count = std::ceil((limit - start) / step);
  require(std::isfinite(count) && count < 1e15, "the range has {} elements", count);
  const Value at = iota(n.builder(), DType::f64, {static_cast<Index>(std::max(count, 0.0))});
  return {cast(like(at, start) + at * like(at, step), dtype)};
}

// A range of which only a run knows the ends: their distance in steps, rounded up, is its size.
Values found_range(NodeArgs& n, DType dtype) {
  Builder& b = n.builder();
  const DType wide = is_float(dtype) ? DType::f64 : DType::i64;
  const auto end = [&](std::size_t i) { return cast(reshape(n[i], {}), wide); };
  const Value start = end(0), way = end(1) - start, step = end(2), zero = like(way, 0);
  const Value steps = way / step;
  Value count = steps;
  if (is_float(dtype)) {
    count = cast(maximum(ceil(steps), zero), DType::i64);
  } else {
    const Value more = cast(not_equal(fmod(way, step), zero), DType::i64);
    count = select(equal(less(way, zero), less(step, zero)), steps + more, zero);
  }
  const Value at = iota(b, wide, {measure(count, unbounded)});
  return {cast(start + at * step, dtype)};
}

Values range(NodeArgs& n) {
  n.expect(3, 3);
  const DType dtype = n[0].dtype();
  for (std::size_t i = 1; i < 3; ++i) {
    require(n[i].dtype() == dtype, "element types {} and {} differ", name(dtype), name(n[i].dtype()));
  }
  const auto known = [&](std::size_t i) {
    return is_float(dtype) ? n.importer().constant_of(n[i]) != nullptr : n.importer().known(n[i]).has_value();
  };
  const bool steps = n.importer().constant_of(n[2]) != nullptr;
  if (!known(0) || !known(1) || !steps) return found_range(n, dtype);
  if (is_float(dtype)) return range_of_reals(n, dtype);
  const std::vector<Dim> start = n.sizes(0), limit = n.sizes(1);
  require(start.size() == 1 && limit.size() == 1, "the ends of the range are no single numbers");
  const Index step = n.number(2);
  require(step != 0, "the step of the range is 0");
  const Value at = iota(n.builder(), dtype, {range_count(start[0], limit[0], step)});
  const Value scaled = step == 1 ? at : at * like(at, static_cast<double>(step));
  if (start[0] == Dim(0)) return {scaled};
  return {scaled + reshape(n[0], {})};
}

Values eye_like(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  require(x.rank() == 2, "operand is {}, expected rank 2", x.type().text());
  const Index type = n.integer("dtype", 0), k = n.integer("k", 0);
  const auto dtype =
      type == 0 ? std::optional(x.dtype()) : dtype_of(static_cast<std::int32_t>(std::clamp<Index>(type, 0, 999)));
  require(dtype.has_value(), "element type {} is not supported", type);
  const Value row = iota(n.builder(), DType::i64, {x.dim(0), 1}, 0),
              column = iota(n.builder(), DType::i64, {1, x.dim(1)}, 1);
  const Value at = row + constant(n.builder(), Tensor::of<std::int64_t>(DType::i64, {}, {k}));
  return {cast(equal(at, column), *dtype)};
}

}  // namespace

OperatorRows shape_rows() {
  static constexpr OperatorRow rows[] = {
      {"Shape", 1, shape},
      {"Size", 1, size},
      {"Reshape", 5, reshape_operator},
      {"Flatten", 1, flatten},
      {"Transpose", 1, transpose_operator},
      {"Squeeze", 1, squeeze_operator},
      {"Unsqueeze", 1, unsqueeze_operator},
      {"Expand", 8, expand},
      {"Tile", 6, tile},
      {"Concat", 1, concat_operator},
      {"Constant", 1, constant_operator},
      {"ConstantOfShape", 9, constant_of_shape},
      {"Range", 11, range},
      {"EyeLike", 9, eye_like},
  };
  return rows;
}

}  // namespace rlx::onnx
