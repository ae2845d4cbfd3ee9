// take_along: copies elements by their bits.
#include "ops/take_along/take_along.h"

#include <utility>

#include "core/error.h"
#include "core/walk.h"
#include "ir/at_most.h"
#include "ops/gather/indices.h"
#include "ops/scatter_add_along/scatter_add_along.h"

namespace rlx {

namespace {

TensorType take_along_infer(const TakeAlongAttrs& a, InferContext& c) {
  require(c.in.size() == 2, "{} operands are given, expected 2", c.in.size());
  const TensorType &x = c.in[0], &indices = c.in[1];
  require(!x.encoding, "an encoded tensor {} is not taken from, dequantise it", x.text());
  require_indices(indices);
  require(indices.rank() == x.rank(), "indices of rank {} are given for rank {}", indices.rank(), x.rank());
  const Index axis = x.axis(a.axis);
  for (Index i = 0; i < x.rank(); ++i) {
    if (i != axis) at_most(c, indices.dim(i), x.dim(i), fmt::format("size of the indices along axis {}", i));
  }
  if (c.value(1)) check_known_indices(*c.value(1), axis, x.dim(axis));
  return {x.dtype, indices.dims};
}

void take_along_reference(const TakeAlongAttrs& a, const RefArgs& r) {
  const auto axis = static_cast<std::size_t>(r.in[0].type().axis(a.axis));
  const std::vector<Index> at = positions(r.in[1], static_cast<Index>(axis), r.in[0].shape()[axis]);
  std::vector<Index> strides = row_major_strides(r.in[0].shape());
  const Index stride = std::exchange(strides[axis], 0);
  Index i = 0;
  walk<1>(r.out[0].shape(), {strides}, [&](const auto& other) {
    r.out[0].set_code(i, r.in[0].code(other[0] + at[static_cast<std::size_t>(i)] * stride));
    ++i;
  });
}

std::vector<Case<TakeAlongAttrs>> take_along_cases() {
  const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16), n = Dim::symbol("N", 4, 16);
  std::vector<Case<TakeAlongAttrs>> cases;
  const auto add = [&](Index axis, CaseInput x, CaseInput indices, std::vector<double> out) {
    cases.push_back(
        {{axis},
         {.inputs = {std::move(x), std::move(indices)}, .expected = {std::move(out)}, .expected_tolerance = exact}});
  };
  const CaseInput six = CaseInput(DType::f32, {2, 3}).filled({1, 2, 3, 4, 5, 6});
  add(1, six, CaseInput(DType::i64, {2, 2}).filled({2, 0, -1, 1}), {3, 1, 6, 5});
  add(0, six, CaseInput(DType::i32, {2, 3}).filled({1, 0, 1, -1, -2, 0}), {4, 2, 6, 4, 2, 3});
  add(0, six, CaseInput(DType::i64, {3, 2}).filled({0, 1, 1, 1, 0, 0}), {1, 5, 4, 5, 1, 2});
  add(-1, six, CaseInput(DType::i64, {1, 4}).filled({0, 0, 2, 2}), {1, 1, 3, 3});
  add(0, six, CaseInput(DType::i64, {0, 3}), {});
  add(0, CaseInput(DType::f32, {0}), CaseInput(DType::i64, {0}), {});
  add(0, CaseInput(DType::i64, {3}).filled({788, 5, 1e12}), CaseInput(DType::i64, {2}).filled({2, 0}), {1e12, 788});
  add(0, CaseInput(DType::f64, {3}).filled({788, 5, 1e12}), CaseInput(DType::i64, {2}).filled({2, 0}), {1e12, 788});
  cases.back().common.gradient = false;
  add(0, CaseInput(DType::i32, {3}).filled({788, 5, 16777217}), CaseInput(DType::i64, {2}).filled({2, 0}),
      {16777217, 788});
  cases.back().common.other_dtypes = false;
  add(0, CaseInput(DType::boolean, {3}).filled({1, 0, 1}), CaseInput(DType::i64, {2}).filled({1, 0}), {0, 1});
  add(0, CaseInput(DType::i4, {3}).filled({-8, 7, 1}), CaseInput(DType::i32, {4}).filled({1, 0, 1, 2}), {7, -8, 7, 1});
  add(0, CaseInput(DType::u2, {3}).filled({3, 0, 2}), CaseInput(DType::i32, {5}).filled({2, 2, 0, 1, 0}),
      {2, 2, 3, 0, 3});
  const auto more = [&](Index axis, CaseInput x, CaseInput indices, DimEnv dims = {}) {
    cases.push_back({{axis}, {.inputs = {std::move(x), std::move(indices)}, .dims = std::move(dims)}});
  };
  more(1, {DType::f32, {b, n, 3}}, CaseInput(DType::i64, {b, s, 3}).range(-4, 3), {{"B", 2}, {"N", 5}, {"S", 7}});
  more(0, {DType::f32, {n, b}}, CaseInput(DType::i32, {5, s}).range(-4, 3), {{"B", 3}, {"S", 2}});
  more(-2, {DType::f32, {2, 7, 3}}, CaseInput(DType::i64, {2, 11, 3}).range(-7, 6));
  more(0, {DType::c64, {5}}, CaseInput(DType::i64, {3}).range(-5, 4));
  cases.back().common.gradient = false;
  return cases;
}

}  // namespace

constinit const Op<TakeAlongAttrs> take_along_op{{
    .name = "take_along",
    .doc =
        "The elements at the coordinates of the indices, with the coordinate along `axis` replaced by the index, so "
        "that "
        "the result has the indices' sizes. Ranks are equal; along other axes the indices may be smaller. Any element "
        "type; indices i32 or i64, negative ones count from the end; one outside [-size, size) is an Error before "
        "anything is written. Gradient: scatter_add_along. Called GatherElements in ONNX.",
    .infer = take_along_infer,
    .vjp = [](const TakeAlongAttrs& a, const VjpArgs& v) -> Grads {
      return {scatter_add_along(v.dout(), v.in[1], a.axis, v.in[0].type().dims), std::nullopt};
    },
    .reference = take_along_reference,
    .cases = take_along_cases,
    .failures =
        [] {
          return std::vector<Failure<TakeAlongAttrs>>{
              {{0}, {{DType::f32, {3}}}, "1 operands are given, expected 2"},
              {{0}, {{DType::f32, {3}}, {DType::f32, {3}}}, "indices are f32[3], expected i32 or i64"},
              {{0}, {{DType::f32, {3}}, {DType::i64, {3, 1}}}, "indices of rank 2 are given for rank 1"},
              {{1}, {{DType::f32, {3}}, {DType::i64, {3}}}, "axis 1 is out of range for rank 1"},
              {{1}, {{DType::f32, {2, 3}}, {DType::i64, {3, 3}}}, "size of the indices along axis 0: 3 is more than 2"},
          };
        },
}};

Value take_along(Value x, Value indices, Index axis) {
  return x.builder->emit_one(take_along_op, TakeAlongAttrs{axis}, {x, indices});
}

std::span<const OpDef* const> take_along_ops() {
  static constexpr const OpDef* ops[] = {&take_along_op};
  return ops;
}

}  // namespace rlx
