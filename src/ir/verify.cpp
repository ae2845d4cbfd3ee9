// One function a group of rules; each message begins with the node and names the rule.
#include "ir/verify.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "ir/measure.h"
#include "ir/op.h"

namespace rlx {

namespace {

constexpr int deepest_body = 32;

template <class... T>
void rule(bool ok, const Graph& g, Id id, fmt::format_string<T...> format, T&&... args) {
  if (!ok) fail("node {}: {}", describe(g, id), fmt::format(format, std::forward<T>(args)...));
}

// The symbols of a graph and, by `outer`, of those around it.
struct Symbols {
  const DimSymbols& own;
  const Symbols* outer = nullptr;
};

const Bounds* find_symbol(const Symbols* s, const std::string& name) {
  for (; s; s = s->outer) {
    const auto it = s->own.find(name);
    if (it != s->own.end()) return &it->second;
  }
  return nullptr;
}

bool exists(const Graph& g, Operand o) { return o.node < g.nodes.size() && o.result < g.nodes[o.node].results.size(); }

void verify_inputs(const Graph& g) {
  require(g.inputs.size() == g.input_names.size(), "graph: {} inputs have {} names", g.inputs.size(),
          g.input_names.size());
  std::set<std::string_view> names;
  std::vector<bool> listed(g.nodes.size(), false);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const Id id = g.inputs[i];
    require(id < g.nodes.size(), "graph: input {} is node %{}, there are {} nodes", g.input_names[i], id,
            g.nodes.size());
    rule(is_input(g.nodes[id]), g, id, "input rule: listed as input {}, but no input node", g.input_names[i]);
    rule(!listed[id], g, id, "input rule: listed twice");
    listed[id] = true;
    require(!g.input_names[i].empty(), "graph: input %{} has no name", id);
    require(names.insert(g.input_names[i]).second, "graph: input {} is declared twice", g.input_names[i]);
  }
  for (Id i = 0; i < g.nodes.size(); ++i) {
    if (!is_input(g.nodes[i])) continue;
    rule(listed[i], g, i, "input rule: an input node is not listed");
    rule(g.nodes[i].results.size() == 1, g, i, "input rule: {} results, expected 1", g.nodes[i].results.size());
    rule(g.nodes[i].operands.empty() && g.nodes[i].bodies.empty(), g, i,
         "input rule: an input has no operands or bodies");
  }
}

void verify_types(const Graph& g, Id id) {
  for (const TensorType& t : g.nodes[id].results) {
    for (const Dim& d : t.dims) rule(d.bounds().hi >= 0, g, id, "size rule: {} has a negative size", t.text());
    rule(!t.encoding || (0 <= t.block_axis && t.block_axis < t.rank()), g, id,
         "encoding rule: block axis {} is out of range for rank {}", t.block_axis, t.rank());
  }
}

// Known elements are those that inference gives, no fewer and no more.
void verify_tracked(const Graph& g, Id id, const InferContext& context) {
  std::vector<bool> given(g.nodes[id].results.size(), false);
  for (const auto& [r, elements] : context.tracked) {
    const auto it = g.values.find({id, static_cast<std::uint32_t>(r)});
    rule(it != g.values.end() && it->second == elements, g, id, "tracking rule: known elements of result {} differ", r);
    given[r] = true;
  }
  for (std::uint32_t r = 0; r < given.size(); ++r) {
    rule(given[r] || !g.values.contains({id, r}), g, id,
         "tracking rule: elements of result {} are known that inference does not give", r);
  }
}

// Inference again; gives the checks that it asks for.
std::vector<Check> verify_inference(const Graph& g, Id id) {
  const Node& n = g.nodes[id];
  std::vector<TensorType> types;
  std::vector<const std::vector<Dim>*> known;
  for (const Operand o : n.operands) {
    types.push_back(g.type(o));
    const auto it = g.values.find(o);
    known.push_back(it == g.values.end() ? nullptr : &it->second);
  }
  InferContext context(types, n.bodies, known);
  std::vector<TensorType> inferred;
  try {
    inferred = n.op->infer(n.attrs, context);
    context.forget_wrapping(inferred);
  } catch (const Error& e) {
    rule(false, g, id, "inference rule: {}", e.what());
  }
  rule(inferred.size() == n.results.size(), g, id, "inference rule: {} results are stated, {} inferred",
       n.results.size(), inferred.size());
  for (std::size_t i = 0; i < inferred.size(); ++i) {
    rule(inferred[i] == n.results[i], g, id, "inference rule: result {} is stated as {}, inferred {}", i,
         n.results[i].text(), inferred[i].text());
  }
  verify_tracked(g, id, context);
  return context.checks;
}

void verify_graph(const Graph& g, const Symbols* outer, int depth);

void verify_node(const Graph& g, Id id, const Symbols& symbols, int depth, std::vector<Check>& wanted) {
  const Node& n = g.nodes[id];
  require(n.op != nullptr, "node %{}: op rule: no op", id);
  for (const Operand o : n.operands) {
    rule(o.node < id, g, id, "order rule: operand %{} does not come earlier", o.node);
    rule(exists(g, o), g, id, "operand rule: %{} has no result {}", o.node, o.result);
  }
  verify_types(g, id);
  if (is_input(n)) return verify_tracked(g, id, {{}, {}, {}});
  for (const GraphPtr& b : n.bodies) {  // before inference, which reads them
    rule(b != nullptr, g, id, "body rule: a body is missing");
    rule(b->states.empty(), g, id, "body rule: a body holds state pairs");
    try {
      verify_graph(*b, &symbols, depth + 1);
    } catch (const Error& e) {
      rule(false, g, id, "body rule: {}", e.what());
    }
  }
  rule(n.op->accepts(n.attrs), g, id, "attribute rule: attributes of another op");
  for (Check& c : verify_inference(g, id)) wanted.push_back(std::move(c));
}

void verify_symbols(const Graph& g, const Symbols* outer) {
  DimSymbols used;
  try {
    for (const Node& n : g.nodes) {
      for (const TensorType& t : n.results) {
        for (const Dim& d : t.dims) d.collect_symbols(used);
      }
      n.attrs.collect_symbols(used);
    }
    for (const Check& c : g.checks) {
      c.left.collect_symbols(used);
      c.right.collect_symbols(used);
    }
  } catch (const Error& e) {
    fail("graph: symbol rule: {}", e.what());
  }
  for (const auto& [name, bounds] : used) {
    const Symbols own{g.symbols, outer};
    const Bounds* stated = find_symbol(&own, name);
    require(stated, "graph: symbol rule: size symbol {} is not declared", name);
    require(*stated == bounds, "graph: symbol rule: size symbol {} is declared {}..{} and used with {}..{}", name,
            stated->lo, stated->hi, bounds.lo, bounds.hi);
  }
  for (const auto& [name, bounds] : g.symbols) {
    const Bounds* stated = find_symbol(outer, name);
    require(!stated || *stated == bounds, "graph: symbol rule: size symbol {} has other bounds in a body", name);
  }
}

void verify_ends(const Graph& g) {
  require(g.outputs.size() == g.output_names.size(), "graph: {} outputs have {} names", g.outputs.size(),
          g.output_names.size());
  for (const Operand o : g.outputs)
    require(exists(g, o), "graph: output rule: %{}#{} does not exist", o.node, o.result);
  std::set<std::string_view> names;
  for (const std::string& n : g.output_names) {
    require(n.empty() || names.insert(n).second, "graph: output rule: output {} is declared twice", n);
  }
  names.clear();
  std::set<Operand> begins;
  for (const StatePair& s : g.states) {
    require(exists(g, s.input) && exists(g, s.output), "graph: state rule: a value of state {} does not exist", s.name);
    require(is_input(g.nodes[s.input.node]), "graph: state rule: state {} does not begin at a graph input", s.name);
    require(g.type(s.input) == g.type(s.output), "graph: state rule: state {} changes type from {} to {}", s.name,
            g.type(s.input).text(), g.type(s.output).text());
    require(!s.name.empty() && names.insert(s.name).second, "graph: state rule: state {} is unnamed or declared twice",
            s.name);
    require(begins.insert(s.input).second, "graph: state rule: two states begin at input %{}", s.input.node);
  }
  for (const Label& l : g.labels)
    require(exists(g, l.at), "graph: label rule: {} labels %{}, which does not exist", l.text, l.at.node);
}

// The hash covers all that users follow from; a graph changed by hand without index() would mislead passes.
void verify_index(const Graph& g) {
  Graph fresh = g;
  fresh.index();
  require(fresh.hash() == g.hash(), "graph: index rule: nodes were changed after the graph was finished");
}

void verify_graph(const Graph& g, const Symbols* outer, int depth) {
  require(depth <= deepest_body, "bodies are nested deeper than {}", deepest_body);
  verify_inputs(g);
  const Symbols symbols{g.symbols, outer};
  std::vector<Check> wanted;
  for (Id i = 0; i < g.nodes.size(); ++i) verify_node(g, i, symbols, depth, wanted);
  for (const auto& [at, elements] : g.values) {
    require(exists(g, at), "graph: tracking rule: elements of %{}#{} are known, which does not exist", at.node,
            at.result);
  }
  verify_ends(g);
  verify_symbols(g, outer);
  for (const Check& c : g.checks) {
    require(equal(c.left, c.right) != Tri::no, "graph: check rule: {} is never {} ({})", c.left.text(), c.right.text(),
            c.why);
  }
  std::set<std::pair<std::string, std::string>> present;
  for (const Check& c : g.checks) present.emplace(c.left.text(), c.right.text());
  for (const Check& c : wanted) {
    require(present.contains({c.left.text(), c.right.text()}), "graph: check rule: the check {} = {} ({}) is missing",
            c.left.text(), c.right.text(), c.why);
  }
  verify_index(g);
}

}  // namespace

void verify(const Graph& g) {
  verify_graph(g, nullptr, 0);
  verify_measures(g);
}

void verify_interface(const Graph& before, const Graph& after) {
  require(before.input_names == after.input_names, "interface: inputs were added, removed, renamed or moved");
  for (std::size_t i = 0; i < before.inputs.size(); ++i) {
    const TensorType &a = before.nodes[before.inputs[i]].results[0], &b = after.nodes[after.inputs[i]].results[0];
    require(a == b, "interface: input {} was {} and is {}", before.input_names[i], a.text(), b.text());
  }
  require(before.outputs.size() == after.outputs.size(), "interface: {} outputs became {}", before.outputs.size(),
          after.outputs.size());
  require(before.output_names == after.output_names, "interface: outputs were renamed");
  for (std::size_t i = 0; i < before.outputs.size(); ++i) {
    const TensorType &a = before.type(before.outputs[i]), &b = after.type(after.outputs[i]);
    require(a == b, "interface: output {} was {} and is {}", i, a.text(), b.text());
  }
  require(before.states.size() == after.states.size(), "interface: {} states became {}", before.states.size(),
          after.states.size());
  for (std::size_t i = 0; i < before.states.size(); ++i) {
    require(before.states[i].name == after.states[i].name, "interface: state {} became {}", before.states[i].name,
            after.states[i].name);
    require(before.states[i].input.node < before.nodes.size() &&
                before.type(before.states[i].input) == after.type(after.states[i].input),
            "interface: state {} changed its type", before.states[i].name);
  }
  std::set<std::string> found;
  for (const Measure& m : measures(after)) found.insert(m.symbol);
  for (const Measure& m : measures(before)) {
    require(!after.symbols.contains(m.symbol) || found.contains(m.symbol), "interface: nothing finds size {}",
            m.symbol);
  }
  std::set<std::pair<std::string, std::string>> present;
  for (const Check& c : after.checks) present.emplace(c.left.text(), c.right.text());
  for (const Check& c : before.checks) {
    const bool kept = present.contains({c.left.text(), c.right.text()});
    require(kept || equal(c.left, c.right) == Tri::yes, "interface: the check {} = {} ({}) was lost", c.left.text(),
            c.right.text(), c.why);
  }
}

}  // namespace rlx
