// Rewriter and the rewrites that need nothing else.
#include "ir/rewrite.h"

#include <utility>

#include "core/error.h"

namespace rlx {

Rewriter::Rewriter(const Graph& from) : from_(from), made_(from.nodes.size()) {
  for (std::size_t i = 0; i < from.inputs.size(); ++i) {
    const Id id = from.inputs[i];
    made_[id] = {builder_.input(from.input_names[i], from.nodes[id].results[0])};
  }
}

Value Rewriter::value(Operand old) const {
  ensure(known(old), "the old value has no counterpart yet");
  return made_[old.node][old.result];
}

bool Rewriter::known(Operand old) const {
  return old.node < made_.size() && old.result < made_[old.node].size() && made_[old.node][old.result].builder;
}

Values Rewriter::operands(Id id) const {
  Values r;
  for (const Operand o : from_.nodes[id].operands) r.push_back(value(o));
  return r;
}

Values Rewriter::copy(Id id) {
  const Node& n = from_.nodes[id];
  ensure(!is_input(n), "inputs are copied from the start");
  Values r = builder_.emit(*n.op, n.attrs, operands(id), n.bodies, n.instance);
  made_[id] = r;
  return r;
}

void Rewriter::replace(Operand old, Value by) {
  const Node& n = from_.nodes[old.node];
  ensure(!is_input(n), "an input is not replaced");
  builder_.own(by);
  ensure(by.type() == from_.type(old), "a replacement has the type of what it replaces");
  made_[old.node].resize(n.results.size());
  made_[old.node][old.result] = by;
}

void Rewriter::replace(Id id, const Values& by) {
  ensure(by.size() == from_.nodes[id].results.size(), "a replacement has one value a result");
  for (std::uint32_t i = 0; i < by.size(); ++i) replace({id, i}, by[i]);
}

Graph Rewriter::finish() {
  const std::vector<bool> live = live_nodes(from_);
  std::vector<std::vector<bool>> needed(from_.nodes.size());
  const auto need = [&](Operand o) {
    needed[o.node].resize(from_.nodes[o.node].results.size());
    needed[o.node][o.result] = true;
  };
  for (const Operand o : from_.outputs) need(o);
  for (const StatePair& s : from_.states) need(s.output);
  for (Id i = 0; i < from_.nodes.size(); ++i) {
    if (!live[i] || done(i)) continue;
    for (const Operand o : from_.nodes[i].operands) need(o);
  }
  for (Id i = 0; i < from_.nodes.size(); ++i) {
    if (!live[i]) continue;
    bool lacking = !done(i);
    for (std::uint32_t r = 0; r < needed[i].size(); ++r) lacking = lacking || (needed[i][r] && !known({i, r}));
    if (!lacking) continue;
    const Values kept = std::exchange(made_[i], {});
    copy(i);
    for (std::uint32_t r = 0; r < kept.size(); ++r) {
      if (kept[r].builder) made_[i][r] = kept[r];
    }
  }
  return finish_as_is();
}

Graph Rewriter::finish_as_is() {
  for (const StatePair& s : from_.states) builder_.state(s.name, value(s.input), value(s.output));
  for (const Check& c : from_.checks) builder_.check(c.left, c.right, c.why);
  for (const Label& l : from_.labels) {
    if (known(l.at)) builder_.label(value(l.at), l.text);
  }
  Values outputs;
  for (const Operand o : from_.outputs) outputs.push_back(value(o));
  return builder_.finish(outputs, from_.output_names);
}

Graph rewrite(const Graph& g, const std::function<std::optional<Values>(Rewriter&, Id)>& rule) {
  Rewriter r(g);
  const std::vector<bool> live = live_nodes(g);
  for (Id i = 0; i < g.nodes.size(); ++i) {
    if (!live[i] || is_input(g.nodes[i])) continue;
    if (std::optional<Values> by = rule(r, i)) {
      r.replace(i, *by);
    } else {
      r.copy(i);
    }
  }
  return r.finish();
}

Graph drop_dead(const Graph& g) { return Rewriter(g).finish(); }

Graph substitute_symbols(const Graph& g, const NamedDims& by) {
  Builder b;
  std::vector<Values> made(g.nodes.size());
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    TensorType t = g.nodes[g.inputs[i]].results[0];
    for (Dim& d : t.dims) d = d.substitute(by);
    made[g.inputs[i]] = {b.input(g.input_names[i], std::move(t))};
  }
  for (Id i = 0; i < g.nodes.size(); ++i) {
    const Node& n = g.nodes[i];
    if (is_input(n)) continue;
    Values operands;
    for (const Operand o : n.operands) operands.push_back(made[o.node][o.result]);
    std::vector<GraphPtr> bodies;
    for (const GraphPtr& body : n.bodies) bodies.push_back(std::make_shared<Graph>(substitute_symbols(*body, by)));
    made[i] = b.emit(*n.op, n.attrs.substitute(by), operands, std::move(bodies), n.instance);
  }
  const auto at = [&](Operand o) { return made[o.node][o.result]; };
  for (const StatePair& s : g.states) b.state(s.name, at(s.input), at(s.output));
  for (const Check& c : g.checks) b.check(c.left.substitute(by), c.right.substitute(by), c.why);
  for (const Label& l : g.labels) b.label(at(l.at), l.text);
  Values outputs;
  for (const Operand o : g.outputs) outputs.push_back(at(o));
  return b.finish(outputs, g.output_names);
}

}  // namespace rlx
