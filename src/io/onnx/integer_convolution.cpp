// Convolutions of quantised tensors: ConvInteger, QLinearConv.
#include "core/error.h"
#include "io/onnx/window_nodes.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/conv/conv.h"
#include "ops/matmul_integer/matmul_integer.h"
#include "ops/quantize/quantize.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"

namespace rlx::onnx {

namespace {

// Codes and weights of a convolution and their zero points; that of the codes is one element.
struct IntegerConv {
  Value x, w;
  std::optional<Value> x_zero, w_zero;
};

bool is_code(Value v) { return v.dtype() == DType::i8 || v.dtype() == DType::u8; }

// One element a channel of the result, or one in all, as [channels, 1] or [].
Value of_results(Value v, Value w) {
  if (v.type().count() == Dim(1)) return reshape(v, {});
  require(v.rank() == 1 && v.dim(0) == w.dim(0), "{} is not one element a channel of the weight {}", v.type().text(),
          w.type().text());
  return reshape(v, {v.dim(0), 1});
}

// The only element of a constant, if it is one.
std::optional<double> known_zero(NodeArgs& n, const std::optional<Value>& zero) {
  if (!zero) return 0;
  const Tensor* const t = n.importer().constant_of(*zero);
  if (!t || t->count() != 1) return std::nullopt;
  return load<double>(*t)[0];
}

// The windows of the codes, with their zero point as padding, times the weights.
Value by_windows(const IntegerConv& c, const ConvAttrs& a, double zero) {
  const std::vector<Dim>&xs = c.x.type().dims, &ws = c.w.type().dims;
  const Dim inner = product(std::span(ws).subspan(1)), count = product(a.sizes), each = floordiv(ws[0], a.groups);
  const Value columns = reshape(windows(c.x, conv_windows(a, c.w.type()), zero), {xs[0], a.groups, inner, count});
  const Value rows = reshape(c.w, {a.groups, each, inner});
  std::optional<Value> row_zero = c.w_zero, column_zero = c.x_zero;
  if (row_zero) {
    const Value v = of_results(*row_zero, c.w);
    row_zero = v.rank() == 0 ? v : reshape(v, {a.groups, each, 1});
  }
  if (column_zero) column_zero = reshape(*column_zero, {});
  std::vector<Dim> dims{xs[0], ws[0]};
  dims.insert(dims.end(), a.sizes.begin(), a.sizes.end());
  return reshape(matmul_integer(rows, columns, row_zero, column_zero), std::move(dims));
}

// Sums in i32 of (x - zero) * (w - zero); what lies outside of x counts as its zero point.
Value integer_conv(NodeArgs& n, const IntegerConv& c) {
  require(is_code(c.x) && is_code(c.w), "operands are {} and {}, expected i8 or u8", c.x.type().text(),
          c.w.type().text());
  require(!c.x_zero || (c.x_zero->dtype() == c.x.dtype() && c.x_zero->type().count() == Dim(1)),
          "the zero point of x is {}, expected one element of its type", c.x_zero ? c.x_zero->type().text() : "");
  require(!c.w_zero || c.w_zero->dtype() == c.w.dtype(), "the zero point of the weight {} is {}", c.w.type().text(),
          c.w_zero ? c.w_zero->type().text() : "");
  require(c.w.rank() == c.x.rank(), "the weight is {}, expected the rank {} of x", c.w.type().text(), c.x.rank());
  const NodeWindows g = node_windows(n, c.x.type(), {c.w.type().dims.begin() + 2, c.w.type().dims.end()}, false);
  const Windows& s = g.windows;
  const ConvAttrs a{s.strides, s.dilations, s.before, s.sizes, n.integer("group", 1)};
  require(a.groups >= 1, "group is {}, expected 1 or more", a.groups);
  n.builder().check(c.w.dim(1) * a.groups, c.x.dim(1), "channels of the weight times groups, and of x");
  n.builder().check(floordiv(c.w.dim(0), a.groups) * a.groups, c.w.dim(0), "channels of the result and whole groups");
  if (const auto zero = known_zero(n, c.x_zero)) return by_windows(c, a, *zero);
  Value x = cast(c.x, DType::i32), w = cast(c.w, DType::i32);
  x = x - reshape(cast(*c.x_zero, DType::i32), {});
  if (c.w_zero) {
    Value zero = of_results(*c.w_zero, c.w);
    if (zero.rank() > 0) {
      std::vector<Dim> dims(c.w.type().dims.size(), Dim(1));
      dims[0] = c.w.dim(0);
      zero = reshape(zero, std::move(dims));
    }
    w = w - cast(zero, DType::i32);
  }
  return conv(x, w, a);
}

Values conv_integer(NodeArgs& n) {
  n.expect(2, 4);
  return {integer_conv(n, {n[0], n[1], n.optional(2), n.optional(3)})};
}

// (sums + bias) * (x scale * w scale / y scale), rounded to nearest, ties to even, and moved by the zero point of y.
Values qlinear_conv(NodeArgs& n) {
  n.expect(8, 9);
  const Value w = n[3];
  Value sums = integer_conv(n, {n[0], w, n[2], n[5]});
  if (n.has(8)) {
    require(n[8].dtype() == DType::i32, "the bias is {}, expected i32", n[8].type().text());
    sums = sums + along_channels(n[8], sums.rank());
  }
  const auto one = [&](std::size_t i) {
    require(n[i].type().count() == Dim(1), "operand {} is {}, expected one element", i, n[i].type().text());
    return reshape(widen(n[i]), {});
  };
  Value w_scale = of_results(widen(n[4]), w);
  if (w_scale.rank() > 0) w_scale = along_channels(reshape(w_scale, {w.dim(0)}), sums.rank());
  const Value x = cast(sums, DType::f32) * (one(1) * w_scale / one(6));
  require(n[7].type().count() == Dim(1), "operand 7 is {}, expected one element", n[7].type().text());
  return {quantize(x, constant(n.builder(), DType::f32, 1), reshape(n[7], {}), {n[7].dtype(), 0, 0})};
}

}  // namespace

OperatorRows integer_convolution_rows() {
  static constexpr OperatorRow rows[] = {{"ConvInteger", 10, conv_integer}, {"QLinearConv", 10, qlinear_conv}};
  return rows;
}

}  // namespace rlx::onnx
