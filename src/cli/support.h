// What of an ONNX model rlx cannot import: the complete list, without a run.
#pragma once

#include <string>
#include <vector>

#include "io/onnx/onnx.h"

namespace rlx::cli {

/// What an import came to.
struct Support {
  std::vector<OnnxProblem> problems;  // nodes and inputs, in the order of the file
  std::string error;                  // why there is no graph, empty when there is one
  std::size_t nodes = 0;              // of the graph in rlx's own ops, when there is one
};

/// Imports an ONNX file for all sizes and says what stands in the way.
Support support_of(const std::string& path);
std::string support_table(const std::string& path, const Support& s);
/// The same as a JSON object.
std::string support_json(const std::string& path, const Support& s);

}  // namespace rlx::cli
