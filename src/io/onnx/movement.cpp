// Elements at other places: pad, centred crops, reversed sequences, caches.
#include <algorithm>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/pad/pad.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter/scatter.h"
#include "ops/slice/slice.h"

namespace rlx::onnx {

namespace {

// A position that no axis has.
Value nowhere(Builder& b) { return constant(b, Tensor::of<std::int64_t>(DType::i64, {}, {Index{1} << 62})); }

// What `x` holds along one axis, with sizes of 1 before and behind.
Value along(Value x, Index axis, Index rank) {
  std::vector<Dim> dims(static_cast<std::size_t>(rank), Dim(1));
  dims[static_cast<std::size_t>(axis)] = x.dim(0);
  return reshape(x, dims);
}

struct PadSpec {
  std::vector<Dim> pads;
  std::vector<Index> axes;
  double value = 0;
  std::optional<Value> unknown;  // the value, where only a run knows it
  PadMode mode = PadMode::constant;
};

PadMode pad_mode(NodeArgs& n) {
  const std::string mode = n.string("mode", "constant");
  const auto names = enum_names(PadMode::constant);
  const auto it = std::ranges::find(names, mode);
  require(it != names.end(), "mode is {}, expected constant, edge, reflect or wrap", in_quotes(mode));
  return static_cast<PadMode>(it - names.begin());
}

PadSpec pad_spec(NodeArgs& n) {
  PadSpec p;
  p.mode = pad_mode(n);
  if (n.opset() < 11) {
    n.expect(1, 1);
    const auto pads = n.integers("pads");
    require(pads.has_value(), "attribute 'pads' is missing");
    p.pads.assign(pads->begin(), pads->end());
    p.value = n.real("value", 0);
  } else {
    n.expect(2, 4);
    p.pads = n.sizes(1);
    if (n.has(2) && p.mode == PadMode::constant) {
      if (n.importer().constant_of(n[2])) {
        p.value = n.scalar(2);
      } else {
        require(n[2].dtype() == n[0].dtype(), "the value is {} for elements {}", n[2].type().text(),
                name(n[0].dtype()));
        p.unknown = reshape(n[2], {});
      }
    }
  }
  if (n.has(3)) {
    p.axes = n.numbers(3);
  } else {
    for (Index i = 0; i < n[0].rank(); ++i) p.axes.push_back(i);
  }
  require(p.pads.size() == 2 * p.axes.size(), "{} pads are given for {} axes", p.pads.size(), p.axes.size());
  return p;
}

// Which elements along `axis` are the operand's.
Value inside(Value padded, Index axis, const Dim& before, const Dim& after) {
  const Index rank = padded.rank();
  Builder& b = *padded.builder;
  const Dim size = padded.dim(axis) - before - after;
  std::vector<Dim> dims(static_cast<std::size_t>(rank), Dim(1));
  dims[static_cast<std::size_t>(axis)] = size;
  return pad(broadcast(constant(b, DType::boolean, 1), dims), axis, before, after, 0);
}

Values pad_operator(NodeArgs& n) {
  const PadSpec p = pad_spec(n);
  Value x = n[0];
  std::vector<bool> seen(x.type().dims.size(), false);
  std::optional<Value> kept;
  for (std::size_t i = 0; i < p.axes.size(); ++i) {
    const Index axis = axis_of(p.axes[i], x.rank());
    require(!seen[static_cast<std::size_t>(axis)], "axis {} is listed twice", axis);
    seen[static_cast<std::size_t>(axis)] = true;
    const Dim &before = p.pads[i], &after = p.pads[i + p.axes.size()];
    for (const Dim& d : {before, after}) {
      const Bounds b = d.bounds();
      require(b.lo >= 0 || b.hi <= 0, "a pad is {}, which may be negative or not", d.text());
      require(b.lo >= -unbounded && b.hi <= unbounded, "a pad is {}", d.text());
    }
    // A negative pad cuts.
    const Dim cut_front = before.bounds().lo < 0 ? 0 - before : Dim(0),
              cut_back = after.bounds().lo < 0 ? after : Dim(0);
    x = slice(x, axis, cut_front, x.dim(axis) + cut_back);
    const Dim front = max(before, 0), back = max(after, 0);
    if (p.mode != PadMode::constant) {
      x = pad_with(x, axis, front, back, p.mode);
      continue;
    }
    x = pad(x, axis, front, back, p.value);
    if (!p.unknown || (front == Dim(0) && back == Dim(0))) continue;
    const Value own = inside(x, axis, front, back);
    kept = kept ? bitwise_and(*kept, own) : own;
  }
  return {kept ? select(*kept, x, *p.unknown) : x};
}

Values center_crop_pad(NodeArgs& n) {
  n.expect(2, 2);
  Value x = n[0];
  const std::vector<Dim> sizes = n.sizes(1);
  std::vector<Index> axes;
  if (const auto given = n.integers("axes")) {
    axes = *given;
  } else {
    for (Index i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  require(sizes.size() == axes.size(), "{} sizes are given for {} axes", sizes.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Index axis = axis_of(axes[i], x.rank());
    require(sizes[i].bounds().hi >= 0, "size {} is {}", i, sizes[i].text());
    const Dim start = floordiv(max(x.dim(axis) - sizes[i], 0), 2), kept = min(x.dim(axis), sizes[i]);
    x = slice(x, axis, start, start + kept);
    const Dim missing = sizes[i] - kept, before = floordiv(missing, 2);
    x = pad(x, axis, before, missing - before, 0);
  }
  return {x};
}

// Rows (of time and batch) are taken from a table of all rows.
Values reverse_sequence(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0], lengths = n[1];
  const Index batch = n.integer("batch_axis", 1), time = n.integer("time_axis", 0);
  require((batch == 0 && time == 1) || (batch == 1 && time == 0), "batch_axis is {} and time_axis {}, expected 0 and 1",
          batch, time);
  require(x.rank() >= 2, "operand is {}, expected rank 2 or more", x.type().text());
  require(lengths.dtype() == DType::i64 && lengths.rank() == 1, "lengths are {}, expected i64 of rank 1",
          lengths.type().text());
  Builder& b = n.builder();
  b.check(lengths.dim(0), x.dim(batch), "number of lengths");
  const std::vector<Dim> heads{x.dim(0), x.dim(1)};
  const Value at = iota(b, DType::i64, heads, time), item = iota(b, DType::i64, heads, batch);
  const Value length = broadcast(along(lengths, batch, 2), heads), zero = like(at, 0);
  const Value turned = select(less(at, length), length - like(at, 1) - at, at);
  const Value extent = n.known(DType::i64, {x.dim(time)}, false);
  const Value fits = bitwise_and(less_equal(zero, length), less_equal(length, extent));
  const Value row = time == 0 ? turned * n.known(DType::i64, {x.dim(1)}, false) + item : item * extent + turned;
  std::vector<Dim> table{x.dim(0) * x.dim(1)};
  table.insert(table.end(), x.type().dims.begin() + 2, x.type().dims.end());
  return {gather(reshape(x, table), select(fits, row, nowhere(b)), 0)};
}

Values tensor_scatter(NodeArgs& n) {
  n.expect(2, 3);
  const Value cache = n[0], update = n[1];
  const Index rank = cache.rank(), axis = axis_of(n.integer("axis", -2), rank);
  require(axis != 0 && update.rank() == rank, "operands are {} and {} with axis {}", cache.type().text(),
          update.type().text(), axis);
  const std::string mode = n.string("mode", "linear");
  require(mode == "linear" || mode == "circular", "mode is {}, expected linear or circular", in_quotes(mode));
  Builder& b = n.builder();
  Value at = along(iota(b, DType::i64, {update.dim(axis)}), axis, rank);
  const Value zero = like(at, 0), extent = n.known(DType::i64, {cache.dim(axis)}, false);
  if (n.has(2)) {
    b.check(n[2].dim(0), cache.dim(0), "number of write indices");
    const Value first = along(cast(n[2], DType::i64), 0, rank);
    const Value place = mode == "circular" ? fmod(first + at, extent) : first + at;
    at = select(less(first, zero), nowhere(b), place);
  } else if (mode == "circular") {
    at = fmod(at, extent);
  }
  return {scatter(cache, update, broadcast(at, update.type().dims), axis, ScatterKind::none)};
}

}  // namespace

OperatorRows movement_rows() {
  static constexpr OperatorRow rows[] = {
      {"Pad", 2, pad_operator},
      {"CenterCropPad", 18, center_crop_pad},
      {"ReverseSequence", 10, reverse_sequence},
      {"TensorScatter", 24, tensor_scatter},
  };
  return rows;
}

}  // namespace rlx::onnx
