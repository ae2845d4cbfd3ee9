// Values that follow from constants alone: sizes that an exporter has computed from numbers.
#include "io/onnx/importer.h"
#include "ops/constant/constant.h"
#include "runtime/evaluate.h"

namespace rlx::onnx {

namespace {

constexpr std::size_t most_nodes = 64;
constexpr Index most_elements = 4096;

bool small(const TensorType& t) {
  if (t.encoding || !t.is_constant()) return false;
  Index count = 1;
  for (const Dim& d : t.dims) {
    if (d.constant() > most_elements) return false;
    count *= d.constant();
    if (count > most_elements) return false;
  }
  return true;
}

// Nodes that `id` follows from, in order; nothing when they are many or large, or an input is among them.
std::optional<std::vector<Id>> sources(const Graph& g, Id id) {
  std::set<Id> seen{id};
  std::vector<Id> stack{id};
  while (!stack.empty()) {
    const Node& n = g.nodes[stack.back()];
    stack.pop_back();
    if (is_input(n) || !n.bodies.empty() || seen.size() > most_nodes) return std::nullopt;
    for (const TensorType& t : n.results) {
      if (!small(t)) return std::nullopt;
    }
    for (const Operand o : n.operands) {
      if (seen.insert(o.node).second) stack.push_back(o.node);
    }
  }
  return std::vector<Id>(seen.begin(), seen.end());
}

}  // namespace

const Tensor* Importer::evaluated(Value v) const {
  Level* level = level_;
  while (level && &level->builder != v.builder) level = level->outer;
  if (!level) return nullptr;
  if (const auto it = level->evaluated.find(v.at); it != level->evaluated.end()) return &it->second;
  const Graph& g = v.builder->graph();
  const auto nodes = sources(g, v.at.node);
  if (!nodes) return nullptr;
  try {
    Builder b;
    std::unordered_map<Id, Values> made;
    for (const Id id : *nodes) {
      const Node& n = g.nodes[id];
      Values operands;
      for (const Operand o : n.operands) operands.push_back(made.at(o.node)[o.result]);
      made[id] = b.emit(*n.op, n.attrs, operands, {}, n.instance);
    }
    const Graph alone = b.finish({made.at(v.at.node)[v.at.result]});
    if (!alone.symbols.empty()) return nullptr;
    return &level->evaluated.emplace(v.at, evaluate(alone, std::span<const Tensor>())[0]).first->second;
  } catch (const Error&) {
    return nullptr;  // a run says what is wrong, should it get there
  }
}

}  // namespace rlx::onnx
