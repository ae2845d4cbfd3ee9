// sizes: inference tracks its elements, so that shape arithmetic stays symbolic.
#include "ops/sizes/sizes.h"

#include "core/error.h"

namespace rlx {

constinit const Op<SizesAttrs> sizes_op{{
    .name = "sizes",
    .doc = "The values that the size expressions `dims` have in a run, as i64[n].",
    .infer =
        [](const SizesAttrs& a, InferContext& c) {
          require(c.in.empty(), "{} operands are given, expected none", c.in.size());
          c.track(0, a.dims);
          return TensorType{DType::i64, {Dim(static_cast<Index>(a.dims.size()))}};
        },
    .reference =
        [](const SizesAttrs& a, const RefArgs& r) {
          std::vector<std::int64_t> values;
          for (const Dim& d : a.dims) values.push_back(d.evaluate(r.dims));
          store(r.out[0], values);
        },
    .cases =
        [] {
          const Dim b = Dim::symbol("B", 1, 8), s = Dim::symbol("S", 1, 16);
          return std::vector<Case<SizesAttrs>>{
              {{{Dim(3), Dim(0)}}, {.inputs = {}, .expected = {{3, 0}}, .tolerance = exact}},
              {{{}}, {.inputs = {}, .tolerance = exact}},
              {{{b * 2, max(b, s), floordiv(s, 3)}},
               {.inputs = {}, .expected = {{4, 7, 2}}, .tolerance = exact, .dims = {{"B", 2}, {"S", 7}}}},
          };
        },
}};

Value sizes(Builder& builder, std::vector<Dim> dims) {
  return builder.emit_one(sizes_op, SizesAttrs{std::move(dims)}, {});
}
Value shape_of(Value x) { return sizes(*x.builder, x.type().dims); }

std::span<const OpDef* const> sizes_ops() {
  static constexpr const OpDef* ops[] = {&sizes_op};
  return ops;
}

}  // namespace rlx
