// Builder: interning, inference, names and checks.
#include "ir/builder.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

void InferContext::track(std::size_t r, std::vector<Dim> elements) { tracked.emplace_back(r, std::move(elements)); }

void InferContext::forget_wrapping(Types results) {
  const auto fits = [](DType type, const Dim& d) {
    const Bounds b = d.bounds();
    if (is_unsigned_integer(type) && b.lo < 0) return false;
    if (bits(type) == 64) return true;
    const int width = bits(type) - (is_signed_integer(type) ? 1 : 0);
    const Index above = Index{1} << width;
    return b.hi < above && b.lo >= (is_signed_integer(type) ? -above : 0);
  };
  std::erase_if(tracked, [&](const auto& t) {
    const DType type = results[t.first].dtype;
    return !is_integer(type) || !std::ranges::all_of(t.second, [&](const Dim& d) { return fits(type, d); });
  });
}

void InferContext::equal(const Dim& a, const Dim& b, std::string_view why) {
  const Tri same = rlx::equal(a, b);
  require(same != Tri::no, "{}: {} is not {}", why, a.text(), b.text());
  if (same == Tri::unknown) checks.push_back({a, b, std::string(why)});
}

std::vector<Dim> InferContext::broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  std::vector<std::pair<Dim, Dim>> unproved;
  std::vector<Dim> out = broadcast_dims(a, b, unproved);
  for (auto& [x, y] : unproved) checks.push_back({x, y, "broadcast"});
  return out;
}

Values Builder::results(Id id) {
  Values r;
  for (std::uint32_t i = 0; i < graph_.nodes[id].results.size(); ++i) r.push_back({this, {id, i}});
  return r;
}

void Builder::open() const { require(!finished_, "the builder has finished its graph, a new one needs a new builder"); }

void Builder::own(Value v) const {
  open();
  require(v.builder == this, "a value of another graph, or none, is used as an operand");
  ensure(v.at.node < graph_.nodes.size() && v.at.result < graph_.nodes[v.at.node].results.size(), "stale value");
}

void Builder::compare_symbols(const DimSymbols& found) const {
  for (const auto& [name, bounds] : found) {
    const auto it = graph_.symbols.find(name);
    require(it == graph_.symbols.end() || it->second == bounds, "size symbol {} has bounds {}..{} and {}..{}", name,
            it == graph_.symbols.end() ? 0 : it->second.lo, it == graph_.symbols.end() ? 0 : it->second.hi, bounds.lo,
            bounds.hi);
  }
}

void Builder::note_symbols(const DimSymbols& found) { graph_.symbols.insert(found.begin(), found.end()); }

Value Builder::input(std::string_view name, TensorType type) {
  open();
  require(!name.empty(), "an input needs a name");
  const auto id = static_cast<Id>(graph_.nodes.size());
  require(!input_ids_.contains(std::string(name)), "input {} is declared twice", name);
  for (const Dim& d : type.dims) {
    require(d.bounds().hi >= 0, "input {} of type {} has a negative size", name, type.text());
  }
  DimSymbols found;
  for (const Dim& d : type.dims) d.collect_symbols(found);
  compare_symbols(found);
  note_symbols(found);
  input_ids_.emplace(name, id);
  graph_.nodes.push_back({&input_op(), Attrs(), {}, {std::move(type)}, {}, 0});
  graph_.inputs.push_back(id);
  graph_.input_names.emplace_back(name);
  return {this, {id, 0}};
}

namespace {

std::string call_text(const OpDef& op, std::span<const Value> operands) {
  std::string s(op.name());
  s += '(';
  for (std::size_t i = 0; i < operands.size(); ++i) s += (i ? ", " : "") + operands[i].type().text();
  return s + ')';
}

std::size_t hash_call(const OpDef& op, const Attrs& attrs, std::span<const Value> operands,
                      std::span<const GraphPtr> bodies, std::uint32_t instance) {
  std::size_t h = mix(std::hash<const void*>{}(&op), attrs.hash());
  h = mix(h, instance);
  for (const Value& v : operands) h = mix(h, OperandHash{}(v.at));
  for (const GraphPtr& b : bodies) h = mix(h, b->hash());
  return h;
}

}  // namespace

// Inference, and what must hold before anything of the graph changes.
std::vector<TensorType> Builder::infer(const OpDef& op, const Attrs& attrs, InferContext& context) {
  std::vector<TensorType> inferred = op.infer(attrs, context);
  require(!inferred.empty(), "no results");
  context.forget_wrapping(inferred);
  DimSymbols found;
  attrs.collect_symbols(found);
  for (const TensorType& t : inferred) {
    for (const Dim& d : t.dims) {
      require(d.bounds().hi >= 0, "result {} has a negative size", t.text());
      d.collect_symbols(found);
    }
  }
  for (const Check& c : context.checks) {
    require(equal(c.left, c.right) != Tri::no, "{}: {} is not {}", c.why, c.left.text(), c.right.text());
    if (equal(c.left, c.right) == Tri::yes) continue;
    c.left.collect_symbols(found);
    c.right.collect_symbols(found);
  }
  compare_symbols(found);
  note_symbols(found);
  for (const Check& c : context.checks) check(c.left, c.right, c.why);
  return inferred;
}

Values Builder::emit(const OpDef& op, Attrs attrs, std::span<const Value> operands, std::vector<GraphPtr> bodies,
                     std::uint32_t instance) {
  open();
  for (const Value& v : operands) own(v);
  ensure(&op != &input_op(), "inputs are made by input()");
  ensure(op.accepts(attrs), "attributes of another op");
  const std::size_t hash = hash_call(op, attrs, operands, bodies, instance);
  const auto found = interned_.find(hash, [&](Id id) {
    const Node& n = graph_.nodes[id];
    return n.op == &op && n.instance == instance && n.attrs == attrs &&
           std::ranges::equal(n.operands, operands, {}, {}, &Value::at) &&
           std::ranges::equal(n.bodies, bodies, [](const GraphPtr& x, const GraphPtr& y) { return same(x, y); });
  });
  if (found) return results(*found);

  std::vector<TensorType> types;
  std::vector<const std::vector<Dim>*> known;
  std::vector<Operand> at;
  for (const Value& v : operands) {
    types.push_back(v.type());
    known.push_back(this->known(v));
    at.push_back(v.at);
  }
  InferContext context(types, bodies, known);
  std::vector<TensorType> inferred;
  try {
    inferred = infer(op, attrs, context);
  } catch (const Error& e) {
    const std::string given = attrs.print();
    fail("{}{}: {}", call_text(op, operands), given.empty() ? "" : " {" + given + "}", e.what());
  }
  const auto id = static_cast<Id>(graph_.nodes.size());
  for (auto& [r, elements] : context.tracked)
    graph_.values.insert_or_assign({id, static_cast<std::uint32_t>(r)}, std::move(elements));
  graph_.nodes.push_back({&op, std::move(attrs), std::move(at), std::move(inferred), std::move(bodies), instance});
  interned_.insert(hash, id);
  return results(id);
}

void Builder::state(std::string_view name, Value input, Value output) {
  own(input);
  own(output);
  require(!name.empty(), "a state needs a name");
  require(is_input(graph_.nodes[input.at.node]), "state {} does not begin at a graph input", name);
  require(input.type() == output.type(), "state {} changes type from {} to {}", name, input.type().text(),
          output.type().text());
  require(!state_names_.contains(std::string(name)), "state {} is declared twice", name);
  const auto [it, added] = state_ids_.emplace(input.at.node, graph_.states.size());
  require(added, "states {} and {} begin at the same input", added ? "" : graph_.states[it->second].name, name);
  state_names_.emplace(name);
  graph_.states.push_back({std::string(name), input.at, output.at});
}

void Builder::check(const Dim& left, const Dim& right, std::string_view why) {
  const Tri same = equal(left, right);
  require(same != Tri::no, "{}: {} is not {}", why, left.text(), right.text());
  if (same == Tri::yes) return;
  DimSymbols found;
  left.collect_symbols(found);
  right.collect_symbols(found);
  compare_symbols(found);
  note_symbols(found);
  const std::size_t hash = mix(left.hash(), right.hash());
  const auto [it, added] = check_ids_.emplace(hash, graph_.checks.size());
  if (!added && graph_.checks[it->second].left == left && graph_.checks[it->second].right == right) return;
  graph_.checks.push_back({left, right, std::string(why)});
}

void Builder::label(Value value, std::string_view text) {
  own(value);
  graph_.labels.push_back({value.at, std::string(text)});
}

Values Builder::inline_graph(const Graph& body, std::span<const Value> arguments) {
  require(arguments.size() == body.inputs.size(), "a body of {} inputs is given {} arguments", body.inputs.size(),
          arguments.size());
  std::vector<Values> made(body.nodes.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    own(arguments[i]);
    require(arguments[i].type() == body.nodes[body.inputs[i]].results[0], "body input {} is {}, the argument is {}",
            body.input_names[i], body.nodes[body.inputs[i]].results[0].text(), arguments[i].type().text());
    made[body.inputs[i]] = {arguments[i]};
  }
  Values operands;
  for (Id i = 0; i < body.nodes.size(); ++i) {
    const Node& n = body.nodes[i];
    if (is_input(n)) continue;
    operands.clear();
    for (const Operand o : n.operands) operands.push_back(made[o.node][o.result]);
    made[i] = emit(*n.op, n.attrs, operands, n.bodies, n.instance);
  }
  for (const Check& c : body.checks) check(c.left, c.right, c.why);
  for (const Label& l : body.labels) label(made[l.at.node][l.at.result], l.text);
  Values out;
  for (const Operand o : body.outputs) out.push_back(made[o.node][o.result]);
  return out;
}

const std::vector<Dim>* Builder::known(Value v) const {
  const auto it = graph_.values.find(v.at);
  return it == graph_.values.end() ? nullptr : &it->second;
}

Graph Builder::finish(std::span<const Value> outputs, std::vector<std::string> names) {
  open();
  require(names.empty() || names.size() == outputs.size(), "{} outputs have {} names", outputs.size(), names.size());
  for (const Value& v : outputs) own(v);
  std::vector<std::string_view> used;
  for (const std::string& n : names) {
    if (!n.empty()) used.push_back(n);
  }
  std::ranges::sort(used);
  const auto twice = std::ranges::adjacent_find(used);
  require(twice == used.end(), "output {} is declared twice", twice == used.end() ? "" : *twice);
  graph_.outputs.clear();
  for (const Value& v : outputs) graph_.outputs.push_back(v.at);
  graph_.output_names = std::move(names);
  graph_.output_names.resize(outputs.size());
  graph_.index();
  finished_ = true;
  return std::move(graph_);
}

}  // namespace rlx
