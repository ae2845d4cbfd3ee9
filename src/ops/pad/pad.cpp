// pad: the adjoint of slice, and padding with a constant.
#include "ops/pad/pad.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/walk.h"
#include "ops/slice/slice.h"

namespace rlx {

namespace {

TensorType pad_infer(const PadAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  const TensorType& x = c.in[0];
  require(!x.encoding, "an encoded tensor {} is not padded", x.text());
  check_box(c, a.starts, a.steps, x.dims, a.dims);
  const bool whole = is_integer(x.dtype) || x.dtype == DType::boolean;
  // The greatest 64-bit integers read back as the power of two above them, which the type lacks.
  const double top = std::ldexp(1.0, bits(x.dtype) - (is_signed_integer(x.dtype) ? 1 : 0));
  const bool held = whole && a.value < top && load<double>(Tensor::scalar(x.dtype, a.value))[0] == a.value;
  require(!whole || held, "{} has no value {}", name(x.dtype), a.value);
  return {x.dtype, a.dims};
}

void pad_reference(const PadAttrs& a, const RefArgs& r) {
  const std::uint64_t fill = Tensor::scalar(r.out[0].dtype(), a.value).code(0);
  for (Index i = 0; i < r.out[0].count(); ++i) r.out[0].set_code(i, fill);
  std::vector<Index> strides = row_major_strides(r.out[0].shape());
  Index first = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) {
    first += a.starts[i].evaluate(r.dims) * strides[i];
    strides[i] *= step_along(a.steps, i);
  }
  Index i = 0;
  walk<1>(r.in[0].shape(), {strides}, [&](const auto& at) { r.out[0].set_code(first + at[0], r.in[0].code(i++)); });
}

std::vector<Case<PadAttrs>> pad_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 2, 16);
  const double inf = std::numeric_limits<double>::infinity();
  const auto whole = [](PadAttrs a, CaseInput in, std::vector<double> out) {
    return Case<PadAttrs>{std::move(a),
                          {.inputs = {std::move(in)}, .expected = {std::move(out)}, .expected_tolerance = exact}};
  };
  const CaseInput two = CaseInput(DType::f32, {2}).filled({1, 2});
  return {
      whole({{5}, {1}, {}, 0}, two, {0, 1, 2, 0, 0}),
      {{{5}, {1}, {2}, -inf}, {.inputs = {two}, .expected = {{-inf, 1, -inf, 2, -inf}}, .gradient = false}},
      whole({{4}, {2}, {-2}, 9}, two, {2, 9, 1, 9}),
      whole({{2, 3}, {1, 0}, {1, 2}, 0}, CaseInput(DType::f32, {1, 2}).filled({1, 2}), {0, 0, 0, 1, 0, 2}),
      whole({{3}, {3}, {2}, 7}, CaseInput(DType::f32, {0}), {7, 7, 7}),
      whole({{3}, {-1}, {-1}, 7}, CaseInput(DType::f32, {0}), {7, 7, 7}),
      whole({{}, {}, {}, 7}, CaseInput(DType::f32, {}).filled({3}), {3}),
      whole({{3}, {1}, {}, -5}, CaseInput(DType::i64, {1}).filled({1e12}), {-5, 1e12, -5}),
      whole({{4}, {1}, {}, -3}, CaseInput(DType::i4, {2}).filled({7, -8}), {-3, 7, -8, -3}),
      whole({{7}, {2}, {}, 1}, CaseInput(DType::i2, {3}).filled({-2, 0, -1}), {1, 1, -2, 0, -1, 1, 1}),
      whole({{3}, {2}, {}, 1}, CaseInput(DType::boolean, {1}).filled({0}), {1, 1, 0}),
      {{{b, s + 3, 7}, {0, 2, 1}, {1, 1, 3}, 0.5}, {.inputs = {{DType::f32, {b, s, 2}}}}},
      {{{2 * s, b}, {2 * s - 1, 0}, {-2, 1}, 0}, {.inputs = {{DType::f32, {s, b}}}, .dims = {{"S", 5}, {"B", 3}}}},
      {{{13}, {2}, {}, 0}, {.inputs = {{DType::c64, {7}}}, .gradient = false}},
  };
}

}  // namespace

constinit const Op<PadAttrs> pad_op{{
    .name = "pad",
    .doc =
        "The operand inside a tensor of sizes `dims`: its element i stands at `starts` + i * `steps` along every axis, "
        "all other elements are `value`. A negative step writes backwards. What provably leaves `dims` is an Error, "
        "what may leave it is checked when sizes are bound. Any element type; integers must hold `value` exactly. "
        "Gradient: the cotangent at these positions (slice).",
    .infer = pad_infer,
    .vjp = [](const PadAttrs& a, const VjpArgs& v) -> Grads {
      return {slice(v.dout(), {a.starts, v.in[0].type().dims, a.steps})};
    },
    .reference = pad_reference,
    .cases = pad_cases,
    .failures =
        [] {
          return std::vector<Failure<PadAttrs>>{
              {{{4}, {2}, {}, 0}, {{DType::f32, {3}}}, "end of axis 0: 5 is more than 4"},
              {{{4}, {-1}, {}, 0}, {{DType::f32, {3}}}, "start of axis 0: 0 is more than -1"},
              {{{4}, {0}, {2}, 0}, {{DType::f32, {3}}}, "end of axis 0: 5 is more than 4"},
              {{{4}, {1}, {-1}, 0}, {{DType::f32, {3}}}, "end of axis 0: 0 is more than -1"},
              {{{4}, {0}, {0}, 0}, {{DType::f32, {3}}}, "step of axis 0 is 0"},
              {{{4, 4}, {0}, {}, 0}, {{DType::f32, {3}}}, "2 sizes are given for rank 1"},
              {{{4}, {}, {}, 0}, {{DType::f32, {3}}}, "0 starts are given for rank 1"},
              {{{4}, {0}, {}, 0.5}, {{DType::i32, {3}}}, "i32 has no value 0.5"},
              {{{4}, {0}, {}, 300}, {{DType::u8, {3}}}, "u8 has no value 300"},
              {{}, {}, "0 operands are given, expected 1"},
          };
        },
}};

Value pad(Value x, PadAttrs attrs) {
  const bool from_zero = std::ranges::all_of(attrs.starts, [](const Dim& d) { return d == Dim(0); });
  if (std::ranges::all_of(attrs.steps, [](Index s) { return s == 1; })) {
    attrs.steps.clear();
    if (from_zero && attrs.dims == x.type().dims) return x;
  }
  return x.builder->emit_one(pad_op, std::move(attrs), {x});
}

Value pad(Value x, Index axis, const Dim& before, const Dim& after, double value) {
  const auto at = static_cast<std::size_t>(x.type().axis(axis));
  PadAttrs a{x.type().dims, std::vector<Dim>(x.type().dims.size(), Dim(0)), {}, value};
  a.dims[at] = before + a.dims[at] + after;
  a.starts[at] = before;
  return pad(x, std::move(a));
}

std::span<const OpDef* const> pad_ops() {
  static constexpr const OpDef* ops[] = {&pad_op};
  return ops;
}

}  // namespace rlx
