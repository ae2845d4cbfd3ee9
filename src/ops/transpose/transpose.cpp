// transpose: permutation of axes, for every element type.
#include "ops/transpose/transpose.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/walk.h"

namespace rlx {

namespace {

std::vector<Index> checked_order(const TransposeAttrs& a, const TensorType& t) {
  require(a.order.size() == t.dims.size(), "an order of {} axes is given for rank {}", a.order.size(), t.rank());
  std::vector<Index> order;
  std::vector<bool> used(t.dims.size(), false);
  for (const Index axis : a.order) {
    order.push_back(t.axis(axis));
    require(!used[static_cast<std::size_t>(order.back())], "axis {} is listed twice", axis);
    used[static_cast<std::size_t>(order.back())] = true;
  }
  return order;
}

TensorType transpose_infer(const TransposeAttrs& a, Types in) {
  require(in.size() == 1, "{} operands are given, expected 1", in.size());
  require(!in[0].encoding, "an encoded tensor {} is not transposed", in[0].text());
  TensorType t{in[0].dtype, {}};
  for (const Index axis : checked_order(a, in[0])) t.dims.push_back(in[0].dim(axis));
  return t;
}

void transpose_reference(const TransposeAttrs& a, const RefArgs& r) {
  const std::vector<Index> order = checked_order(a, r.in[0].type()), from = row_major_strides(r.in[0].shape());
  std::vector<Index> strides;
  for (const Index axis : order) strides.push_back(from[static_cast<std::size_t>(axis)]);
  Index i = 0;
  walk<1>(r.out[0].shape(), {strides}, [&](const auto& at) { r.out[0].set_code(i++, r.in[0].code(at[0])); });
}

Grads transpose_vjp(const TransposeAttrs& a, const VjpArgs& v) {
  const std::vector<Index> order = checked_order(a, v.in[0].type());
  std::vector<Index> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<Index>(i);
  return {transpose(v.dout(), back)};
}

std::vector<Case<TransposeAttrs>> transpose_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16);
  return {
      {{{1, 0}},
       {.inputs = {CaseInput(DType::f32, {2, 3}).filled({1, 2, 3, 4, 5, 6})},
        .expected = {{1, 4, 2, 5, 3, 6}},
        .tolerance = exact}},
      {{{0, 2, 1, 3}}, {.inputs = {{DType::f32, {b, s, 2, 3}}}, .tolerance = exact}},
      {{{-1, 0, 1}}, {.inputs = {{DType::f32, {2, 3, 4}}}, .tolerance = exact}},
      {{{}}, {.inputs = {{DType::f32, {}}}, .tolerance = exact}},
      {{{1, 0}}, {.inputs = {{DType::f32, {3, 0}}}, .tolerance = exact}},
      {{{1, 0}}, {.inputs = {{DType::i4, {3, 5}}}, .tolerance = exact}},
      {{{1, 0}}, {.inputs = {{DType::i2, {3, 5}}}, .tolerance = exact}},
      {{{1, 0}}, {.inputs = {{DType::c64, {3, 5}}}, .tolerance = exact, .gradient = false}},
  };
}

}  // namespace

constinit const Op<TransposeAttrs> transpose_op{{
    .name = "transpose",
    .doc = "The axes in another order: result axis i is operand axis `order`[i]. Any element type. Gradient: the "
           "inverse permutation.",
    .infer = transpose_infer,
    .vjp = transpose_vjp,
    .reference = transpose_reference,
    .cases = transpose_cases,
    .failures =
        [] {
          return std::vector<Failure<TransposeAttrs>>{
              {{{0, 0}}, {{DType::f32, {2, 3}}}, "axis 0 is listed twice"},
              {{{0, 2}}, {{DType::f32, {2, 3}}}, "axis 2 is out of range for rank 2"},
              {{{0}}, {{DType::f32, {2, 3}}}, "an order of 1 axes is given for rank 2"},
          };
        },
}};

Value transpose(Value x, std::vector<Index> order) {
  std::vector<Index> same(order.size());
  std::iota(same.begin(), same.end(), Index{0});
  if (order == same && x.rank() == static_cast<Index>(order.size())) return x;
  return x.builder->emit_one(transpose_op, TransposeAttrs{std::move(order)}, {x});
}

Value transpose_last(Value x) {
  require(x.rank() >= 2, "rank {} has no last two axes", x.rank());
  std::vector<Index> order(static_cast<std::size_t>(x.rank()));
  std::iota(order.begin(), order.end(), Index{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, std::move(order));
}

std::span<const OpDef* const> transpose_ops() {
  static constexpr const OpDef* ops[] = {&transpose_op};
  return ops;
}

}  // namespace rlx
