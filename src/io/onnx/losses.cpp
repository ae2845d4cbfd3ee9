// Losses over class labels, and the position of the largest element as ones and zeros.
#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/arg_reduce/arg_reduce.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/softmax/softmax.h"
#include "ops/take_along/take_along.h"

namespace rlx::onnx {

namespace {

std::vector<Index> all_axes(Value x) {
  std::vector<Index> axes;
  for (Index i = 0; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

// The negative logarithm of the labels' probabilities, weighted by class; labels that are ignored weigh nothing.
// `x` holds logarithms [N,C,…], the labels are [N,…].
Value label_loss(NodeArgs& n, Value x) {
  const std::string reduction = n.string("reduction", "mean");
  require(reduction == "mean" || reduction == "sum" || reduction == "none",
          "reduction is {}, expected mean, sum or none", in_quotes(reduction));
  require(x.rank() >= 2, "operand is {}, expected rank 2 or more", x.type().text());
  const Value labels = n[1];
  require(is_integer(labels.dtype()) && labels.rank() == x.rank() - 1, "labels are {}, expected integers of rank {}",
          labels.type().text(), x.rank() - 1);
  Value label = cast(labels, DType::i64);
  std::optional<Value> ignored;
  if (n.given("ignore_index")) {
    const Index index = n.integer("ignore_index");
    ignored = equal(label, constant(n.builder(), Tensor::of<std::int64_t>(DType::i64, {}, {index})));
    label = select(*ignored, like(label, 0), label);
  }
  Value loss = -squeeze(take_along(x, unsqueeze(label, {1}), 1), {1});
  std::optional<Value> weight;
  if (n.has(2)) weight = gather(n[2], label);
  if (weight) loss = loss * *weight;
  if (ignored) {
    loss = select(*ignored, like(loss, 0), loss);
    weight = select(*ignored, like(x, 0), weight ? *weight : broadcast(like(x, 1), label.type().dims));
  }
  if (reduction == "none") return loss;
  if (reduction == "mean" && !weight) return mean(loss, all_axes(loss));
  const Value total = sum(loss, all_axes(loss));
  return reduction == "sum" ? total : total / sum(*weight, all_axes(*weight));
}

Values negative_log_likelihood(NodeArgs& n) {
  n.expect(2, 3);
  return {label_loss(n, n[0])};
}

Values softmax_cross_entropy(NodeArgs& n) {
  n.expect(2, 3);
  require(n[0].rank() >= 2, "operand is {}, expected rank 2 or more", n[0].type().text());
  const Value logarithms = log_softmax(n[0], 1);
  return {label_loss(n, logarithms), logarithms};
}

// 1 at the first largest element along the axis; before version 13 all axes from `axis` on count as one.
Values hardmax(NodeArgs& n) {
  n.expect(1, 1);
  Value x = n[0];
  Index axis = axis_of(n.integer("axis", n.opset() < 13 ? 1 : -1), x.rank());
  const std::vector<Dim> dims = x.type().dims;
  if (n.opset() < 13) {
    const auto split = std::span(dims).first(static_cast<std::size_t>(axis));
    x = reshape(x, {product(split), product(std::span(dims).subspan(split.size()))});
    axis = 1;
  }
  std::vector<Dim> along(x.type().dims.size(), Dim(1));
  along[static_cast<std::size_t>(axis)] = x.dim(axis);
  const Value hit = equal(iota(n.builder(), DType::i64, along, axis), argmax(x, axis, true));
  return {reshape(cast(hit, x.dtype()), dims)};
}

}  // namespace

OperatorRows loss_rows() {
  static constexpr OperatorRow rows[] = {
      {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood},
      {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy},
      {"Hardmax", 1, hardmax},
  };
  return rows;
}

}  // namespace rlx::onnx
