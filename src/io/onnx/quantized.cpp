// Quantisation, and products of quantised tensors.
#include "io/onnx/quantized.h"

#include "core/error.h"
#include "io/onnx/casts.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/quantize/quantize.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

bool one_element(Value scale, Index block) {
  return scale.rank() == 0 || (scale.rank() == 1 && scale.dim(0) == Dim(1) && block == 0);
}

// ONNX ignores the axis where the scale is one element; axis 1 of a vector is then out of range.
QuantizeAttrs attributes(NodeArgs& n, DType to) {
  const Index axis = n.integer("axis", 1), block = n.integer("block_size", 0);
  if (one_element(n[1], block)) return {to, 0, 0};
  return {to, axis_of(axis, n[0].rank()), block};
}

// The type that attribute output_dtype names, if it does.
std::optional<DType> output_type(NodeArgs& n) {
  const Index wanted = n.integer("output_dtype", 0);
  return wanted == 0 ? std::nullopt : std::optional(element_type(wanted));
}

// The zero point in the shape of the scale: one element may be a vector or a scalar.
std::optional<Value> zero_point(NodeArgs& n) {
  if (!n.has(2)) return std::nullopt;
  const bool both = n[1].type().count() == Dim(1) && n[2].type().count() == Dim(1);
  return both ? reshape(n[2], n[1].type().dims) : n[2];
}

// The type that x / scale is computed in.
DType division_type(NodeArgs& n) {
  const Index wanted = n.integer("precision", 0);
  if (wanted != 0) {
    const DType d = element_type(wanted);
    require(is_arithmetic_float(d), "precision is {}, expected a float type of at least 16 bits", name(d));
    return d;
  }
  if (is_arithmetic_float(n[1].dtype())) return n[1].dtype();
  require(n[1].dtype() == DType::e8m0, "scale is {}, expected floats", n[1].type().text());
  return is_arithmetic_float(n[0].dtype()) ? n[0].dtype() : DType::f32;
}

Values quantize_linear(NodeArgs& n) {
  n.expect(2, 3);
  const DType precision = division_type(n), standard = n.has(2) ? n[2].dtype() : DType::u8;
  const DType to = output_type(n).value_or(standard);
  require(!n.has(2) || to == standard, "output_dtype is {}, the zero point {}", name(to), name(standard));
  const bool saturate = n.integer("saturate", 1) != 0;
  const QuantizeAttrs a = attributes(n, to);
  const std::optional<Value> zero = zero_point(n);
  // Scales of 8 bits are powers of two: exact in f32.
  const Value x = cast(n[0], precision), scale = n[1].dtype() == DType::e8m0 ? cast(n[1], DType::f32) : n[1];
  if (saturate || !is_float(to) || bits(to) != 8) {
    if (precision == DType::f32) return {quantize(x, scale, zero, a)};
    // The quotient is rounded to the type asked for, then coded with scale 1.
    const Value quotient = x / spread(a, x, cast(scale, precision));
    if (!zero || one_element(*zero, a.block))
      return {quantize(quotient, constant(n.builder(), DType::f32, 1), zero ? std::optional(reshape(*zero, {})) : zero,
                       {to, 0, 0})};
    const Value ones = broadcast(constant(n.builder(), DType::f32, 1), zero->type().dims);
    return {quantize(quotient, ones, zero, a)};
  }
  const Value quotient = x / spread(a, x, cast(scale, precision));
  return {cast_unsaturated(zero ? quotient + spread(a, x, cast(*zero, precision)) : quotient, to)};
}

Values dequantize_linear(NodeArgs& n) {
  n.expect(2, 3);
  const std::optional<DType> stated = output_type(n);
  require(stated || n[1].dtype() != DType::e8m0, "output_dtype is needed where the scale is {}", n[1].type().text());
  const DType to = stated.value_or(n[1].dtype());
  std::optional<Value> zero = zero_point(n);
  if (n[0].dtype() == DType::i32 && zero) {  // its only allowed value is 0
    const Tensor* const t = n.importer().constant_of(n[2]);
    require(t != nullptr, "the zero point of i32 codes is not a constant");
    for (const std::int64_t v : load<std::int64_t>(*t)) require(v == 0, "the zero point of i32 codes is {}", v);
    zero.reset();
  }
  const Value scale = n[1].dtype() == DType::e8m0 ? cast(n[1], DType::f32) : n[1];
  return {dequantize(n[0], scale, zero, attributes(n, to))};
}

}  // namespace

DynamicCodes quantize_dynamically(Value x) {
  require(x.dtype() == DType::f32, "operand is {}, expected f32", x.type().text());
  std::vector<Index> axes;
  for (Index i = 0; i < x.rank(); ++i) axes.push_back(i);
  const Value none = like(x, 0);
  const Value low = minimum(min(x, axes), none), high = maximum(max(x, axes), none);
  const Value most = like(x, 255), range = (high - low) / most;
  const Value scale = select(equal(range, none), like(x, 1), range);  // of zeros alone, as ONNX Runtime
  const Value zero = cast(minimum(maximum(round((none - low) / scale), none), most), DType::u8);
  return {quantize(x, scale, zero, {DType::u8, 0, 0}), scale, zero};
}

std::optional<Value> row_parameter(Value a, std::optional<Value> p) {
  if (!p || p->rank() != 1 || p->dim(0) == Dim(1)) return p;
  require(a.rank() >= 2 && a.dim(-2) == p->dim(0), "{} is not one element a row of {}", p->type().text(),
          a.type().text());
  return unsqueeze(*p, {1});
}

namespace {

Values dynamic_quantize_linear(NodeArgs& n) {
  n.expect(1, 1);
  const DynamicCodes d = quantize_dynamically(n[0]);
  return {d.codes, d.scale, d.zero};
}

Values matmul_integer_operator(NodeArgs& n) {
  n.expect(2, 4);
  return {matmul_integer(n[0], n[1], row_parameter(n[0], n.optional(2)), n.optional(3))};
}

// (a - za)(b - zb) in i32, times (sa * sb) / sy, rounded to nearest, ties to even, and moved by zy.
Values qlinear_matmul(NodeArgs& n) {
  n.expect(8, 8);
  const Value sums = matmul_integer(n[0], n[3], row_parameter(n[0], n[2]), n[5]);
  const Value a_scale = *row_parameter(n[0], widen(n[1])), b_scale = widen(n[4]), y_scale = widen(n[6]);
  require(y_scale.type().count() == Dim(1) && n[7].type().count() == Dim(1), "scale of the result is {}, expected one",
          y_scale.type().text());
  const Value factor = a_scale * b_scale / reshape(y_scale, {}), x = cast(sums, DType::f32) * factor;
  return {quantize(x, constant(n.builder(), DType::f32, 1), reshape(n[7], {}), {n[7].dtype(), 0, 0})};
}

}  // namespace

OperatorRows quantized_rows() {
  static constexpr OperatorRow rows[] = {
      {"QuantizeLinear", 10, quantize_linear},
      {"DequantizeLinear", 10, dequantize_linear},
      {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
      {"MatMulInteger", 10, matmul_integer_operator},
      {"QLinearMatMul", 10, qlinear_matmul},
  };
  return rows;
}

}  // namespace rlx::onnx
