// The reference evaluator.
#include "runtime/evaluate.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "ir/control.h"
#include "ir/measure.h"
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
    for (const Id i : order()) {
      if (!live[i] || is_input(g_.nodes[i])) continue;
      try {
        values_[i] = node(g_.nodes[i]);
      } catch (const Error& e) {
        fail("{}: {}", describe(g_, i), e.what());
      }
      find_sizes(i);
      for (const Operand o : g_.nodes[i].operands) {
        if (--uses[o.node] == 0 && !g_.is_output(o.node)) values_[o.node].clear();
      }
    }
  }

  const Tensor& value(Operand o) const { return values_[o.node][o.result]; }

 private:
  // What uses a size comes after what finds it.
  std::vector<Id> order() const {
    std::vector<Id> ids(g_.nodes.size());
    std::iota(ids.begin(), ids.end(), Id{0});
    const std::vector<std::uint32_t> levels = node_levels(g_);
    std::ranges::sort(ids, {}, [&](Id i) { return std::pair(levels[i], i); });
    return ids;
  }

  void find_sizes(Id id) {
    if (g_.nodes[id].op != &measure_op()) return;
    const std::string symbol(g_.nodes[id].attrs.as<MeasureAttrs>().size.symbol_name());
    const Index size = load<std::int64_t>(value({id, 0}))[0];
    env_.insert_or_assign(symbol, size);
    constants_.insert_or_assign(symbol, Dim(size));
    for (const Check& c : g_.checks) {
      if (known_now(c)) verify_check(c, env_);
    }
  }

  bool known_now(const Check& c) const {
    DimSymbols used;
    c.left.collect_symbols(used);
    c.right.collect_symbols(used);
    return std::ranges::all_of(used, [&](const auto& s) { return env_.contains(s.first); });
  }

  std::vector<Tensor> node(const Node& n) {
    std::vector<Tensor> in;
    for (const Operand o : n.operands) in.push_back(value(o));
    if (n.op == &fusion_op()) return body(n, 0, in);
    if (n.op == &if_op()) return body(n, load<std::int64_t>(in[0])[0] != 0 ? 0 : 1, std::span(in).subspan(1));
    if (n.op == &while_op()) return repeat(n, in);
    if (n.op == &scan_op()) return scan(n, in);
    const bool defined = n.op->has_definition() && !n.operands.empty();
    if (n.op->has_reference() && !(options_.definitions && defined)) return reference(n, in);
    require(defined, "op {} has neither a reference nor a definition", n.op->name());
    return definition(n, in);
  }

  std::vector<Tensor> reference(const Node& n, const std::vector<Tensor>& in) {
    std::vector<Tensor> out;
    for (const TensorType& t : n.results) {
      if (t.encoding) {  // its op brings the bytes
        out.emplace_back();
        continue;
      }
      out.push_back(zeros(t));
    }
    n.op->reference(n.attrs, {in, out, env_});
    return out;
  }

  std::vector<Tensor> body(const Node& n, std::size_t number, std::span<const Tensor> in) {
    return evaluate(substitute_symbols(*n.bodies[number], constants_), in, {options_.definitions, {}});
  }

  std::vector<Tensor> repeat(const Node& n, std::vector<Tensor> in) {
    const auto carried = static_cast<std::ptrdiff_t>(n.attrs.as<WhileAttrs>().carried);
    while (load<std::int64_t>(in[0])[0] != 0) std::ranges::move(body(n, 0, std::span(in).subspan(1)), in.begin());
    return {in.begin() + 1, in.begin() + 1 + carried};
  }

  static Tensor slice(const Tensor& from, Index at) {
    Tensor to(from.dtype(), {from.shape().begin() + 1, from.shape().end()});
    if (to.count() > 0)
      std::ranges::copy(from.bytes().subspan(static_cast<std::size_t>(at) * to.bytes().size(), to.bytes().size()),
                        to.mutable_bytes().begin());
    return to;
  }

  std::vector<Tensor> scan(const Node& n, const std::vector<Tensor>& operands) {
    const auto& a = n.attrs.as<ScanAttrs>();
    const auto carried = static_cast<std::size_t>(a.carried), scanned = static_cast<std::size_t>(a.scanned);
    const Index trips = a.trips.evaluate(env_);
    std::vector<Tensor> in = operands, out(operands.begin(), operands.begin() + a.carried);
    for (std::size_t i = carried; i < n.results.size(); ++i) out.push_back(zeros(n.results[i]));
    const auto listed = [](const std::vector<Index>& list, std::size_t i) {
      return std::ranges::find(list, static_cast<Index>(i)) != list.end();
    };
    for (Index t = 0; t < trips; ++t) {
      for (std::size_t i = 0; i < scanned; ++i)
        in[carried + i] = slice(operands[carried + i], listed(a.backward, i) ? trips - 1 - t : t);
      const std::vector<Tensor> made = body(n, 0, in);
      for (std::size_t i = 0; i < carried; ++i) in[i] = out[i] = made[i];
      for (std::size_t i = carried; i < made.size(); ++i) {
        const auto at = static_cast<std::size_t>(listed(a.backward_results, i - carried) ? trips - 1 - t : t);
        std::ranges::copy(made[i].bytes(), out[i].mutable_bytes().subspan(at * made[i].bytes().size()).begin());
      }
    }
    return out;
  }

  Tensor zeros(const TensorType& t) const {
    std::vector<Index> shape;
    for (const Dim& d : t.dims) shape.push_back(d.evaluate(env_));
    return {t.dtype, std::move(shape)};
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
