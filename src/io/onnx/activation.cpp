// Activations, softmax, dropout as inference.
#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/softmax/softmax.h"

namespace rlx::onnx {

namespace {

template <Value (*f)(Value)>
Values unary(NodeArgs& n) {
  n.expect(1, 1);
  n.ignore("consumed_inputs");
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

Values prelu(NodeArgs& n) {
  n.expect(2, 2);
  const Value x = n[0];
  return {select(less(x, like(x, 0)), x * n[1], x)};
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
  const double alpha = n.real("alpha", 1.67326319217681884765625), gamma = n.real("gamma", 1.05070102214813232421875);
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

Values dropout(NodeArgs& n) {
  n.expect(1, 3);
  n.ignore("ratio");
  n.ignore("seed");
  n.ignore("is_test");
  if (n.has(2)) {
    const auto training = n.importer().known(n[2]);
    const bool off = training && training->size() == 1 && training->front() == Dim(0);
    require(off, "training_mode is not the constant false");
  }
  if (!n.wants(1)) return {n[0]};
  const DType mask = n.opset() >= 10 ? DType::boolean : n[0].dtype();
  return {n[0], broadcast(constant(n.builder(), mask, 1), n[0].type().dims)};
}

}  // namespace

OperatorRows activation_rows() {
  static constexpr OperatorRow rows[] = {
      {"Relu", 6, unary<relu>},
      {"Tanh", 6, unary<tanh>},
      {"Sigmoid", 6, unary<sigmoid>},
      {"Softplus", 1, unary<softplus>},
      {"Softsign", 1, unary<softsign>},
      {"HardSwish", 14, unary<hard_swish>},
      {"Mish", 18, unary<mish>},
      {"Gelu", 20, gelu_operator},
      {"LeakyRelu", 6, leaky_relu},
      {"PRelu", 7, prelu},
      {"Elu", 6, elu_operator},
      {"Celu", 12, celu},
      {"Selu", 6, selu},
      {"ThresholdedRelu", 10, thresholded_relu},
      {"HardSigmoid", 6, hard_sigmoid_operator},
      {"Swish", 24, swish},
      {"Softmax", 1, softmax_operator<softmax>},
      {"LogSoftmax", 1, softmax_operator<log_softmax>},
      {"Dropout", 7, dropout},
  };
  return rows;
}

}  // namespace rlx::onnx
