// Builder: makes a graph node by node, infers types at once, and shares equal nodes.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/intern.h"
#include "ir/op.h"

namespace rlx {

class Builder {
 public:
  Builder() = default;
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// A graph input; names are unique. Throws Error for an empty or used name, or a symbol with other bounds than
  /// before. As all that follow, a call that throws Error leaves the builder as it was.
  Value input(std::string_view name, TensorType type);

  /// Adds a node, or finds the equal one. Throws Error that names op, operand types and the rule that fails.
  Values emit(const OpDef& op, Attrs attrs, std::span<const Value> operands, std::vector<GraphPtr> bodies = {},
              std::uint32_t instance = 0);
  /// The same for an op of one result.
  template <class A>
  Value emit_one(const Op<A>& op, A attrs, std::initializer_list<Value> operands) {
    return emit(op, Attrs(std::move(attrs)), std::span(operands.begin(), operands.size()))[0];
  }

  /// Declares a state: a graph input and its next value, of equal type; names are unique.
  void state(std::string_view name, Value input, Value output);
  /// Declares an equality for run time (unless provable); a provable difference is an Error.
  void check(const Dim& left, const Dim& right, std::string_view why);
  /// Labels a value.
  void label(Value value, std::string_view text);

  /// Adds the nodes of `body` with `arguments` in place of its inputs; gives its outputs. The body's symbols are this
  /// graph's.
  Values inline_graph(const Graph& body, std::span<const Value> arguments);

  /// Ends building. Unnamed outputs have empty names. Afterwards every other call throws Error, and the values
  /// of this builder are of no more use.
  Graph finish(std::span<const Value> outputs, std::vector<std::string> names = {});
  Graph finish(std::initializer_list<Value> outputs) { return finish(std::span(outputs.begin(), outputs.size())); }

  const Graph& graph() const { return graph_; }
  /// Known elements of a small integer tensor, or null.
  const std::vector<Dim>* known(Value v) const;
  /// Throws Error unless `v` belongs to this builder.
  void own(Value v) const;

 private:
  // Throws Error after finish().
  void open() const;
  // Throws Error when a symbol has other bounds here; note_symbols() then takes them all.
  void compare_symbols(const DimSymbols& found) const;
  void note_symbols(const DimSymbols& found);
  std::vector<TensorType> infer(const OpDef& op, const Attrs& attrs, InferContext& context);
  Values results(Id id);

  Graph graph_;
  bool finished_ = false;
  InternTable interned_;
  std::unordered_map<std::string, Id> input_ids_;
  std::unordered_map<std::size_t, std::size_t> check_ids_;  // hash -> position
  std::unordered_set<std::string> state_names_;
  std::unordered_map<Id, std::size_t> state_ids_;  // input -> position
};

inline const TensorType& Value::type() const {
  ensure(builder && at.node < builder->graph().nodes.size(), "a value outlives its graph");
  return builder->graph().type(at);
}

}  // namespace rlx
