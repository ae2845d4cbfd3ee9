// reshape: inference compares element counts symbolically.
#include "ops/reshape/reshape.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

namespace {

TensorType reshape_infer(const ReshapeAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  require(!c.in[0].encoding, "an encoded tensor {} is not reshaped", c.in[0].text());
  for (const Dim& d : a.dims) require(d.bounds().hi >= 0, "size {} is negative", d.text());
  c.equal(c.in[0].count(), product(a.dims), "elements of a reshape");
  if (c.value(0) && a.dims.size() <= 1) c.track(0, *c.value(0));
  return {c.in[0].dtype, a.dims};
}

std::vector<Case<ReshapeAttrs>> reshape_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16);
  return {
      {{{Dim(3), Dim(2)}},
       {.inputs = {CaseInput(DType::f32, {2, 3}).filled({1, 2, 3, 4, 5, 6})},
        .expected = {{1, 2, 3, 4, 5, 6}},
        .tolerance = exact}},
      {{{b * s, Dim(4)}}, {.inputs = {{DType::f32, {b, s, 4}}}, .tolerance = exact, .dims = {{"B", 2}, {"S", 3}}}},
      {{{}}, {.inputs = {{DType::f32, {1, 1}}}, .tolerance = exact}},
      {{{Dim(0), Dim(7)}}, {.inputs = {{DType::f32, {3, 0}}}, .tolerance = exact}},
      {{{Dim(4)}}, {.inputs = {{DType::i4, {2, 2}}}, .tolerance = exact}},
      {{{Dim(4)}}, {.inputs = {{DType::c64, {2, 2}}}, .tolerance = exact, .gradient = false}},
  };
}

}  // namespace

constinit const Op<ReshapeAttrs> reshape_op{{
    .name = "reshape",
    .doc = "The elements of the operand in row-major order under sizes `dims`, whose product must be the element "
           "count. Any element "
           "type. Gradient: the cotangent under the operand's sizes.",
    .infer = reshape_infer,
    .vjp = [](const ReshapeAttrs&, const VjpArgs& v) -> Grads { return {reshape(v.dout(), v.in[0].type().dims)}; },
    .reference = [](const ReshapeAttrs&, const RefArgs& r) { r.out[0] = r.in[0].reshaped(r.out[0].shape()); },
    .cases = reshape_cases,
    .failures =
        [] {
          return std::vector<Failure<ReshapeAttrs>>{
              {{{Dim(5)}}, {{DType::f32, {2, 3}}}, "elements of a reshape: 6 is not 5"},
              {{{Dim(-6), Dim(-1)}}, {{DType::f32, {2, 3}}}, "size -6 is negative"},
          };
        },
}};

Value reshape(Value x, std::vector<Dim> dims) {
  if (x.type().dims == dims) return x;
  return x.builder->emit_one(reshape_op, ReshapeAttrs{std::move(dims)}, {x});
}

Value unsqueeze(Value x, const std::vector<Index>& axes) {
  std::vector<Dim> dims = x.type().dims;
  for (const Index a : axes) {
    require(0 <= a && a <= static_cast<Index>(dims.size()), "axis {} is out of range for inserting into rank {}", a,
            dims.size());
    dims.insert(dims.begin() + a, Dim(1));
  }
  return reshape(x, std::move(dims));
}

Value squeeze(Value x, const std::vector<Index>& axes) {
  std::vector<Dim> dims;
  std::vector<bool> removed(x.type().dims.size(), false);
  for (const Index a : axes) removed[static_cast<std::size_t>(x.type().axis(a))] = true;
  for (std::size_t i = 0; i < removed.size(); ++i) {
    require(!removed[i] || x.type().dims[i] == Dim(1), "axis {} of {} has not size 1", i, x.type().text());
    if (!removed[i]) dims.push_back(x.type().dims[i]);
  }
  return reshape(x, std::move(dims));
}

std::span<const OpDef* const> reshape_ops() {
  static constexpr const OpDef* ops[] = {&reshape_op};
  return ops;
}

}  // namespace rlx
