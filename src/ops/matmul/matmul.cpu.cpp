// Steps of matmul on the CPU, alone or with the elementwise ops behind it.
#include "ops/matmul/matmul.h"

#include <algorithm>
#include <map>

#include "ir/outline.h"
#include "ops/matmul/matmul_step.h"

namespace rlx {

namespace {

std::optional<Step> matmul_step(const StepArgs& n) {
  const auto plan = plan_product(n, n.node.attrs.as<MatmulAttrs>(), n.in[0], n.in[1], n.out[0].type);
  if (!plan) return {};
  if (!n.out[0].dense()) return n.decline("matmul writes dense rows");
  StepBuilder s("matmul");
  const auto out = s.write<std::byte>(n.out[0]);
  return product_step(s, *plan, {.out = out});
}

// The body behind the product, as a fusion node of its own: operand 0 is the product.
struct Behind {
  Node node;
  std::vector<Slot> in;
};

Behind behind(const StepArgs& n, const Graph& body, Id product) {
  Builder g;
  Behind b;
  std::map<Operand, Value> made;
  const auto input = [&](Operand from, Slot slot) {
    made.emplace(from, g.input("a" + std::to_string(b.in.size()), body.type(from)));
    b.in.push_back(std::move(slot));
  };
  input({product, 0}, {.type = body.type({product, 0})});
  const auto value = [&](Operand o) {
    if (!made.contains(o)) {  // operands of the product alone are left out
      const auto at = std::ranges::find(body.inputs, o.node) - body.inputs.begin();
      input(o, n.in[static_cast<std::size_t>(at)]);
    }
    return made.at(o);
  };
  for (Id id = 0; id < body.nodes.size(); ++id) {
    const Node& node = body.nodes[id];
    if (is_input(node) || id == product) continue;
    Values operands;
    for (const Operand o : node.operands) operands.push_back(value(o));
    const Values results = g.emit(*node.op, node.attrs, operands, node.bodies, node.instance);
    for (std::uint32_t r = 0; r < results.size(); ++r) made.emplace(Operand{id, r}, results[r]);
  }
  Values outputs;
  for (const Operand o : body.outputs) outputs.push_back(value(o));
  b.node.op = &fusion_op();
  b.node.bodies = {std::make_shared<const Graph>(g.finish(outputs))};
  for (const Slot& s : n.out) b.node.results.push_back(s.type);
  return b;
}

// A body of one product of body inputs, and elementwise ops on it, of its shape.
std::optional<Step> fused_step(const StepArgs& n) {
  const Graph& body = *n.node.bodies[0];
  const auto is_product = [](const Node& node) { return node.op == &matmul_op; };
  if (std::ranges::count_if(body.nodes, is_product) != 1) return n.decline("matmul takes bodies with one matmul");
  const auto product = static_cast<Id>(std::ranges::find_if(body.nodes, is_product) - body.nodes.begin());
  const Node& node = body.nodes[product];
  std::vector<Slot> in;
  for (const Operand o : node.operands) {
    const auto at = std::ranges::find(body.inputs, o.node);
    if (at == body.inputs.end()) return n.decline("operands of a matmul in a body are inputs of the body");
    in.push_back(n.in[static_cast<std::size_t>(at - body.inputs.begin())]);
  }
  for (const Slot& s : n.out) {
    if (s.type.dims != node.results[0].dims) return n.decline("a result has another shape than the matmul");
  }
  const auto plan = plan_product(n, node.attrs.as<MatmulAttrs>(), in[0], in[1], node.results[0]);
  if (!plan) return {};
  StepBuilder s("matmul_fused");
  const Behind rest = behind(n, body, product);
  auto stage = region::make_stage(s, {rest.node, rest.in, n.out, n.why});
  if (!stage) return {};
  return product_step(s, *plan, {.stage = std::move(stage)});
}

}  // namespace

std::span<const MakerRow> matmul_cpu() {
  static const MakerRow rows[] = {{&matmul_op, matmul_step}, {&fusion_op(), fused_step}};
  return rows;
}

}  // namespace rlx
