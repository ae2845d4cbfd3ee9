// Steps of matmul_integer on the CPU, alone or with the elementwise ops behind it. A body that begins with the scaling
// of sums, f32(s) * row factor * column factor, and perhaps a bias, has that done by the kernel.
#include <algorithm>
#include <map>
#include <set>

#include "ir/outline.h"
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

// A fusion node around an integer product.
class Body {
 public:
  Body(const StepArgs& n, Id product) : n_(n), g_(*n.node.bodies[0]), product_(product), last_(product) {}

  const Graph& graph() const { return g_; }
  /// The slot of a value that is an input of the body, or null.
  const Slot* input(Operand o) const {
    const auto at = std::ranges::find(g_.inputs, o.node);
    return at == g_.inputs.end() ? nullptr : &n_.in[static_cast<std::size_t>(at - g_.inputs.begin())];
  }

  /// What the kernel can do of the body; last() is then what it computes.
  std::optional<IntegerScaling> take_scaling() {
    const Id cast = next(product_, "cast");
    if (cast == none || g_.nodes[cast].results[0].dtype != DType::f32) return {};
    const Id by_row = next(cast, "mul");
    if (by_row == none) return {};
    const Slot* const row = other(by_row, cast);
    if (!row || !is_rows(*row)) return {};
    const Id by_column = next(by_row, "mul");
    if (by_column == none) return {};
    const Slot* const column = other(by_column, by_row);
    if (!column || !is_columns(*column)) return {};
    taken_ = {product_, cast, by_row, by_column};
    last_ = by_column;
    IntegerScaling s{*row, *column, {}};
    const Id plus = next(by_column, "add");
    const Slot* const bias = plus == none ? nullptr : other(plus, by_column);
    if (bias && is_columns(*bias)) {
      s.bias = *bias;
      taken_.insert(plus);
      last_ = plus;
    }
    return s;
  }
  Id last() const { return last_; }
  /// Whether nothing is left to be done behind last().
  bool is_done() const { return g_.outputs.size() == 1 && g_.outputs[0].node == last_; }

  /// The rest of the body, as a fusion node of its own: operand 0 is what the kernel computes.
  std::pair<Node, std::vector<Slot>> rest() const;

 private:
  static constexpr Id none = ~Id{0};

  // The only reader of a node that is no output, if it has this op.
  Id next(Id id, std::string_view op) const {
    const std::span<const Id> users = g_.users(id);
    if (g_.is_output(id) || users.empty() || g_.nodes[users[0]].op->name() != op) return none;
    return std::ranges::all_of(users, [&](Id u) { return u == users[0]; }) ? users[0] : none;
  }
  // The other operand of a node of two, where it is an f32 input of the body.
  const Slot* other(Id id, Id one) const {
    const std::vector<Operand>& in = g_.nodes[id].operands;
    if (in.size() != 2 || (in[0].node == one && in[1].node == one)) return nullptr;
    const Slot* const s = input(in[in[0].node == one ? 1 : 0]);
    return s && s->type.dtype == DType::f32 && !s->type.encoding && s->dense() ? s : nullptr;
  }
  const std::vector<Dim>& dims() const { return g_.nodes[product_].results[0].dims; }
  bool is_rows(const Slot& s) const {
    std::vector<Dim> rows = dims();
    rows.back() = 1;
    return s.type.dims == rows;
  }
  bool is_columns(const Slot& s) const {
    const std::vector<Dim>& d = s.type.dims;
    return !d.empty() && d.back() == dims().back() &&
           std::all_of(d.begin(), d.end() - 1, [](const Dim& x) { return x == Dim(1); });
  }

  const StepArgs& n_;
  const Graph& g_;
  Id product_, last_;
  std::set<Id> taken_{product_};
};

std::pair<Node, std::vector<Slot>> Body::rest() const {
  Builder g;
  Node node;
  std::vector<Slot> slots;
  std::map<Operand, Value> made;
  const auto add = [&](Operand from, Slot slot) {
    made.emplace(from, g.input("a" + std::to_string(slots.size()), g_.type(from)));
    slots.push_back(std::move(slot));
  };
  add({last_, 0}, {.type = g_.type({last_, 0})});
  const auto value = [&](Operand o) {
    if (!made.contains(o)) add(o, *input(o));  // operands of the product alone are left out
    return made.at(o);
  };
  for (Id id = 0; id < g_.nodes.size(); ++id) {
    const Node& n = g_.nodes[id];
    if (is_input(n) || taken_.contains(id)) continue;
    Values operands;
    for (const Operand o : n.operands) operands.push_back(value(o));
    const Values results = g.emit(*n.op, n.attrs, operands, n.bodies, n.instance);
    for (std::uint32_t r = 0; r < results.size(); ++r) made.emplace(Operand{id, r}, results[r]);
  }
  Values outputs;
  for (const Operand o : g_.outputs) outputs.push_back(value(o));
  node.op = &fusion_op();
  node.bodies = {std::make_shared<const Graph>(g.finish(outputs))};
  for (const Slot& s : n_.out) node.results.push_back(s.type);
  return {std::move(node), std::move(slots)};
}

// A body of one product of body inputs, and elementwise ops on it, of its shape.
std::optional<Step> fused_integer_maker(const StepArgs& n) {
  const Graph& g = *n.node.bodies[0];
  const auto is_product = [](const Node& node) { return node.op == &matmul_integer_op; };
  if (std::ranges::count_if(g.nodes, is_product) != 1) return n.decline("matmul_integer takes bodies with one of it");
  const auto product = static_cast<Id>(std::ranges::find_if(g.nodes, is_product) - g.nodes.begin());
  const Node& node = g.nodes[product];
  Body body(n, product);
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
  end.scaling = body.take_scaling();
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
