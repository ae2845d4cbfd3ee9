// Runs the steps that step makers make for one node, over tensors, as a program would: poisoned results, scratch of its
// own, any pieces.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "device/makers.h"
#include "ir/graph.h"
#include "run_step.h"

namespace rlx::test {

/// An operand as a step finds it: in `memory`, from `offset` (elements) on, with strides in elements (none: dense).
struct PlacedInput {
  Tensor memory;
  Index offset = 0;
  std::vector<Index> strides = {};
  PlacedInput(Tensor t) : memory(std::move(t)) {}
  PlacedInput(Tensor t, Index at, std::vector<Index> steps)
      : memory(std::move(t)), offset(at), strides(std::move(steps)) {}
};

/// The node that is no input; there must be exactly one.
inline const Node& only_node(const Graph& g) {
  const Node* found = nullptr;
  for (const Node& n : g.nodes) {
    if (is_input(n)) continue;
    EXPECT_EQ(found, nullptr) << "more than one node";
    found = &n;
  }
  return *found;
}

/// Results of the step for the one node of `g`, run in pieces of `piece` items (0: the step's grain), last piece first
/// when `backwards`; nothing and `why` when every maker declines.
inline std::optional<std::vector<Tensor>> run_node(const Graph& g, const std::vector<PlacedInput>& in,
                                                   const DimEnv& dims, Index piece = 0, bool backwards = false,
                                                   std::string* why = nullptr, std::string* name = nullptr) {
  const Node& node = only_node(g);
  constexpr BufferId results = 1000;
  std::vector<Slot> reads, writes;
  for (const Operand o : node.operands) {
    const auto at = static_cast<std::size_t>(std::ranges::find(g.inputs, o.node) - g.inputs.begin());
    Slot s{static_cast<BufferId>(at), g.type(o), in[at].offset * (bits(g.type(o).dtype) / 8)};
    s.strides.assign(in[at].strides.begin(), in[at].strides.end());
    reads.push_back(s);
  }
  std::vector<Tensor> out;
  std::vector<std::byte*> places;
  for (std::size_t r = 0; r < node.results.size(); ++r) {
    std::vector<Index> shape;
    for (const Dim& d : node.results[r].dims) shape.push_back(d.evaluate(dims));
    out.emplace_back(node.results[r].dtype, shape);
    writes.push_back({static_cast<BufferId>(results + r), node.results[r]});
  }
  for (Tensor& t : out) {
    places.push_back(t.mutable_bytes().data());
    if (t.count() > 0) std::memset(places.back(), 0xFF, t.mutable_bytes().size());
  }
  const std::optional<Step> step = cpu_makers().make({node, reads, writes, why});
  if (!step) return std::nullopt;
  if (name) *name = step->name;
  Index scratch_bytes = 64;
  for (const Use& u : step->uses) {
    if (u.buffer == own_scratch) scratch_bytes = std::max(scratch_bytes, u.bytes.evaluate(dims));
  }
  const Bytes scratch = Bytes::allocate(scratch_bytes);
  const BoundStep bound(*step, dims, [&](BufferId id) {
    if (id == own_scratch) return const_cast<std::byte*>(scratch.data.data());
    if (id >= results) return places[id - results];
    return const_cast<std::byte*>(in[id].memory.bytes().data());
  });
  if (piece == 0) {
    bound.run_all();
  } else {
    const Index pieces = (bound.items() + piece - 1) / piece;
    for (Index i = 0; i < pieces; ++i) {
      const Index k = backwards ? pieces - 1 - i : i;
      bound.run({k * piece, std::min(bound.items(), (k + 1) * piece)});
    }
  }
  return out;
}

inline std::vector<PlacedInput> placed(const std::vector<Tensor>& in) { return {in.begin(), in.end()}; }

}  // namespace rlx::test
