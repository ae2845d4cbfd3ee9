// Graph: users, structural hash and equality, liveness.
#include "ir/graph.h"

#include <algorithm>
#include <utility>

#include "ir/measure.h"
#include "ir/op.h"

namespace rlx {

namespace {

std::size_t hash_node(const Node& n) {
  std::size_t h = mix(std::hash<std::string_view>{}(n.op->name()), n.attrs.hash());
  h = mix(h, n.instance);
  for (const Operand o : n.operands) h = mix(h, OperandHash{}(o));
  for (const GraphPtr& b : n.bodies) h = mix(h, b->hash());
  if (!is_input(n)) return h;
  const TensorType& t = n.results[0];
  for (const Dim& d : t.dims) h = mix(h, d.hash());
  if (t.encoding)
    h = mix(mix(h, std::hash<std::string_view>{}(t.encoding->name)), static_cast<std::size_t>(t.block_axis));
  return mix(h, static_cast<std::size_t>(t.dtype));
}

bool same_node(const Node& a, const Node& b) {
  return a.op == b.op && a.instance == b.instance && a.operands == b.operands && a.attrs == b.attrs &&
         a.results == b.results &&
         std::ranges::equal(a.bodies, b.bodies, [](const GraphPtr& x, const GraphPtr& y) { return same(x, y); });
}

}  // namespace

void Graph::index() {
  user_begin_.assign(nodes.size() + 1, 0);
  for (const Node& n : nodes) {
    for (const Operand o : n.operands) ++user_begin_[o.node + 1];
  }
  for (std::size_t i = 1; i < user_begin_.size(); ++i) user_begin_[i] += user_begin_[i - 1];
  user_list_.resize(user_begin_.back());
  std::vector<std::uint32_t> next(user_begin_.begin(), user_begin_.end() - 1);
  for (Id i = 0; i < nodes.size(); ++i) {
    for (const Operand o : nodes[i].operands) user_list_[next[o.node]++] = i;
  }
  escapes_.assign(nodes.size(), false);
  for (const Operand o : outputs) escapes_[o.node] = true;
  for (const StatePair& s : states) escapes_[s.output.node] = true;

  std::size_t h = nodes.size();
  for (const Node& n : nodes) h = mix(h, hash_node(n));
  for (const Operand o : outputs) h = mix(h, OperandHash{}(o));
  for (const StatePair& s : states) h = mix(h, OperandHash{}(s.output));
  hash_ = h;
}

bool same(const Graph& a, const Graph& b) {
  return a.hash() == b.hash() && a.inputs == b.inputs && a.input_names == b.input_names && a.outputs == b.outputs &&
         a.output_names == b.output_names && a.states == b.states && a.checks == b.checks && a.symbols == b.symbols &&
         std::ranges::equal(a.nodes, b.nodes, same_node);
}

bool same(const GraphPtr& a, const GraphPtr& b) { return a == b || same(*a, *b); }

namespace {

void mark_operands(const Graph& g, std::vector<bool>& live) {
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    if (!live[i]) continue;
    for (const Operand o : g.nodes[i].operands) live[o.node] = true;
  }
}

// Marks what finds the sizes of marked nodes and of checks, until there is no more.
void mark_measures(const Graph& g, const std::vector<Measure>& measures, std::vector<bool>& live) {
  for (bool more = true; std::exchange(more, false);) {
    DimSymbols used;
    for (const Check& c : g.checks) {
      c.left.collect_symbols(used);
      c.right.collect_symbols(used);
    }
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      if (live[i]) collect_symbols(g.nodes[i], used);
    }
    for (const Measure& m : measures) {
      if (!live[m.node] && used.contains(m.symbol)) live[m.node] = more = true;
    }
    if (more) mark_operands(g, live);
  }
}

}  // namespace

std::vector<bool> live_nodes(const Graph& g) {
  std::vector<bool> live(g.nodes.size(), false);
  for (const Id i : g.inputs) live[i] = true;
  for (const Operand o : g.outputs) live[o.node] = true;
  for (const StatePair& s : g.states) live[s.output.node] = true;
  mark_operands(g, live);
  if (const std::vector<Measure> all = measures(g); !all.empty()) mark_measures(g, all, live);
  return live;
}

std::string describe(const Graph& g, Id id) {
  const Node& n = g.nodes[id];
  std::string s = "%" + std::to_string(id) + " = " + std::string(n.op ? n.op->name() : "?") + "(";
  for (std::size_t i = 0; i < n.operands.size(); ++i) {
    const Operand o = n.operands[i];
    const bool valid = o.node < g.nodes.size() && o.result < g.nodes[o.node].results.size();
    s += (i ? ", " : "") + (valid ? g.type(o).text() : std::string("?"));
  }
  return s + ")";
}

}  // namespace rlx
