// Products by the step makers of matmul, graphs of them node by node, and parts of matrices to compare with.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "passes/passes.h"
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

// Outputs of a graph, every node by its step.
inline std::vector<Tensor> by_steps(const Graph& g, std::span<const Tensor> inputs, const DimEnv& dims,
                                    unsigned pieces) {
  std::map<Operand, Tensor> values;
  for (std::size_t i = 0; i < inputs.size(); ++i) values[{g.inputs[i], 0}] = inputs[i];
  for (Id id = 0; id < g.nodes.size(); ++id) {
    const Node& n = g.nodes[id];
    if (is_input(n)) continue;
    if (n.op == &constant_op) {
      values[{id, 0}] = n.attrs.as<ConstantAttrs>().data;
      continue;
    }
    std::vector<Tensor> operands;
    for (const Operand o : n.operands) operands.push_back(values.at(o));
    std::string why;
    const auto out = run_node(g, id, operands, dims, cpu_makers(), {.pieces = pieces}, &why);
    EXPECT_TRUE(out) << n.op->name() << ": " << why;
    if (!out) return {};
    for (std::uint32_t r = 0; r < out->size(); ++r) values[{id, r}] = (*out)[r];
  }
  std::vector<Tensor> outputs;
  for (const Operand o : g.outputs) outputs.push_back(values.at(o));
  return outputs;
}

// At every level: the steps of `fused`, a graph with one output, give the bits of those of `plain`.
inline void expect_same_bits_by_steps(const Graph& fused, const Graph& plain, std::span<const Tensor> inputs,
                                      const DimEnv& dims) {
  at_every_level([&] {
    const std::vector<Tensor> want = by_steps(plain, inputs, dims, 0);
    ASSERT_EQ(want.size(), 1U);
    for (const unsigned pieces : {0u, 3u}) {
      const std::vector<Tensor> got = by_steps(fused, inputs, dims, pieces);
      ASSERT_EQ(got.size(), 1U);
      EXPECT_TRUE(identical(got[0], want[0]));
    }
  });
}

// The graph with its products fused with what follows them.
inline Graph fused_by_pass(const Graph& g) {
  DeviceInfo device;
  const CompileOptions options;
  Report report;
  PassContext context{.device = device, .options = options, .report = report};
  return fuse_matmul(g, context);
}

}  // namespace rlx::test
