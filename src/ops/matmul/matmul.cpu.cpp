// Steps of matmul on the CPU, alone or with the elementwise ops behind it.
#include "ops/matmul/matmul.h"

#include <algorithm>

#include "ir/outline.h"
#include "ops/matmul/coded_step.h"
#include "ops/matmul/encoded_step.h"
#include "ops/matmul/product_body.h"
#include "ops/scalar/blocks.h"

namespace rlx {

namespace {

// A plan's step that writes to memory.
template <class Plan>
std::optional<Step> plain_step(const StepArgs& n, const char* name, const std::optional<Plan>& plan,
                               Step (*make)(StepBuilder&, const Plan&, ProductEnd)) {
  if (!plan) return {};
  if (!n.out[0].dense()) return n.decline("matmul writes dense rows");
  StepBuilder s(name);
  const auto out = s.write<std::byte>(n.out[0]);
  return make(s, *plan, {.out = out});
}

std::optional<Step> matmul_step(const StepArgs& n) {
  const auto& attrs = n.node.attrs.as<MatmulAttrs>();
  const Slot &a = n.in[0], &b = n.in[1];
  const TensorType& result = n.out[0].type;
  if (b.type.encoding && a.type.encoding) {
    return plain_step(n, "matmul_coded", plan_coded_product(n, attrs, a, b, result), coded_step);
  }
  if (b.type.encoding) {
    return plain_step(n, "matmul_encoded", plan_encoded_product(n, attrs, a, b, result), encoded_step);
  }
  return plain_step(n, "matmul", plan_product(n, attrs, a, b, result), product_step);
}

// A bias that the kernel can add, which is then taken from the body: of the product's type; for halves of f32, between
// casts to f32 and, perhaps, back.
std::optional<ProductBias> take_bias(StepBuilder& s, ProductBody& body) {
  const Id product = body.last();
  const DType type = body.graph().nodes[product].results[0].dtype;
  const bool half = type == DType::f16 || type == DType::bf16;
  const Id wide = half ? body.next(product, "cast") : product;
  if (wide == ProductBody::none) return {};
  const DType sum = body.graph().nodes[wide].results[0].dtype;
  if (half && sum != DType::f32) return {};
  const Id plus = body.next(wide, "add");
  const Slot* const bias = plus == ProductBody::none ? nullptr : body.other(plus, wide, sum);
  if (!bias || !body.is_columns(*bias)) return {};
  if (half) body.take(wide);
  body.take(plus);
  const Id back = half ? body.next(plus, "cast") : ProductBody::none;
  const bool rounds = back != ProductBody::none && body.graph().nodes[back].results[0].dtype == type;
  if (rounds) body.take(back);
  return ProductBias{s.read<std::byte>(*bias), sum, !half || rounds};
}

// What becomes of the results of a product with a body behind it.
std::optional<ProductEnd> end_of(StepBuilder& s, ProductBody& body, const StepArgs& n, bool takes_bias) {
  ProductEnd end;
  if (takes_bias) end.bias = take_bias(s, body);
  if (body.is_done() && n.out[0].dense()) {
    end.out = s.write<std::byte>(n.out[0]);
    return end;
  }
  const auto [rest, slots] = body.rest();
  end.stage = region::make_stage(s, {rest, slots, n.out, n.why});
  if (!end.stage) return {};
  return end;
}

// A body of two products of one value, activate(first) * second.
std::optional<Step> joined_step(const StepArgs& n, const Graph& g) {
  const auto product = [&g](Operand o) { return g.nodes[o.node].op == &matmul_op ? &g.nodes[o.node] : nullptr; };
  const Node& last = g.nodes[g.outputs[0].node];
  if (n.out.size() != 1 || !n.out[0].dense() || last.op->name() != "mul" || g.nodes.size() != g.inputs.size() + 4)
    return n.decline("two products are joined by an activation and mul");
  const bool swapped = product(last.operands[0]) != nullptr;
  const Node* const second = product(last.operands[swapped ? 0 : 1]);
  const Node& active = g.nodes[last.operands[swapped ? 1 : 0].node];
  const Node* const first = active.operands.size() == 1 ? product(active.operands[0]) : nullptr;
  const auto activate = find_block(*active.op, DType::f32);
  if (!first || !second || first == second || !activate || !(active.op->traits() & elementwise) ||
      first->operands[0] != second->operands[0] || first->attrs != second->attrs)
    return n.decline("two products are joined by an activation and mul");
  const ProductBody body(n, active.operands[0].node);
  const Slot *const a = body.input(first->operands[0]), *const b = body.input(first->operands[1]),
                    *const other = body.input(second->operands[1]);
  if (!a || !b || !other || b->type != other->type || !is_coded(*other))
    return n.decline("operands of two products are inputs of the body, of one type");
  auto plan = plan_coded_product(n, first->attrs.as<MatmulAttrs>(), *a, *b, first->results[0]);
  if (!plan) return {};
  plan->second = *other;
  plan->activate = activate;
  StepBuilder s("matmul_coded_pair");
  const auto out = s.write<std::byte>(n.out[0]);
  return coded_step(s, *plan, {.out = out});
}

// A body of one product of body inputs, and elementwise ops on it, of its shape.
std::optional<Step> fused_step(const StepArgs& n) {
  const Graph& g = *n.node.bodies[0];
  const auto is_product = [](const Node& node) { return node.op == &matmul_op; };
  const auto products = std::ranges::count_if(g.nodes, is_product);
  if (products == 2) return joined_step(n, g);
  if (products != 1) return n.decline("matmul takes bodies with one matmul");
  const auto product = static_cast<Id>(std::ranges::find_if(g.nodes, is_product) - g.nodes.begin());
  const Node& node = g.nodes[product];
  ProductBody body(n, product);
  const Slot *const a = body.input(node.operands[0]), *const b = body.input(node.operands[1]);
  if (!a || !b) return n.decline("operands of a matmul in a body are inputs of the body");
  for (const Slot& s : n.out) {
    if (s.type.dims != node.results[0].dims) return n.decline("a result has another shape than the matmul");
  }
  const auto& attrs = node.attrs.as<MatmulAttrs>();
  if (a->type.encoding) {
    const auto plan = plan_coded_product(n, attrs, *a, *b, node.results[0]);
    if (!plan) return {};
    StepBuilder s("matmul_coded_fused");
    auto end = end_of(s, body, n, true);
    return end ? std::optional(coded_step(s, *plan, std::move(*end))) : std::nullopt;
  }
  if (b->type.encoding) {
    const auto plan = plan_encoded_product(n, attrs, *a, *b, node.results[0]);
    if (!plan) return {};
    StepBuilder s("matmul_encoded_fused");
    auto end = end_of(s, body, n, true);
    return end ? std::optional(encoded_step(s, *plan, std::move(*end))) : std::nullopt;
  }
  const auto plan = plan_product(n, attrs, *a, *b, node.results[0]);
  if (!plan) return {};
  StepBuilder s("matmul_fused");
  auto end = end_of(s, body, n, plan->kernel->takes_bias);
  return end ? std::optional(product_step(s, *plan, std::move(*end))) : std::nullopt;
}

}  // namespace

std::span<const MakerRow> matmul_cpu() {
  static const MakerRow rows[] = {{&matmul_op, matmul_step}, {&fusion_op(), fused_step}};
  return rows;
}

}  // namespace rlx
