// The graph: nodes in topological order, its inputs, outputs, states and run-time checks. A value type; passes take one
// and give another. Only Builder and Rewriter make graphs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/type.h"
#include "ir/attrs.h"

namespace rlx {

class OpDef;
struct Graph;

using Id = std::uint32_t;
using GraphPtr = std::shared_ptr<const Graph>;

/// Result `result` of node `node`.
struct Operand {
  Id node = 0;
  std::uint32_t result = 0;
  auto operator<=>(const Operand&) const = default;
};

struct OperandHash {
  std::size_t operator()(Operand o) const { return (std::size_t{o.node} << 8) ^ o.result; }
};

/// One operation. Identity is op, attributes, operands, bodies and instance; results follow from them.
struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<Operand> operands;
  std::vector<TensorType> results;
  std::vector<GraphPtr> bodies;
  std::uint32_t instance = 0;  // keeps deliberate copies apart
};

/// State that lives between runs: `output` becomes the next run's `input`. Updated in place by the planner; reads of
/// the old value come before the update.
struct StatePair {
  std::string name;
  Operand input, output;
  bool operator==(const StatePair&) const = default;
};

/// An equality of sizes that could not be proved; verified when sizes are bound.
struct Check {
  Dim left, right;
  std::string why;
  bool operator==(const Check&) const = default;
};

/// A label of a value, for people; several may name one value. No part of identity.
struct Label {
  Operand at;
  std::string text;
  bool operator==(const Label&) const = default;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Id> inputs;
  std::vector<std::string> input_names;  // unique, not empty
  std::vector<Operand> outputs;
  std::vector<std::string> output_names;  // empty: unnamed
  std::vector<StatePair> states;
  std::vector<Check> checks;
  std::vector<Label> labels;
  DimSymbols symbols;
  /// Elements of small integer tensors, as sizes, where inference knows them.
  std::unordered_map<Operand, std::vector<Dim>, OperandHash> values;

  const TensorType& type(Operand o) const { return nodes[o.node].results[o.result]; }
  /// Nodes that read `id`, ascending, once for every operand that does.
  std::span<const Id> users(Id id) const {
    return std::span(user_list_).subspan(user_begin_[id], user_begin_[id + 1] - user_begin_[id]);
  }
  /// Whether a result of `id` is an output or the new value of a state.
  bool is_output(Id id) const { return escapes_[id]; }
  /// Structural hash over everything but labels.
  std::size_t hash() const { return hash_; }

  /// Computes users, outputs and hash; Builder calls it once.
  void index();

 private:
  std::vector<std::uint32_t> user_begin_;
  std::vector<Id> user_list_;
  std::vector<bool> escapes_;
  std::size_t hash_ = 0;
};

/// Same nodes, inputs, outputs, states and checks; labels may differ.
bool same(const Graph& a, const Graph& b);
bool same(const GraphPtr& a, const GraphPtr& b);

/// Combines hashes.
inline std::size_t mix(std::size_t h, std::size_t v) {
  return (h ^ (v + 0x9E3779B97F4A7C15ull + (h << 6))) * 0xBF58476D1CE4E5B9ull ^ (h >> 29);
}

/// Marks the nodes that outputs and states need; inputs are always marked.
std::vector<bool> live_nodes(const Graph& g);

/// The op of graph inputs; it has no rules.
const OpDef& input_op();
inline bool is_input(const Node& n) { return n.op == &input_op(); }

/// A short form for messages: `%12 = matmul(f32[4,8], f32[9,16])`.
std::string describe(const Graph& g, Id id);

}  // namespace rlx
