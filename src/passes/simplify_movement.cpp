// Moves that move nothing, and moves of moves as one: reshape, transpose, broadcast, slice, pad, concat, gather, and
// reductions over axes of size 1. All of them keep every bit.
#include <algorithm>
#include <numeric>

#include "ops/broadcast/broadcast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/pad/pad.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/transpose/transpose.h"
#include "passes/local_rules.h"
#include "passes/match.h"

namespace rlx {

namespace {

using match::is, match::operand;

std::optional<Value> moves_nothing(const Site& s) {
  return s[0].type() == s.type() ? std::optional(s[0]) : std::nullopt;
}

// --- reshape ---

std::optional<Value> reshape_twice(const Site& s) {
  if (!is(s[0], reshape_op)) return {};
  const Value x = operand(s[0]);
  if (equal(x.type().count(), s.type().count()) != Tri::yes) return {};
  return reshape(x, s.type().dims);
}

// One element stretched, under another shape.
std::optional<Value> reshape_of_stretched_number(const Site& s) {
  if (!is(s[0], broadcast_op)) return {};
  const Value x = operand(s[0]);
  if (x.type().count() != Dim(1)) return {};
  return broadcast(reshape(x, {}), s.type().dims);
}

// --- transpose ---

std::vector<Index> order_of(Value v) {
  std::vector<Index> order = match::attrs<TransposeAttrs>(v).order;
  for (Index& axis : order) axis = v.type().axis(axis);
  return order;
}

std::optional<Value> transpose_nothing(const Site& s) {
  const std::vector<Index> order = order_of(s.value);
  return std::ranges::is_sorted(order) ? std::optional(s[0]) : std::nullopt;
}

std::optional<Value> transpose_twice(const Site& s) {
  if (!is(s[0], transpose_op)) return {};
  const std::vector<Index> first = order_of(s[0]);
  std::vector<Index> order = order_of(s.value);
  for (Index& axis : order) axis = first[static_cast<std::size_t>(axis)];
  return transpose(operand(s[0]), std::move(order));
}

// Only axes of size 1 change their place: no element moves.
std::optional<Value> transpose_of_ones(const Site& s) {
  Index last = -1;
  for (const Index axis : order_of(s.value)) {
    if (s[0].dim(axis) == Dim(1)) continue;
    if (axis < last) return {};
    last = axis;
  }
  return reshape(s[0], s.type().dims);
}

std::optional<Value> transpose_of_number(const Site& s) {
  if (!is(s[0], broadcast_op) || operand(s[0]).rank() > 0) return {};
  return broadcast(operand(s[0]), s.type().dims);
}

// --- broadcast ---

std::optional<Value> broadcast_twice(const Site& s) {
  if (!is(s[0], broadcast_op)) return {};
  const Value x = operand(s[0]);
  if (!match::stretches_to(x.type().dims, s.type().dims)) return {};
  return broadcast(x, s.type().dims);
}

// The result is of size 1 along every new axis: a reshape does it without reading the operand.
std::optional<Value> broadcast_of_ones(const Site& s) {
  if (equal(s[0].type().count(), s.type().count()) != Tri::yes || s[0].rank() == s.type().rank()) return {};
  return reshape(s[0], s.type().dims);
}

// --- slice, pad ---

std::optional<Value> slice_nothing(const Site& s) {
  const SliceAttrs a = s.attrs<SliceAttrs>();
  if (s[0].type() != s.type()) return {};
  for (std::size_t i = 0; i < a.starts.size(); ++i) {
    const bool one = s.type().dims[i] == Dim(1);
    if (a.starts[i] != Dim(0) || (step_along(a.steps, i) != 1 && !one)) return {};
  }
  return s[0];
}

std::optional<Value> slice_twice(const Site& s) {
  if (!is(s[0], slice_op)) return {};
  const Value x = operand(s[0]);
  const SliceAttrs first = match::attrs<SliceAttrs>(s[0]), second = s.attrs<SliceAttrs>();
  SliceAttrs both{{}, second.sizes, {}};
  for (std::size_t i = 0; i < second.sizes.size(); ++i) {
    const Index step = step_along(first.steps, i);
    both.starts.push_back(first.starts[i] + second.starts[i] * Dim(step));
    both.steps.push_back(step * step_along(second.steps, i));
  }
  if (std::ranges::all_of(both.steps, [](Index i) { return i == 1; })) both.steps.clear();
  const Value in[] = {x};
  if (!match::fits(s.builder(), slice_op, Attrs(both), in, s.type())) return {};
  return slice(x, std::move(both));
}

// A slice that lies inside one part of a concat.
std::optional<Value> slice_of_concat(const Site& s) {
  if (!is(s[0], concat_op)) return {};
  const auto axis = static_cast<std::size_t>(s[0].type().axis(match::attrs<ConcatAttrs>(s[0]).axis));
  SliceAttrs a = s.attrs<SliceAttrs>();
  if (step_along(a.steps, axis) < 1) return {};
  const Dim last = a.starts[axis] + (a.sizes[axis] - 1) * Dim(step_along(a.steps, axis));
  Dim before = 0;
  const std::size_t parts = match::node(s[0]).operands.size();
  for (std::size_t i = 0; i < parts; ++i) {
    const Value part = operand(s[0], i);
    const Dim start = a.starts[axis] - before;
    const Dim room = part.type().dims[axis] - 1 - (last - before);
    if (start.bounds().lo >= 0 && room.bounds().lo >= 0) {
      a.starts[axis] = start;
      const Value in[] = {part};
      if (!match::fits(s.builder(), slice_op, Attrs(a), in, s.type())) return {};
      return slice(part, std::move(a));
    }
    before = before + part.type().dims[axis];
  }
  return {};
}

std::optional<Value> pad_nothing(const Site& s) {
  const PadAttrs a = s.attrs<PadAttrs>();
  const bool at_start = std::ranges::all_of(a.starts, [](const Dim& d) { return d == Dim(0); });
  const bool dense = std::ranges::all_of(a.steps, [](Index i) { return i == 1; });
  return s[0].type() == s.type() && at_start && dense ? std::optional(s[0]) : std::nullopt;
}

// --- concat, gather ---

std::optional<Value> concat_nothing(const Site& s) {
  const Index axis = s.type().axis(s.attrs<ConcatAttrs>().axis);
  Values parts;
  for (std::size_t i = 0; i < s.operand_count(); ++i) {
    if (s[i].dim(axis) != Dim(0)) parts.push_back(s[i]);
  }
  if (parts.empty()) parts.push_back(s[0]);
  if (parts.size() == 1) return parts[0].type() == s.type() ? std::optional(parts[0]) : std::nullopt;
  if (parts.size() == s.operand_count()) return {};
  const ConcatAttrs attrs{axis};
  if (!match::fits(s.builder(), concat_op, Attrs(attrs), parts, s.type())) return {};
  return concat(parts, axis);
}

// One known index is a slice, which needs no copy.
std::optional<Value> gather_one(const Site& s) {
  const Value table = s[0], indices = s[1];
  const Tensor* known = match::constant_of(indices);
  if (!known || known->count() != 1 || table.type().encoding) return {};
  const Index axis = table.type().axis(s.attrs<GatherAttrs>().axis);
  const Index index = load<std::int64_t>(*known)[0];
  const Dim start = index < 0 ? table.dim(axis) + index : Dim(index);
  SliceAttrs a{std::vector<Dim>(table.type().dims.size(), Dim(0)), table.type().dims, {}};
  a.starts[static_cast<std::size_t>(axis)] = start;
  a.sizes[static_cast<std::size_t>(axis)] = 1;
  const Value in[] = {table};
  TensorType row{table.dtype(), a.sizes};
  if (!match::fits(s.builder(), slice_op, Attrs(a), in, row)) return {};  // perhaps out of range: left to run time
  return reshape(slice(table, std::move(a)), s.type().dims);
}

// --- reduce ---

// Along an axis of size 1 there is one element. A sum begins with 0, so it turns -0 into 0.
std::optional<Value> reduce_ones(const Site& s) {
  static const OpDef& add_op = match::op("add");
  ReduceAttrs a = s.attrs<ReduceAttrs>();
  std::vector<Index> axes;
  for (const Index axis : a.axes) {
    if (s[0].dim(axis) != Dim(1)) axes.push_back(s[0].type().axis(axis));
  }
  if (!axes.empty()) {
    if (axes.size() == a.axes.size()) return {};
    a.axes = std::move(axes);
    return reshape(s.rules.make(reduce_op, a, {s[0]}), s.type().dims);
  }
  const Value x = reshape(s[0], s.type().dims);
  const bool sums = a.kind == ReduceKind::sum || a.kind == ReduceKind::mean;
  if (!sums || is_integer(x.dtype()) || match::non_negative(x)) return x;
  if (is_complex(x.dtype())) return {};
  return s.rules.make(add_op, {x, constant(s.builder(), x.dtype(), 0)});
}

}  // namespace

std::span<const LocalRule> movement_rules() {
  static const LocalRule rules[] = {
      {&reshape_op, "moves that move nothing", moves_nothing},
      {&reshape_op, "reshapes of reshapes", reshape_twice},
      {&reshape_op, "moves of one number", reshape_of_stretched_number},
      {&transpose_op, "moves that move nothing", transpose_nothing},
      {&transpose_op, "transposes of transposes", transpose_twice},
      {&transpose_op, "moves that move nothing", transpose_of_ones},
      {&transpose_op, "moves of one number", transpose_of_number},
      {&broadcast_op, "moves that move nothing", moves_nothing},
      {&broadcast_op, "broadcasts of broadcasts", broadcast_twice},
      {&broadcast_op, "moves that move nothing", broadcast_of_ones},
      {&slice_op, "moves that move nothing", slice_nothing},
      {&slice_op, "slices of slices", slice_twice},
      {&slice_op, "slices of parts", slice_of_concat},
      {&pad_op, "moves that move nothing", pad_nothing},
      {&concat_op, "concats of nothing", concat_nothing},
      {&gather_op, "gathers of one index", gather_one},
      {&reduce_op, "reductions of one element", reduce_ones},
  };
  return rules;
}

}  // namespace rlx
