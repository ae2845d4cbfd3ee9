// Fusion nodes: making them from groups of nodes, and undoing them.
#include "ir/outline.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "ir/control.h"
#include "ir/rewrite.h"

namespace rlx {

static constinit const Op<NoAttrs> fusion_definition{{
    .name = "fusion",
    .doc = "A group of nodes that runs as one. Its meaning is its body: operands are the body's inputs, results its "
           "outputs.",
    .infer = [](const NoAttrs&, InferContext& c) -> std::vector<TensorType> {
      require(c.bodies.size() == 1, "{} bodies are given, expected 1", c.bodies.size());
      const Graph& body = *c.bodies[0];
      require(body.states.empty(), "a body holds no state pairs");
      require(c.in.size() == body.inputs.size(), "{} operands are given, the body has {} inputs", c.in.size(),
              body.inputs.size());
      for (std::size_t i = 0; i < c.in.size(); ++i) {
        const TensorType& want = body.nodes[body.inputs[i]].results[0];
        require(c.in[i] == want, "operand {} is {}, body input {} is {}", i, c.in[i].text(), body.input_names[i],
                want.text());
      }
      for (const Check& k : body.checks) c.checks.push_back(k);
      std::vector<TensorType> results;
      for (const Operand o : body.outputs) results.push_back(body.type(o));
      return results;
    },
    .definition = [](const NoAttrs&, const DefineArgs& d) -> Values {
      return d.in.empty() ? Values{} : d.in[0].builder->inline_graph(*d.bodies[0], d.in);
    },
}};
const OpDef& fusion_op() { return fusion_definition; }

namespace {

// One group while the graph is outlined.
struct Group {
  std::vector<Id> members;        // ascending
  std::vector<Operand> captures;  // values from outside, in order of first use
  std::vector<Operand> results;   // values used outside, in order
};

std::vector<Group> collect(const Graph& g, std::span<const Id> root, const std::vector<bool>& live) {
  std::vector<Group> groups(g.nodes.size());
  std::vector<std::vector<bool>> escapes(g.nodes.size());
  const auto escape = [&](Operand o) {
    escapes[o.node].resize(g.nodes[o.node].results.size());
    escapes[o.node][o.result] = true;
  };
  for (const Operand o : g.outputs) escape(o);
  for (const StatePair& s : g.states) escape(s.output);
  std::unordered_map<Id, std::unordered_set<Operand, OperandHash>> captured;
  for (Id i = 0; i < g.nodes.size(); ++i) {
    if (!live[i]) continue;
    Group& group = groups[root[i]];
    group.members.push_back(i);
    for (const Operand o : g.nodes[i].operands) {
      if (root[o.node] == root[i]) continue;
      escape(o);
      if (captured[root[i]].insert(o).second) group.captures.push_back(o);
    }
  }
  for (Group& group : groups) {
    for (const Id i : group.members) {
      for (std::uint32_t r = 0; r < escapes[i].size(); ++r) {
        if (escapes[i][r]) group.results.push_back({i, r});
      }
    }
  }
  return groups;
}

// Order of the groups such that every group comes after those it reads; throws when there is none.
std::vector<Id> order_groups(const Graph& g, std::span<const Id> root, const std::vector<Group>& groups) {
  std::vector<std::uint8_t> mark(g.nodes.size(), 0);  // 1: open, 2: done
  std::vector<Id> order;
  std::vector<std::pair<Id, std::size_t>> stack;
  for (Id i = 0; i < g.nodes.size(); ++i) {
    if (groups[i].members.empty() || mark[i]) continue;
    stack.emplace_back(i, 0);
    mark[i] = 1;
    while (!stack.empty()) {
      auto& [group, next] = stack.back();
      if (next == groups[group].captures.size()) {
        mark[group] = 2;
        order.push_back(group);
        stack.pop_back();
        continue;
      }
      const Id below = root[groups[group].captures[next++].node];
      ensure(mark[below] != 1, "a group of nodes depends on itself through a node outside");
      if (mark[below]) continue;
      mark[below] = 1;
      stack.emplace_back(below, 0);
    }
  }
  return order;
}

using LabelsByNode = std::unordered_multimap<Id, const Label*>;

GraphPtr make_body(const Graph& g, const Group& group, const LabelsByNode& labels) {
  Builder b;
  std::unordered_map<Operand, Value, OperandHash> at;
  for (std::size_t i = 0; i < group.captures.size(); ++i) {
    at[group.captures[i]] = b.input("a" + std::to_string(i), g.type(group.captures[i]));
  }
  for (const Id id : group.members) {
    const Node& n = g.nodes[id];
    Values operands;
    for (const Operand o : n.operands) operands.push_back(at.at(o));
    const Values made = b.emit(*n.op, n.attrs, operands, n.bodies, n.instance);
    for (std::uint32_t r = 0; r < made.size(); ++r) at[{id, r}] = made[r];
    // Labels of results stay outside.
    for (auto [l, end] = labels.equal_range(id); l != end; ++l) {
      const Label& label = *l->second;
      if (!std::ranges::binary_search(group.results, label.at)) b.label(made[label.at.result], label.text);
    }
  }
  Values outputs;
  for (const Operand o : group.results) outputs.push_back(at.at(o));
  return std::make_shared<Graph>(b.finish(outputs));
}

}  // namespace

Graph outline(const Graph& g, std::span<const Id> root) {
  ensure(root.size() == g.nodes.size(), "one root a node");
  for (Id i = 0; i < g.nodes.size(); ++i) {
    ensure(root[i] < g.nodes.size() && root[root[i]] == root[i], "a root is its own root");
    ensure(!is_input(g.nodes[i]) || root[i] == i, "an input is its own root");
    ensure(!is_input(g.nodes[root[i]]) || root[i] == i, "an input is no member of a group");
  }
  const std::vector<bool> live = live_nodes(g);
  const std::vector<Group> groups = collect(g, root, live);

  LabelsByNode labels;
  for (const Label& l : g.labels) labels.emplace(l.at.node, &l);

  Rewriter r(g);
  for (const Id id : order_groups(g, root, groups)) {
    const Group& group = groups[id];
    if (is_input(g.nodes[id])) continue;
    if (group.members.size() == 1) {
      r.copy(group.members[0]);
      continue;
    }
    Values operands;
    for (const Operand o : group.captures) operands.push_back(r.value(o));
    const Values made = r.builder().emit(fusion_op(), Attrs(), operands, {make_body(g, group, labels)});
    for (std::size_t k = 0; k < made.size(); ++k) r.replace(group.results[k], made[k]);
  }
  return r.finish_as_is();
}

Graph inline_bodies(const Graph& g) {
  return rewrite(g, [](Rewriter& r, Id id) -> std::optional<Values> {
    const Node& n = r.from().nodes[id];
    if (n.op == &fusion_op() || n.op == &call_op()) {
      return r.builder().inline_graph(inline_bodies(*n.bodies[0]), r.operands(id));
    }
    if (n.bodies.empty()) return {};
    std::vector<GraphPtr> bodies;
    for (const GraphPtr& b : n.bodies) bodies.push_back(std::make_shared<Graph>(inline_bodies(*b)));
    return r.builder().emit(*n.op, n.attrs, r.operands(id), std::move(bodies), n.instance);
  });
}

}  // namespace rlx
