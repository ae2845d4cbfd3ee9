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

struct Program;

/// A step that runs programs of its own: a branch of if, or the body of while or scan once a trip. Uses of the step:
/// operands, results, a second buffer for each carried value, the next condition of a while, the arena of the bodies.
struct Control {
  std::uint32_t step = 0;  // of the program around
  const OpDef* op = nullptr;
  std::uint32_t operands = 0, results = 0, carried = 0, scanned = 0;
  Dim trips = 0;                 // of scan
  std::vector<Dim> slice_bytes;  // of scanned operands, then of stacked results
  std::vector<bool> backward;    // the same
  std::vector<Dim> carried_bytes;
  std::vector<Program> bodies;
  std::uint32_t arena_use = 0;  // its size is known when sizes are bound
  BufferId arena = 0;

  std::uint32_t second() const { return operands + results; }
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
  std::vector<Control> controls;     // by step, ascending
  std::vector<Check> checks;         // of the graph
  std::vector<std::pair<Dim, std::string>> sizes;  // that are not proved to be 0 or more, and the node that has them

  /// The buffer that owns the memory of `b`.
  BufferId owner(BufferId b) const {
    while (shares[b] != b) b = shares[b];
    return b;
  }
};

/// Copies a value between memory of the same type: strided to dense, or between owners.
using CopyMaker = std::function<Step(const Slot& from, const Slot& to)>;

/// The step of an if, while or scan node as what it touches, and `control` filled but for its bodies; the runtime runs
/// it.
Step control_step(const Node& node, std::span<const Slot> in, std::span<const Slot> out, Control& control);

/// Lowers a graph: a view rule or a step for every node, results in caller memory where possible, state in place.
/// Throws one Error that lists every node for which no maker has a step, with the reasons.
Program lower(GraphPtr graph, const MakerTable& makers, const CopyMaker& copy);

/// Which earlier steps each step must wait for: those that wrote what it reads, and those that read or wrote what it
/// writes; only the nearest, since waiting is transitive. By buffer and memory owner, so that shared memory counts.
std::vector<std::vector<std::uint32_t>> dependencies(const Program& program);

}  // namespace rlx
