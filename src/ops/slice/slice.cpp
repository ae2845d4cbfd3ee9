// slice: inference proves the box inside the operand, or leaves that to run time.
#include "ops/slice/slice.h"

#include <algorithm>

#include "core/error.h"
#include "core/walk.h"
#include "ir/at_most.h"
#include "ops/pad/pad.h"

namespace rlx {

void check_box(InferContext& c, const std::vector<Dim>& starts, const std::vector<Index>& steps,
               std::span<const Dim> counts, std::span<const Dim> extents) {
  const std::size_t rank = counts.size();
  require(starts.size() == rank, "{} starts are given for rank {}", starts.size(), rank);
  require(extents.size() == rank, "{} sizes are given for rank {}", extents.size(), rank);
  require(steps.empty() || steps.size() == rank, "{} steps are given for rank {}", steps.size(), rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const Index step = step_along(steps, i);
    require(step != 0, "step of axis {} is 0", i);
    const Dim last = starts[i] + (counts[i] - 1) * Dim(step);
    at_most(c, 0, counts[i], fmt::format("number of elements of axis {}", i));
    const std::string start = fmt::format("start of axis {}", i), end = fmt::format("end of axis {}", i);
    if (step > 0) {
      at_most(c, 0, starts[i], start);
      if (step > 1) at_most(c, starts[i], extents[i], start);
      at_most(c, last + 1, extents[i], end);
    } else {
      at_most(c, starts[i] + 1, extents[i], start);
      at_most(c, -1, starts[i], start);
      at_most(c, 0, last, end);
    }
  }
}

namespace {

void track_elements(const SliceAttrs& a, InferContext& c) {
  const std::vector<Dim>* known = c.value(0);
  if (!known || a.starts.size() != 1 || !a.starts[0].is_constant() || !a.sizes[0].is_constant()) return;
  std::vector<Dim> elements;
  for (Index i = 0; i < a.sizes[0].constant(); ++i) {
    const Index at = a.starts[0].constant() + i * step_along(a.steps, 0);
    elements.push_back((*known)[static_cast<std::size_t>(at)]);
  }
  c.track(0, std::move(elements));
}

TensorType slice_infer(const SliceAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  require(!c.in[0].encoding, "an encoded tensor {} is not sliced", c.in[0].text());
  require(a.sizes.size() == c.in[0].dims.size(), "{} sizes are given for rank {}", a.sizes.size(), c.in[0].rank());
  check_box(c, a.starts, a.steps, a.sizes, c.in[0].dims);
  track_elements(a, c);
  return {c.in[0].dtype, a.sizes};
}

void slice_reference(const SliceAttrs& a, const RefArgs& r) {
  std::vector<Index> strides = row_major_strides(r.in[0].shape());
  Index first = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    first += a.starts[i].evaluate(r.dims) * strides[i];
    strides[i] *= step_along(a.steps, i);
  }
  Index i = 0;
  walk<1>(r.out[0].shape(), {strides}, [&](const auto& at) { r.out[0].set_code(i++, r.in[0].code(first + at[0])); });
}

std::vector<Case<SliceAttrs>> slice_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 2, 16);
  const CaseInput six = CaseInput(DType::f32, {2, 3}).filled({1, 2, 3, 4, 5, 6});
  const CaseInput seven = CaseInput(DType::i64, {7}).filled({788, 5, 1e12, -1, 16777217, 7, 8});
  const auto whole = [](SliceAttrs a, CaseInput in, std::vector<double> out) {
    return Case<SliceAttrs>{std::move(a),
                            {.inputs = {std::move(in)}, .expected = {std::move(out)}, .expected_tolerance = exact}};
  };
  return {
      whole({{0, 1}, {2, 2}, {}}, six, {2, 3, 5, 6}),
      whole({{1, 0}, {1, 2}, {1, 2}}, six, {4, 6}),
      whole({{1, 2}, {2, 2}, {-1, -2}}, six, {6, 4, 3, 1}),
      whole({{2, 0}, {0, 3}, {}}, six, {}),
      whole({{-1, 0}, {0, 3}, {-1, 1}}, six, {}),
      whole({{2}, {3}, {2}}, seven, {1e12, 16777217, 8}),
      whole({{6}, {3}, {-3}}, seven, {8, -1, 788}),
      whole({{}, {}, {}}, CaseInput(DType::f32, {}).filled({3}), {3}),
      whole({{1}, {3}, {}}, CaseInput(DType::i4, {5}).filled({-8, 7, -1, 3, 2}), {7, -1, 3}),
      whole({{4}, {3}, {-2}}, CaseInput(DType::u4, {5}).filled({15, 7, 1, 3, 2}), {2, 1, 15}),
      whole({{3}, {4}, {-1}}, CaseInput(DType::u2, {5}).filled({3, 0, 1, 2, 0}), {2, 1, 0, 3}),
      whole({{1}, {2}, {}}, CaseInput(DType::boolean, {3}).filled({1, 0, 1}), {0, 1}),
      whole({{0}, {0}, {}}, CaseInput(DType::f32, {0}), {}),
      {{{0, s - 1, 1}, {b, s, 2}, {1, -1, 2}}, {.inputs = {{DType::f32, {b, s, 5}}}}},
      {{{floordiv(s, 2)}, {s - floordiv(s, 2)}, {}},
       {.inputs = {CaseInput(DType::f32, {s}).filled({1, 2, 3, 4, 5})}, .expected = {{3, 4, 5}}, .dims = {{"S", 5}}}},
      {{{1, 0}, {b, 2}, {}}, {.inputs = {{DType::f32, {s, 3}}}, .dims = {{"S", 7}, {"B", 6}}}},
      {{{2, 3}, {4, 3}, {3, -1}}, {.inputs = {{DType::f32, {13, 5}}}}},
      {{{1, 0}, {2, 2}, {}}, {.inputs = {{DType::c64, {3, 2}}}, .gradient = false}},
  };
}

std::vector<Failure<SliceAttrs>> slice_failures() {
  const std::vector<TensorType> x{{DType::f32, {2, 3}}};
  return {
      {{{0, 1}, {2, 3}, {}}, x, "end of axis 1: 4 is more than 3"},
      {{{0, -1}, {2, 3}, {}}, x, "start of axis 1: 0 is more than -1"},
      {{{0, 1}, {2, 2}, {1, 2}}, x, "end of axis 1: 4 is more than 3"},
      {{{0, 4}, {2, 0}, {1, 2}}, x, "start of axis 1: 4 is more than 3"},
      {{{2, 0}, {1, 3}, {-1, 1}}, x, "start of axis 0: 3 is more than 2"},
      {{{-2, 0}, {0, 3}, {-1, 1}}, x, "start of axis 0: -1 is more than -2"},
      {{{1, 0}, {3, 3}, {-1, 1}}, x, "end of axis 0: 0 is more than -1"},
      {{{0, 0}, {2, -1}, {}}, x, "number of elements of axis 1: 0 is more than -1"},
      {{{0, 0}, {2, 3}, {1, 0}}, x, "step of axis 1 is 0"},
      {{{0}, {2, 3}, {}}, x, "1 starts are given for rank 2"},
      {{{0, 0}, {2}, {}}, x, "1 sizes are given for rank 2"},
      {{{0, 0}, {2, 3}, {1}}, x, "1 steps are given for rank 2"},
      {{{0}, {Dim::symbol("S", 4, 9)}, {}}, {{DType::f32, {3}}}, "end of axis 0: S is more than 3"},
      {{}, {}, "0 operands are given, expected 1"},
  };
}

// A position by the rules of ONNX: from the end when negative.
Dim from_end(const Dim& at, const Dim& extent, std::string_view what) {
  const Bounds b = at.bounds();
  require(b.lo >= 0 || b.hi < 0, "{} {} may be negative or not, it must be one of them", what, at.text());
  return b.lo >= 0 ? at : extent + at;
}

// `x` with one axis taken apart.
Value along(Value x, Index axis, const Dim& start, const Dim& size, Index step) {
  const auto at = static_cast<std::size_t>(x.type().axis(axis));
  SliceAttrs a{std::vector<Dim>(x.type().dims.size(), Dim(0)), x.type().dims, {}};
  a.starts[at] = start;
  a.sizes[at] = size;
  if (step != 1) {
    a.steps.assign(x.type().dims.size(), 1);
    a.steps[at] = step;
  }
  return slice(x, std::move(a));
}

}  // namespace

constinit const Op<SliceAttrs> slice_op{{
    .name = "slice",
    .doc =
        "The elements at positions `starts` + i * `steps`, i below `sizes`, along every axis. Positions count from 0 "
        "and are never clamped: a box that provably leaves the operand is an Error, one whose sizes do not show it "
        "is checked when sizes are bound. A negative step runs backwards from its start. Any element type. Gradient: "
        "the cotangent at these positions among zeros (pad).",
    .infer = slice_infer,
    .vjp = [](const SliceAttrs& a, const VjpArgs& v) -> Grads {
      return {pad(v.dout(), {v.in[0].type().dims, a.starts, a.steps, 0})};
    },
    .reference = slice_reference,
    .cases = slice_cases,
    .failures = slice_failures,
}};

Value slice(Value x, SliceAttrs attrs) {
  const bool from_zero = std::ranges::all_of(attrs.starts, [](const Dim& d) { return d == Dim(0); });
  if (std::ranges::all_of(attrs.steps, [](Index s) { return s == 1; })) {
    attrs.steps.clear();
    if (from_zero && attrs.sizes == x.type().dims) return x;
  }
  return x.builder->emit_one(slice_op, std::move(attrs), {x});
}

Value slice(Value x, Index axis, const Dim& start, const Dim& end, Index step) {
  require(step != 0, "step of axis {} is 0", axis);
  return along(x, axis, start, step > 0 ? ceildiv(end - start, step) : ceildiv(start - end, -step), step);
}

Value clamped_slice(Value x, Index axis, const Dim& start, const Dim& end, Index step) {
  require(step != 0, "step of axis {} is 0", axis);
  const Dim& n = x.dim(axis);
  const Dim first = from_end(start, n, "start"), stop = from_end(end, n, "end");
  if (step > 0) {
    const Dim lo = min(max(first, 0), n), hi = min(max(stop, 0), n);
    return along(x, axis, lo, ceildiv(max(hi - lo, 0), step), step);
  }
  const Dim lo = min(max(first, -1), n - 1), hi = min(max(stop, -1), n - 1);
  return along(x, axis, lo, ceildiv(max(lo - hi, 0), -step), step);
}

Value reversed(Value x, Index axis) { return along(x, axis, x.dim(axis) - 1, x.dim(axis), -1); }

std::span<const OpDef* const> slice_ops() {
  static constexpr const OpDef* ops[] = {&slice_op};
  return ops;
}

}  // namespace rlx
