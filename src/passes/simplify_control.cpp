// simplify-control: control flow that sizes and constants decide, and operands that bodies do not need.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/control.h"
#include "ir/rewrite.h"
#include "ops/broadcast/broadcast.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "passes/match.h"
#include "passes/passes.h"

namespace rlx {

namespace {

// Operands of a node by what its body does with them: [first, captures) follow the trips, the rest are captures.
struct Operands {
  std::size_t first = 0, captures = 0;
};

Operands operands_of(const Node& n) {
  if (n.op == &if_op()) return {1, 1};
  if (n.op == &while_op()) return {1, 1 + static_cast<std::size_t>(n.attrs.as<WhileAttrs>().carried)};
  const auto& a = n.attrs.as<ScanAttrs>();
  return {0, static_cast<std::size_t>(a.carried + a.scanned)};
}

class Simplifier {
 public:
  Graph run(const Graph& g) {
    return rewrite(g, [this](Rewriter& r, Id id) -> std::optional<Values> {
      const Node& n = r.from().nodes[id];
      if (n.op == &call_op()) return r.builder().inline_graph(*n.bodies[0], r.operands(id));
      if (n.op == &if_op()) {
        if (std::optional<Values> taken = decided(r, id)) return taken;
      }
      if (n.op == &scan_op()) {
        if (std::optional<Values> once = one_trip(r, id)) return once;
        if (std::optional<Values> fewer = fewer_results(r, id)) return fewer;
      }
      return is_control(*n.op) ? fewer_captures(r, id) : std::nullopt;
    });
  }
  const std::map<std::string_view, Index>& done() const { return done_; }
  Index count() const {
    Index all = 0;
    for (const auto& [what, count] : done_) all += count;
    return all;
  }

 private:
  // An if whose condition is a constant.
  std::optional<Values> decided(Rewriter& r, Id id) {
    const Values in = r.operands(id);
    const Tensor* c = match::constant_of(r.builder().graph().nodes[in[0].at.node]);
    if (!c) return {};
    ++done_["branches that are known"];
    const Node& n = r.from().nodes[id];
    return r.builder().inline_graph(*n.bodies[load<std::int64_t>(*c)[0] != 0 ? 0 : 1], std::span(in).subspan(1));
  }

  // A scan of one trip.
  std::optional<Values> one_trip(Rewriter& r, Id id) {
    const Node& n = r.from().nodes[id];
    const auto& a = n.attrs.as<ScanAttrs>();
    if (a.trips != Dim(1)) return {};
    Values in = r.operands(id);
    const auto carried = static_cast<std::size_t>(a.carried), scanned = static_cast<std::size_t>(a.scanned);
    for (std::size_t i = carried; i < carried + scanned; ++i) {
      if (in[i].dim(0) != Dim(1)) return {};
      in[i] = reshape(in[i], {in[i].type().dims.begin() + 1, in[i].type().dims.end()});
    }
    Values out = r.builder().inline_graph(*n.bodies[0], in);
    for (std::size_t i = carried; i < out.size(); ++i) out[i] = unsqueeze(out[i], {0});
    ++done_["scans of one trip"];
    return out;
  }

  // Stacked results that nothing reads are not made.
  std::optional<Values> fewer_results(Rewriter& r, Id id) {
    const Graph& g = r.from();
    const Node& n = g.nodes[id];
    std::vector<bool> read(n.results.size(), false);
    const auto reads = [&](Operand o) {
      if (o.node == id) read[o.result] = true;
    };
    for (const Id user : g.users(id)) std::ranges::for_each(g.nodes[user].operands, reads);
    std::ranges::for_each(g.outputs, reads);
    for (const StatePair& s : g.states) reads(s.output);
    auto a = n.attrs.as<ScanAttrs>();
    const auto carried = static_cast<std::size_t>(a.carried);
    std::fill_n(read.begin(), carried, true);
    const bool some = std::ranges::find(read, true) != read.end();  // a node has a result
    if (std::ranges::find(read, false) == read.end() || !some) return {};
    const Graph& body = *n.bodies[0];
    std::vector<Operand> outputs;
    std::vector<Index> backward;
    for (std::size_t i = 0; i < read.size(); ++i) {
      if (!read[i]) continue;
      const auto number = static_cast<Index>(i) - a.carried;
      if (std::ranges::find(a.backward_results, number) != a.backward_results.end())
        backward.push_back(static_cast<Index>(outputs.size()) - a.carried);
      outputs.push_back(body.outputs[i]);
    }
    done_["stacked results left out"] += static_cast<Index>(read.size() - outputs.size());
    a.backward_results = std::move(backward);
    const Values made = scan(r.builder(), std::move(a), r.operands(id), with_outputs(body, outputs));
    Values all;
    std::size_t next = 0;
    for (std::size_t i = 0; i < read.size(); ++i) {
      const TensorType& t = n.results[i];
      all.push_back(read[i] ? made[next++] : broadcast(constant(r.builder(), t.dtype, 0), t.dims));
    }
    return all;
  }

  static GraphPtr with_outputs(const Graph& body, const std::vector<Operand>& outputs) {
    Rewriter r(body);
    for (Id i = 0; i < body.nodes.size(); ++i) {
      if (!is_input(body.nodes[i])) r.copy(i);
    }
    Values made;
    for (const Operand o : outputs) made.push_back(r.value(o));
    for (const Check& c : body.checks) r.builder().check(c.left, c.right, c.why);
    return std::make_shared<const Graph>(drop_dead(r.builder().finish(made)));
  }

  // Constants go into the bodies, where kernels see them; captures that no body reads, or that are there twice, go.
  std::optional<Values> fewer_captures(Rewriter& r, Id id) {
    const Node& n = r.from().nodes[id];
    const Operands where = operands_of(n);
    Values in = r.operands(id), left(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(where.captures));
    std::vector<bool> keep(n.bodies[0]->inputs.size(), true);
    std::map<std::size_t, const Tensor*> constants;  // by input of the bodies
    std::map<std::size_t, std::size_t> twice;
    for (std::size_t i = where.captures; i < in.size(); ++i) {
      const std::size_t input = i - where.first;
      const Tensor* c = match::constant_of(r.builder().graph().nodes[in[i].at.node]);
      const bool read = std::ranges::any_of(n.bodies, [&](const GraphPtr& b) { return reads(*b, input); });
      const auto same =
          std::find_if(in.begin() + static_cast<std::ptrdiff_t>(where.captures),
                       in.begin() + static_cast<std::ptrdiff_t>(i), [&](const Value& v) { return v.at == in[i].at; });
      if (c || !read) {
        constants[input] = c;
      } else if (same != in.begin() + static_cast<std::ptrdiff_t>(i)) {
        twice[input] = static_cast<std::size_t>(same - in.begin()) - where.first;
      } else {
        left.push_back(in[i]);
        continue;
      }
      keep[input] = false;
    }
    if (left.size() == in.size()) return {};
    done_["captures left out"] += static_cast<Index>(in.size() - left.size());
    std::vector<GraphPtr> bodies;
    for (const GraphPtr& b : n.bodies) bodies.push_back(fewer_inputs(*b, keep, constants, twice));
    return r.builder().emit(*n.op, n.attrs, left, std::move(bodies), n.instance);
  }

  static bool reads(const Graph& body, std::size_t input) {
    const Id id = body.inputs[input];
    return !body.users(id).empty() || body.is_output(id);
  }

  static GraphPtr fewer_inputs(const Graph& body, const std::vector<bool>& keep,
                               const std::map<std::size_t, const Tensor*>& constants,
                               const std::map<std::size_t, std::size_t>& twice) {
    Builder b;
    Values arguments(body.inputs.size());
    const auto type = [&](std::size_t i) { return body.nodes[body.inputs[i]].results[0]; };
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (keep[i]) arguments[i] = b.input(body.input_names[i], type(i));
    }
    for (const auto& [i, tensor] : constants) {
      if (tensor) arguments[i] = constant(b, *tensor);
    }
    for (const auto& [i, first] : twice) arguments[i] = arguments[first];
    return std::make_shared<const Graph>(replaced(b, body, arguments));
  }

  // The body on these arguments; those without a value are not read.
  static Graph replaced(Builder& b, const Graph& body, const Values& arguments) {
    std::vector<Values> made(body.nodes.size());
    const std::vector<bool> live = live_nodes(body);
    for (std::size_t i = 0; i < arguments.size(); ++i) made[body.inputs[i]] = {arguments[i]};
    for (Id i = 0; i < body.nodes.size(); ++i) {
      const Node& n = body.nodes[i];
      if (!live[i] || is_input(n)) continue;
      Values operands;
      for (const Operand o : n.operands) operands.push_back(made[o.node][o.result]);
      made[i] = b.emit(*n.op, n.attrs, operands, n.bodies, n.instance);
    }
    for (const Check& c : body.checks) b.check(c.left, c.right, c.why);
    for (const Label& l : body.labels) {
      if (!made[l.at.node].empty() && made[l.at.node][l.at.result].builder)
        b.label(made[l.at.node][l.at.result], l.text);
    }
    Values outputs;
    for (const Operand o : body.outputs) outputs.push_back(made[o.node][o.result]);
    return b.finish(outputs, body.output_names);
  }

  std::map<std::string_view, Index> done_;
};

}  // namespace

Graph simplify_control(const Graph& g, PassContext& context) {
  const auto concerns = [](const Node& n) { return is_control(*n.op) || n.op == &call_op(); };
  if (std::ranges::none_of(g.nodes, concerns)) return g;
  Simplifier s;
  Graph made = g;
  // What one rule does may let another; what came out of a body may be computed now, and decide more.
  for (Index before = 0;; before = s.count()) {
    made = drop_dead(s.run(made));
    if (s.count() == before) break;
    made = fold_constants(made, context);
  }
  for (const auto& [what, count] : s.done()) context.remark(fmt::format("{}: {}", what, count));
  if (s.done().empty()) return made;
  return rewrite(made, [&](Rewriter& r, Id id) -> std::optional<Values> {
    const Node& n = r.from().nodes[id];
    if (!is_control(*n.op)) return {};
    std::vector<GraphPtr> bodies;
    for (const GraphPtr& b : n.bodies)
      bodies.push_back(std::make_shared<const Graph>(simplify_control(fold_constants(*b, context), context)));
    return r.builder().emit(*n.op, n.attrs, r.operands(id), std::move(bodies), n.instance);
  });
}

}  // namespace rlx
