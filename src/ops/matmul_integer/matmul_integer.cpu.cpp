// Steps of matmul_integer on the CPU, alone or with the elementwise ops behind it. A body that begins with the scaling
// of sums, f32(s) * row factor * column factor, and perhaps a bias, has that done by the kernel.
#include <algorithm>

#include "ir/outline.h"
#include "ops/matmul/product_body.h"
#include "ops/matmul_integer/matmul_integer_step.h"

namespace rlx {

namespace {

std::optional<Step> integer_maker(const StepArgs& n) {
  const auto plan = plan_integer_product(n, n.node.attrs.as<MatmulAttrs>(), n.in[0], n.in[1], n.out[0].type);
  if (!plan) return {};
  if (!n.out[0].dense()) return n.decline("matmul_integer writes dense rows");
  IntegerEnd end;
  if (n.in.size() == 3) end.row_zeros = n.in[2];
  if (end.row_zeros && !end.row_zeros->dense()) return n.decline("zero points of rows are dense");
  StepBuilder s("matmul_integer");
  end.out = s.write<std::byte>(n.out[0]);
  return integer_step(s, *plan, std::move(end));
}

// What the kernel can do of a body, which is then taken.
std::optional<IntegerScaling> take_scaling(ProductBody& body) {
  const Id product = body.last(), cast = body.next(product, "cast");
  if (cast == ProductBody::none || body.graph().nodes[cast].results[0].dtype != DType::f32) return {};
  const Id by_row = body.next(cast, "mul");
  if (by_row == ProductBody::none) return {};
  const Slot* const row = body.other(by_row, cast, DType::f32);
  if (!row || !body.is_rows(*row)) return {};
  const Id by_column = body.next(by_row, "mul");
  if (by_column == ProductBody::none) return {};
  const Slot* const column = body.other(by_column, by_row, DType::f32);
  if (!column || !body.is_columns(*column)) return {};
  for (const Id id : {cast, by_row, by_column}) body.take(id);
  IntegerScaling s{*row, *column, {}};
  const Id plus = body.next(by_column, "add");
  const Slot* const bias = plus == ProductBody::none ? nullptr : body.other(plus, by_column, DType::f32);
  if (bias && body.is_columns(*bias)) {
    s.bias = *bias;
    body.take(plus);
  }
  return s;
}

// A body of one product of body inputs, and elementwise ops on it, of its shape.
std::optional<Step> fused_integer_maker(const StepArgs& n) {
  const Graph& g = *n.node.bodies[0];
  const auto is_product = [](const Node& node) { return node.op == &matmul_integer_op; };
  if (std::ranges::count_if(g.nodes, is_product) != 1) return n.decline("matmul_integer takes bodies with one of it");
  const auto product = static_cast<Id>(std::ranges::find_if(g.nodes, is_product) - g.nodes.begin());
  const Node& node = g.nodes[product];
  ProductBody body(n, product);
  const Slot *const a = body.input(node.operands[0]), *const b = body.input(node.operands[1]);
  if (!a || !b) return n.decline("operands of a matmul in a body are inputs of the body");
  for (const Slot& s : n.out) {
    if (s.type.dims != node.results[0].dims || !s.dense()) return n.decline("a result has another shape or strides");
  }
  const auto plan = plan_integer_product(n, node.attrs.as<MatmulAttrs>(), *a, *b, node.results[0]);
  if (!plan) return {};
  IntegerEnd end;
  if (node.operands.size() == 3) {
    const Slot* const zeros = body.input(node.operands[2]);
    if (!zeros || !zeros->dense()) return n.decline("zero points of rows are a dense input of the body");
    end.row_zeros = *zeros;
  }
  end.scaling = take_scaling(body);
  StepBuilder s(end.scaling ? "matmul_integer_scaled" : "matmul_integer_fused");
  if (body.is_done()) {
    end.out = s.write<std::byte>(n.out[0]);
  } else {
    const auto [rest, slots] = body.rest();
    end.stage = region::make_stage(s, {rest, slots, n.out, n.why});
    if (!end.stage) return {};
  }
  return integer_step(s, *plan, std::move(end));
}

}  // namespace

std::span<const MakerRow> matmul_integer_cpu() {
  static const MakerRow rows[] = {{&matmul_integer_op, integer_maker}, {&fusion_op(), fused_integer_maker}};
  return rows;
}

}  // namespace rlx
