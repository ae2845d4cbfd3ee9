// Reading the body of a fusion node around a product.
#include "ops/matmul/product_body.h"

#include <algorithm>
#include <map>

#include "ir/builder.h"
#include "ir/outline.h"

namespace rlx {

const Slot* ProductBody::input(Operand o) const {
  const auto at = std::ranges::find(g_.inputs, o.node);
  return at == g_.inputs.end() ? nullptr : &n_.in[static_cast<std::size_t>(at - g_.inputs.begin())];
}

Id ProductBody::next(Id id, std::string_view op) const {
  const std::span<const Id> users = g_.users(id);
  if (g_.is_output(id) || users.empty() || g_.nodes[users[0]].op->name() != op) return none;
  return std::ranges::all_of(users, [&](Id u) { return u == users[0]; }) ? users[0] : none;
}

const Slot* ProductBody::other(Id id, Id one, DType type) const {
  const std::vector<Operand>& in = g_.nodes[id].operands;
  if (in.size() != 2 || (in[0].node == one && in[1].node == one)) return nullptr;
  const Slot* const s = input(in[in[0].node == one ? 1 : 0]);
  return s && s->type.dtype == type && !s->type.encoding && s->dense() ? s : nullptr;
}

bool ProductBody::is_rows(const Slot& s) const {
  std::vector<Dim> rows = dims();
  rows.back() = 1;
  return s.type.dims == rows;
}

bool ProductBody::is_columns(const Slot& s) const {
  const std::vector<Dim>& d = s.type.dims;
  return !d.empty() && d.back() == dims().back() &&
         std::all_of(d.begin(), d.end() - 1, [](const Dim& x) { return x == Dim(1); });
}

std::pair<Node, std::vector<Slot>> ProductBody::rest() const {
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

}  // namespace rlx
