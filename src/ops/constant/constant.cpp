// constant: inference tracks the elements of small integer constants.
#include "ops/constant/constant.h"

#include "core/error.h"

namespace rlx {

static constexpr Index most_tracked = 64;

constinit const Op<ConstantAttrs> constant_op{{
    .name = "constant",
    .doc = "The tensor `data`, of any element type or encoding. Large tensors are shared by storage, not compared by "
           "content.",
    .infer =
        [](const ConstantAttrs& a, InferContext& c) {
          require(c.in.empty(), "{} operands are given, expected none", c.in.size());
          const Tensor& t = a.data;
          const bool small = is_integer(t.dtype()) && t.dtype() != DType::u64 && !t.type().encoding && t.rank() <= 1;
          if (small && t.count() <= most_tracked) {
            std::vector<Dim> elements;
            for (const std::int64_t v : load<std::int64_t>(t)) elements.emplace_back(v);
            c.track(0, std::move(elements));
          }
          return t.type();
        },
    .reference = [](const ConstantAttrs& a, const RefArgs& r) { r.out[0] = a.data; },
    .cases =
        [] {
          return std::vector<Case<ConstantAttrs>>{
              {{Tensor::of<double>(DType::f32, {2, 3}, {1, -2, 0.5, 1e30, 0.1, -0.0})}, {.inputs = {}}},
              {{Tensor::of<double>(DType::f64, {}, {3.25})}, {.inputs = {}, .expected = {{3.25}}}},
              {{Tensor::of<double>(DType::f16, {40}, std::vector<double>(40, 1.5))}, {.inputs = {}}},
              {{Tensor::of<std::int64_t>(DType::i64, {3}, {788, 5, 1000000000000})},
               {.inputs = {}, .expected = {{788, 5, 1e12}}}},
              {{Tensor::of<std::int64_t>(DType::i4, {3}, {-8, 7, 1})}, {.inputs = {}, .expected = {{-8, 7, 1}}}},
              {{Tensor(DType::c64, {2})}, {.inputs = {}}},
              {{Tensor(DType::boolean, {0, 5})}, {.inputs = {}}},
          };
        },
}};

Value constant(Builder& builder, Tensor data) {
  return builder.emit_one(constant_op, ConstantAttrs{std::move(data)}, {});
}
Value constant(Builder& builder, DType dtype, double value) { return constant(builder, Tensor::scalar(dtype, value)); }
Value like(Value value, double number) { return constant(*value.builder, value.dtype(), number); }
Value constant(Builder& builder, const std::vector<Index>& values) {
  return constant(builder, Tensor::of<std::int64_t>(DType::i64, {static_cast<Index>(values.size())}, values));
}

std::span<const OpDef* const> constant_ops() {
  static constexpr const OpDef* ops[] = {&constant_op};
  return ops;
}

}  // namespace rlx
