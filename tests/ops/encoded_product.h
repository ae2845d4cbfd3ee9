// One product by an encoded matrix as its step computes it.
#pragma once

#include <gtest/gtest.h>

#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "run_step.h"

namespace rlx::test {

/// x [.., k] times w [n, k]; w is a constant, which kernels may pack, or an operand.
inline Tensor run_product(const Tensor& x, const Tensor& w, bool packed = true, unsigned pieces = 0) {
  Builder g;
  const Value a = g.input("x", x.type()), b = packed ? constant(g, w) : g.input("w", w.type());
  const Graph graph = g.finish({matmul(a, b, {false, true})});
  const std::vector<Tensor> in{x, w};
  std::string why;
  const auto out = run_node(graph, graph.outputs[0].node, in, {}, cpu_makers(), {.pieces = pieces}, &why);
  EXPECT_TRUE(out) << why;
  return out ? (*out)[0] : Tensor();
}

}  // namespace rlx::test
