// iota: coordinates along one axis.
#include "ops/iota/iota.h"

#include "core/error.h"
#include "core/walk.h"

namespace rlx {

namespace {

TensorType iota_infer(const IotaAttrs& a, InferContext& c) {
  require(c.in.empty(), "{} operands are given, expected none", c.in.size());
  require(a.dtype != DType::boolean && !is_complex(a.dtype) && bits(a.dtype) >= 8 && a.dtype != DType::e8m0,
          "coordinates of element type {} are not supported", name(a.dtype));
  TensorType t{a.dtype, a.dims};
  t.axis(a.axis);
  if (is_integer(a.dtype) && a.dims.size() == 1 && a.dims[0].is_constant() && a.dims[0].constant() <= 64) {
    std::vector<Dim> elements;
    for (Index i = 0; i < a.dims[0].constant(); ++i) elements.emplace_back(i);
    c.track(0, std::move(elements));
  }
  return t;
}

void iota_reference(const IotaAttrs& a, const RefArgs& r) {
  const AxisSplit s = split_at(r.out[0].shape(), r.out[0].type().axis(a.axis));
  std::vector<std::int64_t> v(static_cast<std::size_t>(r.out[0].count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<Index>(i) / s.inner % s.extent;
  store(r.out[0], v);
}

}  // namespace

constinit const Op<IotaAttrs> iota_op{{
    .name = "iota",
    .doc = "The coordinate along `axis` of every element of a tensor with sizes `dims`, in a float or integer type of "
           "at least 8 bits; "
           "integers wrap, floats round.",
    .infer = iota_infer,
    .reference = iota_reference,
    .cases =
        [] {
          const Dim b = Dim::symbol("B", 1, 8);
          return std::vector<Case<IotaAttrs>>{
              {{DType::i64, {4}, 0}, {.inputs = {}, .expected = {{0, 1, 2, 3}}, .tolerance = exact}},
              {{DType::f32, {2, 3}, -1}, {.inputs = {}, .expected = {{0, 1, 2, 0, 1, 2}}, .tolerance = exact}},
              {{DType::f16, {2, 3}, 0}, {.inputs = {}, .expected = {{0, 0, 0, 1, 1, 1}}, .tolerance = exact}},
              {{DType::i32, {b, 2}, 0},
               {.inputs = {}, .expected = {{0, 0, 1, 1, 2, 2}}, .tolerance = exact, .dims = {{"B", 3}}}},
              {{DType::i64, {0, 3}, 0}, {.inputs = {}, .tolerance = exact}},
          };
        },
    .failures =
        [] {
          return std::vector<Failure<IotaAttrs>>{
              {{DType::i64, {4}, 1}, {}, "axis 1 is out of range for rank 1"},
              {{DType::boolean, {4}, 0}, {}, "element type bool are not supported"},
          };
        },
}};

Value iota(Builder& builder, DType dtype, std::vector<Dim> dims, Index axis) {
  return builder.emit_one(iota_op, IotaAttrs{dtype, std::move(dims), axis}, {});
}

std::span<const OpDef* const> iota_ops() {
  static constexpr const OpDef* ops[] = {&iota_op};
  return ops;
}

}  // namespace rlx
