// Runs whole graphs node by node as steps of the CPU.
#pragma once

#include "core/error.h"
#include "ops/constant/constant.h"
#include "run_step.h"

namespace rlx::test {

/// Every node as one step. Throws Error where all makers decline.
inline std::vector<Tensor> run_steps(const Graph& g, std::span<const Tensor> inputs, const StepRun& how = {},
                                     const DimEnv& more = {}) {
  const DimEnv dims = bind_dims(g, inputs, more);
  std::vector<std::vector<Tensor>> values(g.nodes.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) values[g.inputs[i]] = {inputs[i]};
  for (Id i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (is_input(n)) continue;
    if (n.op == &constant_op) {
      values[i] = {n.attrs.as<ConstantAttrs>().data};
      continue;
    }
    std::vector<Tensor> operands;
    for (const Operand o : n.operands) operands.push_back(values[o.node][o.result]);
    std::string why;
    auto made = run_node(g, i, operands, dims, cpu_makers(), how, &why);
    require(made.has_value(), "{}: {}", describe(g, i), why);
    values[i] = std::move(*made);
  }
  std::vector<Tensor> out;
  for (const Operand o : g.outputs) out.push_back(values[o.node][o.result]);
  return out;
}

}  // namespace rlx::test
