// The reference evaluator.
#include "runtime/evaluate.h"

#include <set>

#include "core/error.h"
#include "ir/op.h"
#include "ir/outline.h"
#include "ir/rewrite.h"
#include "passes/define.h"
#include "runtime/interface.h"

namespace rlx {

namespace {

class Evaluator {
 public:
  Evaluator(const Graph& g, const EvaluateOptions& options, DimEnv env)
      : g_(g), options_(options), env_(std::move(env)) {
    for (const auto& [name, value] : env_) constants_.emplace(name, Dim(value));
  }

  void run(std::span<const Tensor> inputs) {
    const std::vector<bool> live = live_nodes(g_);
    std::vector<std::size_t> uses(g_.nodes.size(), 0);
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      for (const Id user : g_.users(i)) uses[i] += live[user];
    }
    values_.resize(g_.nodes.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) values_[g_.inputs[i]] = {inputs[i]};
    for (Id i = 0; i < g_.nodes.size(); ++i) {
      if (!live[i] || is_input(g_.nodes[i])) continue;
      try {
        values_[i] = node(g_.nodes[i]);
      } catch (const Error& e) {
        fail("{}: {}", describe(g_, i), e.what());
      }
      for (const Operand o : g_.nodes[i].operands) {
        if (--uses[o.node] == 0 && !g_.is_output(o.node)) values_[o.node].clear();
      }
    }
  }

  const Tensor& value(Operand o) const { return values_[o.node][o.result]; }

 private:
  std::vector<Tensor> node(const Node& n) {
    std::vector<Tensor> in;
    for (const Operand o : n.operands) in.push_back(value(o));
    if (n.op == &fusion_op()) return fusion(n, in);
    const bool defined = n.op->has_definition() && !n.operands.empty();
    if (n.op->has_reference() && !(options_.definitions && defined)) return reference(n, in);
    require(defined, "op {} has neither a reference nor a definition", n.op->name());
    return definition(n, in);
  }

  std::vector<Tensor> reference(const Node& n, const std::vector<Tensor>& in) {
    std::vector<Tensor> out;
    for (const TensorType& t : n.results) {
      if (t.encoding) {  // only constants have such results, and they bring their own bytes
        out.emplace_back();
        continue;
      }
      std::vector<Index> shape;
      for (const Dim& d : t.dims) shape.push_back(d.evaluate(env_));
      out.emplace_back(t.dtype, std::move(shape));
    }
    n.op->reference(n.attrs, {in, out, env_});
    return out;
  }

  std::vector<Tensor> fusion(const Node& n, const std::vector<Tensor>& in) {
    return evaluate(substitute_symbols(*n.bodies[0], constants_), in, {options_.definitions, {}});
  }

  std::vector<Tensor> definition(const Node& n, const std::vector<Tensor>& in) {
    Builder b;
    Values operands;
    for (std::size_t i = 0; i < in.size(); ++i) operands.push_back(b.input("a" + std::to_string(i), in[i].type()));
    std::vector<GraphPtr> bodies;
    for (const GraphPtr& body : n.bodies)
      bodies.push_back(std::make_shared<Graph>(substitute_symbols(*body, constants_)));
    const Values made = define(*n.op, n.attrs.substitute(constants_), operands, bodies);
    const Graph g = b.finish(made);
    return evaluate(g, in, {options_.definitions, {}});
  }

  const Graph& g_;
  const EvaluateOptions& options_;
  DimEnv env_;
  NamedDims constants_;
  std::vector<std::vector<Tensor>> values_;
};

}  // namespace

DimEnv bind_dims(const Graph& g, std::span<const Tensor> inputs, const DimEnv& dims) {
  std::vector<TensorType> types;
  for (const Tensor& t : inputs) types.push_back(t.type());
  return bind_dims(Interface(g), types, dims);
}

std::vector<Tensor> evaluate(const Graph& g, std::span<const Tensor> inputs, const EvaluateOptions& options) {
  Evaluator e(g, options, bind_dims(g, inputs, options.dims));
  e.run(inputs);
  std::vector<Tensor> out;
  for (const Operand o : g.outputs) out.push_back(e.value(o));
  return out;
}

std::vector<Tensor> evaluate(const Graph& g, const NamedTensors& inputs, State* state, const EvaluateOptions& options) {
  std::vector<Tensor> ordered;
  std::optional<State::Hold> hold;
  if (!g.states.empty()) {
    require(state != nullptr, "the graph has {} states, but no State is given", g.states.size());
    hold.emplace(*state);
  }
  const std::set<std::string_view> known(g.input_names.begin(), g.input_names.end());
  for (const auto& [name, value] : inputs) require(known.contains(name), "the graph has no input \"{}\"", name);
  std::unordered_map<Id, const StatePair*> pairs;
  for (const StatePair& s : g.states) pairs.emplace(s.input.node, &s);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const auto begins = pairs.find(g.inputs[i]);
    const StatePair* pair = begins == pairs.end() ? nullptr : begins->second;
    const auto it = inputs.find(g.input_names[i]);
    require(!pair || it == inputs.end(), "input {} comes from state {}", g.input_names[i], pair ? pair->name : "");
    require(pair || it != inputs.end(), "input {} is missing", g.input_names[i]);
    ordered.push_back(pair ? state->at(pair->name) : it->second);
  }
  Evaluator e(g, options, bind_dims(g, ordered, options.dims));
  e.run(ordered);
  for (const StatePair& s : g.states) state->set(s.name, e.value(s.output));
  std::vector<Tensor> out;
  for (const Operand o : g.outputs) out.push_back(e.value(o));
  return out;
}

}  // namespace rlx
