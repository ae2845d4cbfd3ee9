// broadcast and its adjoint sum_to.
#include "ops/broadcast/broadcast.h"

#include "core/error.h"
#include "core/walk.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"

namespace rlx {

namespace {

TensorType broadcast_infer(const BroadcastAttrs& a, InferContext& c) {
  require(c.in.size() == 1, "{} operands are given, expected 1", c.in.size());
  require(!c.in[0].encoding, "an encoded tensor {} is not broadcast", c.in[0].text());
  const std::vector<Dim>& from = c.in[0].dims;
  require(from.size() <= a.dims.size(), "rank {} does not broadcast to rank {}", from.size(), a.dims.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Dim& to = a.dims[i + a.dims.size() - from.size()];
    if (from[i] != Dim(1)) c.equal(from[i], to, "broadcast");
  }
  if (c.value(0) && a.dims.size() == 1 && a.dims[0].is_constant() && a.dims[0].constant() <= 64 &&
      c.value(0)->size() == 1) {
    c.track(0, std::vector<Dim>(static_cast<std::size_t>(a.dims[0].constant()), c.value(0)->front()));
  }
  return {c.in[0].dtype, a.dims};
}

void broadcast_reference(const BroadcastAttrs&, const RefArgs& r) {
  const auto& shape = r.out[0].shape();
  Index i = 0;
  walk<1>(shape, {broadcast_strides(r.in[0].shape(), shape)},
          [&](const auto& at) { r.out[0].set_code(i++, r.in[0].code(at[0])); });
}

std::vector<Case<BroadcastAttrs>> broadcast_cases() {
  const Dim b = Dim::symbol("B", 1, 8);
  return {
      {{{Dim(2), Dim(3)}},
       {.inputs = {CaseInput(DType::f32, {2, 1}).filled({1, 2})},
        .expected = {{1, 1, 1, 2, 2, 2}},
        .tolerance = exact}},
      {{{Dim(2), Dim(3)}}, {.inputs = {{DType::f32, {3}}}, .tolerance = exact}},
      {{{Dim(2), b, Dim(3), Dim(4)}}, {.inputs = {{DType::f32, {b, 1, 4}}}, .tolerance = exact}},
      {{{Dim(2), Dim(2)}}, {.inputs = {{DType::f32, {}}}, .tolerance = exact}},
      {{{Dim(0), Dim(3)}}, {.inputs = {{DType::f32, {1, 3}}}, .tolerance = exact}},
      {{{Dim(3), Dim(3)}}, {.inputs = {{DType::i4, {3}}}, .tolerance = exact}},
  };
}

}  // namespace

constinit const Op<BroadcastAttrs> broadcast_op{{
    .name = "broadcast",
    .doc = "The operand stretched to sizes `dims` as NumPy does: shapes are right-aligned, axes of the constant size 1 "
           "repeat, new axes "
           "come in front. Any element type. Gradient: the sum over the stretched axes.",
    .infer = broadcast_infer,
    .vjp = [](const BroadcastAttrs&, const VjpArgs& v) -> Grads { return {sum_to(v.dout(), v.in[0].type().dims)}; },
    .reference = broadcast_reference,
    .cases = broadcast_cases,
    .failures =
        [] {
          return std::vector<Failure<BroadcastAttrs>>{
              {{{Dim(3)}}, {{DType::f32, {2}}}, "broadcast: 2 is not 3"},
              {{{Dim(3)}}, {{DType::f32, {1, 3}}}, "rank 2 does not broadcast to rank 1"},
          };
        },
}};

Value broadcast(Value x, std::vector<Dim> dims) {
  if (x.type().dims == dims) return x;
  return x.builder->emit_one(broadcast_op, BroadcastAttrs{std::move(dims)}, {x});
}

Value sum_to(Value x, const std::vector<Dim>& dims) {
  const std::vector<Dim> from = x.type().dims;
  if (from == dims) return x;
  const std::size_t padded = from.size() - dims.size();
  std::vector<Index> axes;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool stretched = i < padded || (dims[i - padded] == Dim(1) && from[i] != Dim(1));
    if (stretched) axes.push_back(static_cast<Index>(i));
  }
  return reshape(sum(x, axes, true), dims);
}

std::span<const OpDef* const> broadcast_ops() {
  static constexpr const OpDef* ops[] = {&broadcast_op};
  return ops;
}

}  // namespace rlx
