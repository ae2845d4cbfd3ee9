// Products by the step makers of matmul, and parts of matrices to compare them with.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "run_step.h"

namespace rlx::test {

using Shape = std::vector<Index>;

inline Tensor numbers(DType d, const Shape& shape, unsigned seed) {
  return fill(CaseInput(d, std::vector<Dim>(shape.begin(), shape.end())).range(-2, 3), {}, seed);
}

// The product by the makers; the right operand is a constant of the graph, or an input.
inline Tensor product(const Tensor& a, const Tensor& b, MatmulAttrs attrs = {}, bool constant_right = false,
                      unsigned pieces = 0) {
  Builder g;
  const Value x = g.input("a", a.type()), y = constant_right ? constant(g, b) : g.input("b", b.type());
  const Value c = g.emit_one(matmul_op, attrs, {x, y});
  const Graph graph = g.finish({c});
  const std::vector<Tensor> in{a, b};
  std::string why;
  const auto out = run_node(graph, graph.outputs[0].node, in, {}, cpu_makers(), {.pieces = pieces}, &why);
  EXPECT_TRUE(out) << why;
  return out ? (*out)[0] : Tensor();
}

// Rows [first, first + rows) of a matrix.
inline Tensor rows_of(const Tensor& t, Index first, Index rows) {
  const Index bytes = t.shape()[1] * bits(t.dtype()) / 8;
  Tensor part(t.dtype(), {rows, t.shape()[1]});
  const auto from = t.bytes().subspan(static_cast<std::size_t>(first * bytes), static_cast<std::size_t>(rows * bytes));
  if (!from.empty()) std::memcpy(part.mutable_bytes().data(), from.data(), from.size());
  return part;
}

inline Tensor transposed(const Tensor& t) {
  const Index m = t.shape()[0], n = t.shape()[1];
  Tensor out(t.dtype(), {n, m});
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) out.set_code(j * m + i, t.code(i * n + j));
  }
  return out;
}

}  // namespace rlx::test
