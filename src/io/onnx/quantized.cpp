// Quantisation, and products of quantised tensors.
#include "core/error.h"
#include "io/onnx/importer.h"
#include "io/onnx/tensors.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/quantize/quantize.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

// ONNX ignores the axis where the scale is one element; axis 1 of a vector is then out of range.
QuantizeAttrs attributes(NodeArgs& n, DType to) {
  const Index axis = n.integer("axis", 1), block = n.integer("block_size", 0);
  if (n[1].rank() == 0 || (n[1].rank() == 1 && n[1].dim(0) == Dim(1) && block == 0)) return {to, 0, 0};
  return {to, axis_of(axis, n[0].rank()), block};
}

// The type that attribute output_dtype names, or `standard` where it is 0.
DType output_type(NodeArgs& n, DType standard) {
  const Index wanted = n.integer("output_dtype", 0);
  if (wanted == 0) return standard;
  const auto d = wanted > 0 && wanted < 100 ? dtype_of(static_cast<std::int32_t>(wanted)) : std::nullopt;
  require(d.has_value(), "output_dtype {} is not supported", wanted);
  return *d;
}

Values quantize_linear(NodeArgs& n) {
  n.expect(2, 3);
  n.ignore("saturate");  // of 8-bit floats, which the op refuses
  const Index precision = n.integer("precision", 0);
  require(precision == 0 || precision == 1, "precision {} is not supported, only 1 (FLOAT) is", precision);
  const DType to = output_type(n, n.has(2) ? n[2].dtype() : DType::u8);
  return {quantize(widen(n[0]), n[1], n.optional(2), attributes(n, to))};
}

Values dequantize_linear(NodeArgs& n) {
  n.expect(2, 3);
  const DType to = output_type(n, n[1].dtype());
  std::optional<Value> zero = n.optional(2);
  if (n[0].dtype() == DType::i32 && zero) {  // its only allowed value is 0
    const Tensor* const t = n.importer().constant_of(*zero);
    require(t != nullptr, "the zero point of i32 codes is not a constant");
    for (const std::int64_t v : load<std::int64_t>(*t)) require(v == 0, "the zero point of i32 codes is {}", v);
    zero.reset();
  }
  return {dequantize(n[0], n[1], zero, attributes(n, to))};
}

// Scale and zero point of all elements, from the smallest and the largest one and 0.
Values dynamic_quantize_linear(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  require(x.dtype() == DType::f32, "operand is {}, expected f32", x.type().text());
  std::vector<Index> axes;
  for (Index i = 0; i < x.rank(); ++i) axes.push_back(i);
  const Value none = constant(n.builder(), DType::f32, 0);
  const Value low = minimum(min(x, axes), none), high = maximum(max(x, axes), none);
  const Value most = like(x, 255), range = (high - low) / most;
  const Value scale = select(equal(range, none), like(x, 1), range);  // of zeros alone, as ONNX Runtime
  const Value zero = cast(minimum(maximum(round((none - low) / scale), none), most), DType::u8);
  return {quantize(x, scale, zero, {DType::u8, 0, 0}), scale, zero};
}

// A vector of one number a row becomes a column.
std::optional<Value> row_parameter(Value a, std::optional<Value> p) {
  if (!p || p->rank() != 1 || p->dim(0) == Dim(1)) return p;
  require(a.rank() >= 2 && a.dim(-2) == p->dim(0), "{} is not one element a row of {}", p->type().text(),
          a.type().text());
  return unsqueeze(*p, {1});
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
