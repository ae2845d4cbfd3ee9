// Tensors without elements whose other extents are enormous: every op ends at once.
#include <gtest/gtest.h>

#include "all_ops.h"
#include "core/error.h"
#include "runtime/evaluate.h"

namespace rlx {
namespace {

constexpr Index huge = Index{1} << 40;

void expect_shape(const std::function<Value(Value)>& make, std::vector<Index> in, const std::vector<Index>& out) {
  Builder b;
  const Value x = b.input("x", {DType::f32, std::vector<Dim>(in.begin(), in.end())});
  const Graph g = b.finish({make(x)});
  const Tensor t[] = {Tensor(DType::f32, std::move(in))};
  EXPECT_EQ(evaluate(g, t)[0].shape(), out);
}

TEST(Empty, EnormousExtentsBesideAZero) {
  expect_shape([](Value x) { return softmax(x, 1); }, {huge, 0}, {huge, 0});
  expect_shape([](Value x) { return log_softmax(x, 0); }, {0, huge}, {0, huge});
  expect_shape([](Value x) { return cumsum(x, 1); }, {huge, 0}, {huge, 0});
  expect_shape([](Value x) { return topk(x, Dim(0), 1).values; }, {huge, 3, 0}, {huge, 0, 0});
  expect_shape([](Value x) { return concat({x, x}, 1); }, {huge, 0}, {huge, 0});
  expect_shape([](Value x) { return gather(x, constant(*x.builder, {0, 1}), 1); }, {huge, 3, 0}, {huge, 2, 0});
  expect_shape([](Value x) { return exp(x) + x; }, {huge, 0}, {huge, 0});
  expect_shape([](Value x) { return transpose(x, {1, 0}); }, {huge, 0}, {0, huge});
  expect_shape([](Value x) { return slice(x, 0, 0, 2); }, {huge, 0}, {2, 0});
  expect_shape([](Value x) { return matmul(x, x, {.transpose_b = true}); }, {0, huge}, {0, 0});
  expect_shape([](Value x) { return matmul(x, x, {.transpose_b = true}); }, {huge, 0, 3}, {huge, 0, 0});
  expect_shape([](Value x) { return layer_norm(x, NormAttrs{}); }, {huge, 0, 4}, {huge, 0, 4});
  expect_shape([](Value x) { return attention(x, x, x, {}); }, {huge, 2, 0, 2}, {huge, 2, 0, 2});
  expect_shape([](Value x) { return log_sum_exp(x, {0}); }, {huge, 0}, {0});
  expect_shape([](Value x) { return argmax(x, 0); }, {huge, 0}, {0});
  expect_shape([](Value x) { return sum(x, {0}); }, {huge, 0}, {0});
  expect_shape([](Value x) { return reshape(x, {Dim(0)}); }, {huge, 0}, {0});
}

TEST(Empty, ResultsThatDoNotFitAreErrors) {
  Builder b;
  const Value x = b.input("x", {DType::f32, {Dim(Index{1} << 60), 0}});
  const Graph g = b.finish({sum(x, {1})});
  const Tensor t[] = {Tensor(DType::f32, {Index{1} << 60, 0})};
  EXPECT_THROW(evaluate(g, t), Error);
}

}  // namespace
}  // namespace rlx
