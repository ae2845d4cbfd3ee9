// Quantised operators of the domain com.microsoft.
#include "core/error.h"
#include "io/onnx/importer.h"
#include "io/onnx/quantized.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/quantize/quantize.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

Value single(Value v) {
  require(v.type().count() == Dim(1), "scale or zero point is {}, expected one element", v.type().text());
  return reshape(v, {});
}
std::optional<Value> single(std::optional<Value> v) { return v ? std::optional(single(*v)) : v; }

// The number of operands `i` (codes), `i` + 1 (scale) and `i` + 2 (zero point, which may be left out).
Value number(NodeArgs& n, std::size_t i) {
  return dequantize(n[i], single(n[i + 1]), single(n.optional(i + 2)), {DType::f32, 0, 0});
}
// Codes with the scale of operand `i` and the zero point of the one behind it.
Values coded(NodeArgs& n, Value y, std::size_t i, DType type) {
  return {quantize(y, single(n[i]), single(n.optional(i + 1)), {type, 0, 0})};
}

Values quantize_by_axis(NodeArgs& n) {
  n.expect(2, 3);
  const QuantizeAttrs a{n.has(2) ? n[2].dtype() : DType::u8,
                        n.given("axis") ? axis_of(n.integer("axis"), n[0].rank()) : 0, 0};
  require(n[1].type().count() == Dim(1) || n.given("axis"), "scale is {}, and there is no axis", n[1].type().text());
  return {quantize(n[0], n[1], n.optional(2), a)};
}

Values dequantize_by_axis(NodeArgs& n) {
  n.expect(2, 3);
  const QuantizeAttrs a{n[1].dtype(), n.given("axis") ? axis_of(n.integer("axis"), n[0].rank()) : 0, 0};
  require(n[1].type().count() == Dim(1) || n.given("axis"), "scale is {}, and there is no axis", n[1].type().text());
  return {dequantize(n[0], n[1], n.optional(2), a)};
}

Values qlinear_add(NodeArgs& n) {
  n.expect(7, 8);
  const Value a = number(n, 0), b = number(n, 3);
  return coded(n, a + b, 6, n[0].dtype());
}

Values qlinear_mul(NodeArgs& n) {
  n.expect(7, 8);
  const Value a = number(n, 0), b = number(n, 3);
  return coded(n, a * b, 6, n[0].dtype());
}

Values qlinear_sigmoid(NodeArgs& n) {
  n.expect(4, 5);
  return coded(n, sigmoid(number(n, 0)), 3, n[0].dtype());
}

Values qlinear_leaky_relu(NodeArgs& n) {
  n.expect(4, 5);
  const Value x = number(n, 0), below = x * like(x, n.real("alpha", 0.01F));
  return coded(n, select(less(x, like(x, 0)), below, x), 3, n[0].dtype());
}

Values qlinear_softmax(NodeArgs& n) {
  n.expect(5, 5);
  const Index axis = axis_of(n.integer("axis", -1), n[0].rank()), opset = n.integer("opset", 13);
  require(opset >= 13 || axis == n[0].rank() - 1, "opset {} with axis {} of rank {} is not supported", opset, axis,
          n[0].rank());
  return coded(n, softmax(number(n, 0), axis), 3, n[0].dtype());
}

Values qlinear_global_average(NodeArgs& n) {
  n.expect(5, 5);
  const bool last = n.integer("channels_last", 0) != 0;
  require(n[0].rank() >= 3, "operand is {}, expected rank 3 or more", n[0].type().text());
  std::vector<Index> axes;
  for (Index i = last ? 1 : 2; i < n[0].rank() - (last ? 1 : 0); ++i) axes.push_back(i);
  return coded(n, mean(number(n, 0), axes, true), 3, n[0].dtype());
}

Values qlinear_where(NodeArgs& n) {
  n.expect(9, 9);
  const Value x = number(n, 1), y = number(n, 4);
  return coded(n, select(n[0], x, y), 7, n[1].dtype());
}

Values qlinear_concat(NodeArgs& n) {
  require(n.count() >= 5 && (n.count() - 2) % 3 == 0, "{} operands are given, expected 2 and 3 for every tensor",
          n.count());
  Values parts;
  for (std::size_t i = 2; i < n.count(); i += 3) parts.push_back(number(n, i));
  return coded(n, concat(parts, axis_of(n.integer("axis"), parts[0].rank())), 0, n[1].dtype());
}

// Codes of the product in i32, as numbers.
Value scaled(Value sums, Value a, Value a_scale, Value b_scale, std::optional<Value> bias) {
  const Value y = cast(sums, DType::f32) * (*row_parameter(a, a_scale) * b_scale);
  return bias ? y + *bias : y;
}

Values matmul_integer_to_float(NodeArgs& n) {
  n.expect(4, 7);
  const Value sums = matmul_integer(n[0], n[1], row_parameter(n[0], n.optional(4)), n.optional(5));
  return {scaled(sums, n[0], n[2], n[3], n.optional(6))};
}

Values dynamic_quantize_matmul(NodeArgs& n) {
  n.expect(3, 5);
  const DynamicCodes a = quantize_dynamically(n[0]);
  const Value sums = matmul_integer(a.codes, n[1], a.zero, n.optional(3));
  return {scaled(sums, a.codes, a.scale, n[2], n.optional(4))};
}

Values qgemm(NodeArgs& n) {
  n.expect(6, 9);
  const double alpha = n.real("alpha", 1);
  const Value a = n.integer("transA", 0) != 0 ? transpose_last(n[0]) : n[0];
  const Value b = n.integer("transB", 0) != 0 ? transpose_last(n[3]) : n[3];
  Value sums = matmul_integer(a, b, single(n[2]), n.optional(5));
  if (n.has(6)) sums = sums + n[6];
  const Value factor = single(n[1]) * n[4], y = cast(sums, DType::f32) * (factor * like(factor, alpha));
  if (!n.has(7)) return {y};
  require(n.has(8), "the scale of the result is given without its zero point");
  return coded(n, y, 7, n[8].dtype());
}

// Bytes that hold codes of `bits` bits, as a tensor of these, [rows,..].
Value codes_of(NodeArgs& n, std::size_t i, Index bits, Index rows) {
  const Tensor* const bytes = n.importer().constant_of(n[i]);
  require(bytes != nullptr && bytes->dtype() == DType::u8, "operand {} is {}, expected constant bytes", i,
          n[i].type().text());
  const DType type = bits == 8 ? DType::u8 : bits == 4 ? DType::u4 : DType::u2;
  const Index columns = rows == 0 ? 0 : bytes->count() / rows * (8 / bits);
  require(rows > 0 && bytes->count() % rows == 0, "operand {} is {}, expected {} rows", i, n[i].type().text(), rows);
  return constant(n.builder(), Tensor(TensorType(type, {rows, columns}), {bytes->plane()}));
}

// Zero points as floats, one a block.
Value zero_points(NodeArgs& n, Index bits, Index rows, Index blocks) {
  if (!n.has(3)) return constant(n.builder(), DType::f32, static_cast<double>(Index{1} << (bits - 1)));
  if (n[3].dtype() != DType::u8) return reshape(cast(n[3], DType::f32), {rows, blocks});
  const Value packed = codes_of(n, 3, bits, rows);
  return cast(slice(packed, 1, 0, blocks), DType::f32);
}

Values matmul_nbits(NodeArgs& n) {
  n.expect(3, 6);
  n.ignore("accuracy_level");  // allows less precision
  const Index inner = n.integer("K"), rows = n.integer("N"), block = n.integer("block_size"),
              bits = n.integer("bits", 4);
  require(bits == 2 || bits == 4 || bits == 8, "bits is {}, expected 2, 4 or 8", bits);
  constexpr Index most = Index{1} << 40;
  require(inner > 0 && rows > 0 && block > 0 && inner <= most && rows <= most && block <= most,
          "K is {}, N is {}, block_size is {}, expected 1 to {}", inner, rows, block, most);
  require(n.integer("weight_prepacked", 0) == 0, "weight_prepacked is not 0");
  require(!n.has(4), "operand 4, g_idx, is not supported");
  const Index blocks = (inner + block - 1) / block;
  const Value codes = codes_of(n, 1, bits, rows);
  require(codes.dim(1) == Dim(blocks * block), "weights are {}, expected {} blocks of {} codes a row",
          n[1].type().text(), blocks, block);
  const Value scale = reshape(cast(n[2], DType::f32), {rows, blocks, 1});
  Value zero = zero_points(n, bits, rows, blocks);
  if (zero.rank() > 0) zero = reshape(zero, {rows, blocks, 1});
  Value w = (cast(reshape(codes, {rows, blocks, block}), DType::f32) - zero) * scale;
  w = cast(slice(reshape(w, {rows, blocks * block}), 1, 0, inner), n[0].dtype());
  const Value y = matmul(n[0], w, {false, true});
  return {n.has(5) ? y + n[5] : y};
}

}  // namespace

OperatorRows microsoft_quantized_rows() {
  static constexpr OperatorRow rows[] = {
      {"QuantizeLinear", 1, quantize_by_axis},
      {"DequantizeLinear", 1, dequantize_by_axis},
      {"QLinearAdd", 1, qlinear_add},
      {"QLinearMul", 1, qlinear_mul},
      {"QLinearSigmoid", 1, qlinear_sigmoid},
      {"QLinearLeakyRelu", 1, qlinear_leaky_relu},
      {"QLinearSoftmax", 1, qlinear_softmax},
      {"QLinearGlobalAveragePool", 1, qlinear_global_average},
      {"QLinearWhere", 1, qlinear_where},
      {"QLinearConcat", 1, qlinear_concat},
      {"QGemm", 1, qgemm},
      {"MatMulIntegerToFloat", 1, matmul_integer_to_float},
      {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul},
      {"MatMulNBits", 1, matmul_nbits},
  };
  return rows;
}

}  // namespace rlx::onnx
