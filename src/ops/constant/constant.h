// constant: a tensor that is part of the graph.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct ConstantAttrs {
  Tensor data;
  static void fields(auto& a, auto&& f) { f("data", a.data); }
};
extern const Op<ConstantAttrs> constant_op;

Value constant(Builder& builder, Tensor data);
/// A rank-0 constant.
Value constant(Builder& builder, DType dtype, double value);
/// A rank-0 constant of the element type of `like`; it broadcasts in elementwise ops.
Value like(Value value, double number);
/// A constant i64 vector.
Value constant(Builder& builder, const std::vector<Index>& values);

}  // namespace rlx
