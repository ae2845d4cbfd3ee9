// Graphs inside of graphs: values of the graph around, bodies as graphs of their own or in place, and what is known
// without running.
#include <algorithm>

#include "core/error.h"
#include "io/onnx/importer.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/sizes/sizes.h"
#include "passes/match.h"

namespace rlx::onnx {

namespace {

// The level that values belong to, for the time of a body.
class Entered {
 public:
  Entered(Level*& current, Level& inner) : current_(&current), before_(current) { current = &inner; }
  ~Entered() { *current_ = before_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  Level** current_;
  Level* before_;
};

// Known integers as a tensor, when all of them are numbers.
std::optional<Tensor> known_numbers(Value v) {
  const std::vector<Dim>* elements = v.builder->known(v);
  if (!elements || v.rank() > 1 || !std::ranges::all_of(*elements, &Dim::is_constant)) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (const Dim& d : *elements) numbers.push_back(d.constant());
  const std::vector<Index> shape =
      v.rank() == 0 ? std::vector<Index>{} : std::vector{static_cast<Index>(numbers.size())};
  return Tensor::of<std::int64_t>(v.dtype(), shape, numbers);
}

}  // namespace

std::string_view kind_of(const Item& item) {
  return item.optional ? "an optional value" : item.sequence ? "a sequence" : "a tensor";
}

// Constants and known sizes are made again, so that they stay known; other values become inputs of the body.
Value Importer::lift(Level& level, Value v) {
  if (v.builder == &level.builder) return v;
  ensure(level.outer != nullptr, "a value of no graph around");
  const Value outer = lift(*level.outer, v);
  const auto it = level.inner.find(outer.at);
  if (it != level.inner.end()) return it->second;
  Value here;
  if (const Tensor* t = constant_of(outer)) {
    here = constant(level.builder, *t);
  } else if (const std::vector<Dim>* elements = outer.builder->known(outer); elements && outer.rank() <= 1) {
    here = reshape(cast(sizes(level.builder, *elements), outer.dtype()), outer.type().dims);
  } else {
    here = level.builder.input("c" + std::to_string(level.captures.size()), outer.type());
    level.captures.push_back(outer);
  }
  level.inner.emplace(outer.at, here);
  return here;
}

Importer::Body Importer::body(std::span<const TensorType> types,
                              const std::function<Values(std::span<const Value>)>& build) {
  Level level;
  level.outer = level_;
  const Entered entered(level_, level);
  Values inputs;
  for (const TensorType& t : types) inputs.push_back(level.builder.input("i" + std::to_string(inputs.size()), t));
  const Values outputs = build(inputs);
  charge_new_nodes();
  Graph graph = level.builder.finish(outputs);
  return {std::move(graph), std::move(level.captures)};
}

Items Importer::inline_graph(const GraphProto& graph, Frame& frame, const Items& inputs) {
  require(frame.depth < deepest, "graphs inside of graphs are nested deeper than {}", deepest);
  require(inputs.size() == graph.inputs.size(), "the body has {} inputs, expected {}", graph.inputs.size(),
          inputs.size());
  Scope scope{frame.scope, level_, {}};
  Frame inner{&scope, frame.opsets, frame.attributes, frame.in_function, frame.depth + 1};
  initializers(graph, scope);
  for (std::size_t i = 0; i < inputs.size(); ++i) define(graph.inputs[i].name, inputs[i], inner);
  nodes(graph.nodes, inner);
  Items out;
  for (const ValueInfo& info : graph.outputs) {
    const auto v = find(info.name, inner, nullptr);
    require(v.has_value(), "a node of the body {} cannot be imported", in_quotes(graph.name));
    out.push_back(*v);
  }
  return out;
}

std::optional<Tensor> Importer::computed(Value v) const {
  if (const Tensor* t = constant_of(v)) return *t;
  if (auto numbers = known_numbers(v)) return numbers;
  return std::nullopt;
}

std::optional<bool> Importer::decided(Value condition, int depth) const {
  constexpr int deepest_chain = 50;
  if (depth > deepest_chain) return std::nullopt;
  const Node& n = condition.builder->graph().nodes[condition.at.node];
  const auto operand = [&](std::size_t i) { return Value{condition.builder, n.operands[i]}; };
  if (n.op == &match::op("equal")) {
    const auto a = known(operand(0)), b = known(operand(1));
    if (a && b && a->size() == 1 && b->size() == 1) {
      const Tri same = rlx::equal((*a)[0], (*b)[0]);
      if (same != Tri::unknown) return same == Tri::yes;
    }
  }
  const bool passes_on = n.op == &reshape_op || (n.op == &cast_op && operand(0).dtype() == DType::boolean);
  if (passes_on) return decided(operand(0), depth + 1);
  if (n.op == &match::op("bitwise_not")) {
    const auto inner = decided(operand(0), depth + 1);
    return inner ? std::optional(!*inner) : inner;
  }
  const std::optional<Tensor> value = computed(condition);
  if (!value || value->count() != 1) return std::nullopt;
  return load<std::int64_t>(*value)[0] != 0;
}

Item Importer::sequence_input(const ValueInfo& info) {
  const std::vector<TensorType>& types = options_->sequences.find(info.name)->second;
  require(info.kind == "sequence" || info.kind == "optional", "'{}': input {} is {}, no sequence or optional value",
          model_->file.name, in_quotes(info.name),
          info.kind.empty() ? std::string("of no stated type") : fmt::format("a {}", info.kind));
  Item item;
  item.optional = info.kind == "optional";
  item.sequence = info.kind == "sequence" || info.inside == "sequence";
  item.none = item.optional && types.empty();
  require(item.sequence || types.size() <= 1, "'{}': input {} is one optional tensor, {} are given", model_->file.name,
          in_quotes(info.name), types.size());
  for (const TensorType& t : types) {
    const std::string end = item.sequence ? "." + std::to_string(item.values.size()) : "";
    item.values.push_back(level_->builder.input(std::string(info.name) + end, t));
  }
  return item;
}

}  // namespace rlx::onnx
