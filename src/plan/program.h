// A program: the steps of a graph for one device, in order, and the buffers that they touch. Sizes are symbolic still.
#pragma once

#include <string>
#include <vector>

#include "device/makers.h"
#include "ir/graph.h"

namespace rlx {

/// Who owns the memory of a buffer.
enum class BufferKind : std::uint8_t {
  input,     // the caller; read only
  output,    // the caller; written once, read back by later steps
  constant,  // the graph
  state,     // the State of a run
  arena,     // the memory plan
};

struct Buffer {
  BufferKind kind = BufferKind::arena;
  std::size_t number = 0;  // of the input, output, constant or state
  Dim bytes;
  Operand value;  // the first value that lives here
};

struct Program {
  GraphPtr graph;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Id> nodes;             // of each step
  std::vector<Tensor> constants;     // by number; only those that a step reads
  std::vector<BufferId> inputs;      // by input of the graph; states have buffers of kind state
  std::vector<BufferId> outputs;     // by output of the graph
  std::vector<BufferId> shares;      // whose memory a buffer takes: itself, or one that ends where it begins
  std::vector<std::string> remarks;  // copies that were made, and why

  /// The buffer that owns the memory of `b`.
  BufferId owner(BufferId b) const {
    while (shares[b] != b) b = shares[b];
    return b;
  }
};

/// Copies a value between memory of the same type: strided to dense, or between owners.
using CopyMaker = std::function<Step(const Slot& from, const Slot& to)>;

/// Lowers a graph: a view rule or a step for every node, results in caller memory where possible, state in place.
/// Throws one Error that lists every node for which no maker has a step, with the reasons.
Program lower(GraphPtr graph, const MakerTable& makers, const CopyMaker& copy);

/// Which earlier steps each step must wait for: those that wrote what it reads, and those that read or wrote what it
/// writes; only the nearest, since waiting is transitive. By buffer and memory owner, so that shared memory counts.
std::vector<std::vector<std::uint32_t>> dependencies(const Program& program);

}  // namespace rlx
