// The reverse-mode driver: one walk back over the nodes between wrt and outputs.
#include "autodiff/gradient.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/control.h"
#include "core/error.h"
#include "ir/control.h"
#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/scalar/scalar.h"
#include "passes/define.h"

namespace rlx {

namespace {

// Encoded tensors are frozen.
bool differentiable(const TensorType& t) { return !t.encoding && (is_float(t.dtype) || is_complex(t.dtype)); }

class Walk {
 public:
  // With `stop`, the walk does not go behind the values of `wrt`: they count as independent.
  Walk(Builder& builder, std::span<const Value> wrt, bool stop) : builder_(builder), stop_(stop) {
    for (const Value& v : wrt) wrt_.insert(v.at);
  }

  Grads run(std::span<const Value> outputs, std::span<const std::optional<Value>> cotangents,
            std::span<const Value> wrt) {
    const std::vector<Id> order = between(outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (cotangents[i]) accumulate(outputs[i].at, *cotangents[i]);
    }
    for (auto i = order.rbegin(); i != order.rend(); ++i) pull(*i);
    Grads result;
    for (const Value& v : wrt) {
      const auto it = cotangents_.find(v.at);
      result.push_back(it == cotangents_.end() ? std::nullopt : std::optional(it->second));
    }
    return result;
  }

 private:
  // Nodes on a path from wrt to the outputs, ascending.
  std::vector<Id> between(std::span<const Value> outputs) {
    std::unordered_set<Id> seen;
    std::vector<Id> reached, stack;
    const auto visit = [&](Operand o) {
      if (stop_ && wrt_.contains(o)) return;
      if (seen.insert(o.node).second) stack.push_back(o.node);
    };
    for (const Value& v : outputs) visit(v.at);
    while (!stack.empty()) {
      const Id id = stack.back();
      stack.pop_back();
      reached.push_back(id);
      for (const Operand o : builder_.graph().nodes[id].operands) visit(o);
    }
    std::ranges::sort(reached);
    std::vector<Id> order;
    for (const Id id : reached) {
      const Node& n = builder_.graph().nodes[id];
      const bool depends = std::ranges::any_of(n.operands, [&](Operand o) { return active(o); });
      if (!depends) continue;
      active_.insert(id);
      order.push_back(id);
    }
    return order;
  }

  bool active(Operand o) const {
    if (!differentiable(builder_.graph().type(o))) return false;
    return wrt_.contains(o) || active_.contains(o.node);
  }

  void accumulate(Operand at, Value by) {
    ensure(by.type() == builder_.graph().type(at), "a gradient has the type of its value");
    const auto [it, first] = cotangents_.emplace(at, by);
    if (!first) it->second = add(it->second, by);
  }

  // Sends the cotangents of a node's results to its operands.
  void pull(Id id) {
    const Node n = builder_.graph().nodes[id];  // a copy: rules add nodes
    std::vector<std::optional<Value>> cotangents(n.results.size());
    Values in, out;
    bool any = false;
    for (std::uint32_t r = 0; r < n.results.size(); ++r) {
      out.push_back({&builder_, {id, r}});
      const auto it = cotangents_.find({id, r});
      if (it == cotangents_.end() || (stop_ && wrt_.contains({id, r}))) continue;
      cotangents[r] = it->second;
      any = true;
    }
    if (!any) return;
    for (const Operand o : n.operands) in.push_back({&builder_, o});
    Grads grads;
    if (n.op->has_vjp()) {
      grads = n.op->vjp(n.attrs, {in, out, cotangents});
    } else if (n.op == &if_op() || n.op == &scan_op()) {
      grads = control_gradient(n, in, cotangents);
    } else {
      require(n.op->has_definition(), "node {} has no gradient", describe(builder_.graph(), id));
      const Values defined = define(*n.op, n.attrs, in, n.bodies);
      grads = Walk(builder_, in, true).run(defined, cotangents, in);
      // An operand given twice has one gradient, which run() states at both places.
      for (std::size_t i = 0; i < in.size(); ++i) {
        for (std::size_t k = 0; k < i; ++k) {
          if (in[k].at == in[i].at) grads[i] = std::nullopt;
        }
      }
    }
    ensure(grads.size() == n.operands.size(), "a gradient rule gives one entry an operand");
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] && active(n.operands[i])) accumulate(n.operands[i], *grads[i]);
    }
  }

  Builder& builder_;
  bool stop_;
  std::unordered_set<Operand, OperandHash> wrt_;
  std::unordered_set<Id> active_;
  std::unordered_map<Operand, Value, OperandHash> cotangents_;
};

}  // namespace

Grads gradient(std::span<const Value> outputs, std::span<const std::optional<Value>> cotangents,
               std::span<const Value> wrt) {
  require(outputs.size() == cotangents.size(), "{} outputs are given {} cotangents", outputs.size(), cotangents.size());
  if (wrt.empty()) return {};
  Builder& builder = *wrt[0].builder;
  for (const Value& v : wrt) builder.own(v);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    builder.own(outputs[i]);
    if (!cotangents[i]) continue;
    builder.own(*cotangents[i]);
    require(cotangents[i]->type() == outputs[i].type(), "output {} is {}, its cotangent {}", i,
            outputs[i].type().text(), cotangents[i]->type().text());
  }
  return Walk(builder, wrt, false).run(outputs, cotangents, wrt);
}

Graph gradient(const Graph& g) {
  Builder b;
  Values inputs, wrt;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    inputs.push_back(b.input(g.input_names[i], g.nodes[g.inputs[i]].results[0]));
    if (!differentiable(inputs.back().type())) continue;
    wrt.push_back(inputs.back());
    names.push_back("d." + g.input_names[i]);
  }
  const Values outputs = b.inline_graph(g, inputs);
  std::vector<std::optional<Value>> cotangents;
  std::unordered_set<std::string> taken(g.input_names.begin(), g.input_names.end());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    cotangents.emplace_back();
    if (!differentiable(outputs[k].type())) continue;
    std::string name = "d." + std::to_string(k);
    while (!taken.insert(name).second) name.insert(0, "d");
    cotangents.back() = b.input(name, outputs[k].type());
  }
  const Grads grads = gradient(outputs, cotangents, wrt);
  Values results;
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    results.push_back(grads[i] ? *grads[i] : broadcast(like(wrt[i], 0), wrt[i].type().dims));
  }
  return b.finish(results, names);
}

}  // namespace rlx
