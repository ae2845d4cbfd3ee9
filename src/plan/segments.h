// Segments: a graph with sizes that a run finds, as graphs without, one after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx {

/// Where a segment, or the whole, gets a value: from the caller, or an earlier segment.
struct SegmentSource {
  std::optional<std::size_t> segment;  // none: an input of the whole
  std::size_t number = 0;              // of the output of the segment, or of the input
};

struct Segment {
  GraphPtr graph;
  std::vector<SegmentSource> inputs;                       // by input of the graph; states come from the caller
  std::vector<std::pair<std::string, std::size_t>> sizes;  // symbol, and the output that is its value
};

struct Segments {
  std::vector<Segment> parts;
  std::vector<SegmentSource> outputs;  // by output of the whole
};

/// Cuts a graph where its sizes are found: each segment computes the sizes of the next. States are written by the last.
/// Symbols of a segment that none of its inputs shows must be given to a run.
Segments cut_segments(const Graph& g);

}  // namespace rlx
