// Rewriter: makes a graph from a graph, node by node.
#pragma once

#include <functional>
#include <optional>

#include "ir/builder.h"

namespace rlx {

/// Copies a graph into a new one, with replacements on the way. Inputs exist from the start, in order; labels, states,
/// checks, output names and instances come along; nodes that nothing needs are left out.
class Rewriter {
 public:
  explicit Rewriter(const Graph& from);

  const Graph& from() const { return from_; }
  Builder& builder() { return builder_; }
  /// The new value of an old operand, which must have been copied or replaced.
  Value value(Operand old) const;
  Values operands(Id id) const;
  bool known(Operand old) const;
  bool done(Id id) const { return !made_[id].empty(); }
  /// Emits an old node on the new operands.
  Values copy(Id id);
  /// States what stands for an old value, or for all results of an old node; types must be equal.
  void replace(Operand old, Value by);
  void replace(Id id, const Values& by);
  /// Copies what is needed and not yet done, in order, and ends.
  Graph finish();
  /// Ends with what is there; labels of values without counterpart are dropped.
  Graph finish_as_is();

 private:
  const Graph& from_;
  Builder builder_;
  std::vector<Values> made_;
};

/// Rebuilds `g`; `rule` may give replacements for the results of a node (its operands are available), or nothing to
/// copy it. Only live nodes are visited.
Graph rewrite(const Graph& g, const std::function<std::optional<Values>(Rewriter&, Id)>& rule);

/// The graph without nodes that neither outputs nor states need.
Graph drop_dead(const Graph& g);

/// Replaces symbols everywhere: types, attributes, checks, bodies.
Graph substitute_symbols(const Graph& g, const NamedDims& by);

}  // namespace rlx
