// Activations, softmax, dropout.
#include <limits>

#include "core/error.h"
#include "io/onnx/attention_parts.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/philox/philox.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"

namespace rlx::onnx {

namespace {

Values swiglu(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0], gate = x * sigmoid(like(x, n.real("alpha", 1)) * x);
  require(n[1].type() == x.type(), "operands are {} and {}, expected the same sizes", x.type().text(),
          n[1].type().text());
  return {gate * n[1]};
}

template <Value (*f)(Value)>
Values unary(NodeArgs& n) {
  n.expect(1, 1);
  return {f(n[0])};
}

Value positive(Value x) { return less(like(x, 0), x); }

Values gelu_operator(NodeArgs& n) {
  n.expect(1, 1);
  const std::string form = n.string("approximate", "none");
  require(form == "none" || form == "tanh", "approximate is {}, expected none or tanh", in_quotes(form));
  return {form == "tanh" ? gelu_tanh(n[0]) : gelu(n[0])};
}

Values leaky_relu(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  return {select(less(x, like(x, 0)), x * like(x, n.real("alpha", 0.01F)), x)};
}

// Before version 7 the slopes are one number, or one for each channel.
Values prelu(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0];
  Value slope = n[1];
  if (n.opset() < 7 && x.rank() > 2 && slope.rank() == 1 && slope.dim(0) != Dim(1)) {
    std::vector<Dim> dims(static_cast<std::size_t>(x.rank() - 1), Dim(1));
    dims[0] = slope.dim(0);
    slope = reshape(slope, dims);
  }
  return {select(less(x, like(x, 0)), x * slope, x)};
}

// alpha (e^x - 1) below 0.
Value bent(Value x, double alpha) {
  const Value below = select(positive(x), like(x, 0), x);
  return select(positive(x), x, like(x, alpha) * expm1(below));
}

Values elu_operator(NodeArgs& n) {
  n.expect(1, 1);
  const double alpha = n.real("alpha", 1);
  return {alpha == 1 ? elu(n[0]) : bent(n[0], alpha)};
}

Values celu(NodeArgs& n) {
  n.expect(1, 1);
  const double alpha = n.real("alpha", 1);
  const Value x = n[0], below = select(positive(x), like(x, 0), x);
  return {select(positive(x), x, like(x, alpha) * expm1(below / like(x, alpha)))};
}

Values selu(NodeArgs& n) {
  n.expect(1, 1);
  const bool first = n.opset() < 6;
  const double alpha = n.real("alpha", first ? 1.6732F : 1.67326319217681884765625),
               gamma = n.real("gamma", first ? 1.0507F : 1.05070102214813232421875);
  return {like(n[0], gamma) * bent(n[0], alpha)};
}

Values thresholded_relu(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  return {select(less(like(x, n.real("alpha", 1)), x), x, like(x, 0))};
}

Values hard_sigmoid_operator(NodeArgs& n) {
  n.expect(1, 1);
  const double alpha = n.real("alpha", 0.2F), beta = n.real("beta", 0.5);
  const Value x = n[0];
  return {minimum(maximum(x * like(x, alpha) + like(x, beta), like(x, 0)), like(x, 1))};
}

Values swish(NodeArgs& n) {
  n.expect(1, 1);
  const double alpha = n.real("alpha", 1);
  const Value x = n[0];
  return {alpha == 1 ? silu(x) : x * sigmoid(like(x, alpha) * x)};
}

}  // namespace

bool is_short(const Dim& size) { return size.is_constant() && size.constant() <= 64; }

Value softmax_of(Value x, Index axis) {
  if (x.dtype() != DType::bf16 || !is_short(x.dim(axis)) || x.dim(axis) == Dim(0)) return softmax(x, axis);
  const Value top = max(x, {axis}, true), hidden = like(x, -std::numeric_limits<double>::infinity());
  const Value powers = exp(x - select(equal(top, hidden), like(x, 0), top));
  Value total = slice(powers, axis, 0, 1);
  for (Index i = 1; i < x.dim(axis).constant(); ++i) total = total + slice(powers, axis, i, i + 1);
  return powers / total;
}

namespace {

// Before version 13 all axes from `axis` on count as one.
template <Value (*f)(Value, Index)>
Values softmax_operator(NodeArgs& n) {
  n.expect(1, 1);
  const Value x = n[0];
  const Index axis = axis_of(n.integer("axis", n.opset() < 13 ? 1 : -1), x.rank());
  if (n.opset() >= 13 || axis == x.rank() - 1) return {f(x, axis)};
  std::vector<Dim> rows(x.type().dims.begin(), x.type().dims.begin() + axis);
  rows.push_back(product(std::span(x.type().dims).subspan(static_cast<std::size_t>(axis))));
  return {reshape(f(reshape(x, rows), -1), x.type().dims)};
}

// In training elements are left out with the given probability, the others grow by as much.
Values training_dropout(NodeArgs& n) {
  const Value x = n[0], training = reshape(n[2], {});
  require(training.dtype() == DType::boolean, "training_mode is {}, expected bool", n[2].type().text());
  const DType wide = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Value ratio = n.has(1) ? cast(reshape(n[1], {}), wide) : constant(n.builder(), wide, 0.5);
  const Value key = n.given("seed")
                        ? philox_key(n.builder(), static_cast<std::uint64_t>(n.integer("seed")), 0)  // no float here
                        : random_key(n);
  const Value numbers = random_uniform(key, philox_start(n.builder()), x.type().dims, wide);
  const Value kept = bitwise_or(bitwise_not(training), less_equal(ratio, numbers));
  const Value scaled = cast(x, wide) / select(training, like(ratio, 1) - ratio, like(ratio, 1));
  return {cast(select(kept, scaled, like(scaled, 0)), x.dtype()), kept};
}

Values dropout(NodeArgs& n) {
  n.expect(1, 3);
  n.ignore("ratio");
  n.ignore("is_test");
  require(n.opset() >= 7 || n.integer("is_test", 0) != 0, "training before version 12 is not supported");
  if (n.has(2)) {
    const auto training = n.importer().known(n[2]);
    if (!training || training->size() != 1 || training->front() != Dim(0)) return training_dropout(n);
  }
  n.ignore("seed");
  if (!n.wants(1)) return {n[0]};
  const DType mask = n.opset() >= 10 ? DType::boolean : n[0].dtype();
  return {n[0], broadcast(constant(n.builder(), mask, 1), n[0].type().dims)};
}

}  // namespace

OperatorRows activation_rows() {
  static constexpr OperatorRow rows[] = {
      {"Relu", 1, unary<relu>},
      {"Tanh", 1, unary<tanh>},
      {"Sigmoid", 1, unary<sigmoid>},
      {"Softplus", 1, unary<softplus>},
      {"Softsign", 1, unary<softsign>},
      {"HardSwish", 14, unary<hard_swish>},
      {"Mish", 18, unary<mish>},
      {"Gelu", 20, gelu_operator},
      {"LeakyRelu", 1, leaky_relu},
      {"PRelu", 1, prelu},
      {"Elu", 1, elu_operator},
      {"Celu", 12, celu},
      {"Selu", 1, selu},
      {"ThresholdedRelu", 10, thresholded_relu},
      {"HardSigmoid", 1, hard_sigmoid_operator},
      {"Swish", 24, swish},
      {"SwiGLU", 28, swiglu},
      {"Softmax", 1, softmax_operator<softmax_of>},
      {"LogSoftmax", 1, softmax_operator<log_softmax>},
      {"Dropout", 1, dropout},
  };
  return rows;
}

}  // namespace rlx::onnx
