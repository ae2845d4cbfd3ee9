// ONNX models as graphs: everything that exporters write for encoders, multilayer perceptrons and small transformers.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/os_posix.h"
#include "core/tensor.h"
#include "ir/graph.h"

namespace rlx {

/// One thing of a model that cannot be imported: a node, or an input of the model (then `op` is empty).
struct OnnxProblem {
  std::string position;  // among the nodes of the graph, from 0; `12.3` is node 3 of a body or function in node 12
  std::string name;      // of the node or the input; may be empty
  std::string op, domain;
  Index version = 0;  // of the domain's operators, -1: the model imports none
  std::string why;
  std::vector<std::pair<std::string, std::string>> operands;    // name in the file and type; `?`: not known
  std::vector<std::pair<std::string, std::string>> attributes;  // name and value
  std::vector<std::string> results;                             // names
};

struct OnnxOptions {
  /// Bounds of the model's sizes of unknown value, by the name that the file or the graph gives them.
  std::map<std::string, Bounds, std::less<>> bounds;
  /// Bounds of the others. Where the model itself needs closer ones (a table of 512 positions), the graph has those.
  Bounds standard{1, 65536};
  /// Shapes of inputs that are known for good, by the name in the file: their sizes become numbers wherever the file
  /// has them, so that branches and operators that need known sizes can be resolved. -1 leaves a size as it is.
  std::map<std::string, std::vector<Index>, std::less<>> shapes = {};
  /// Inputs that have one value for good, by the name in the file: they become constants, and operands that must be
  /// known (the target of a Reshape) may come from them.
  std::map<std::string, Tensor, std::less<>> fixed = {};
  /// Inputs that are sequences or optional values, by the name in the file, with the types of their elements: these
  /// become inputs NAME.0, NAME.1, … (an optional tensor NAME, or no input when there is no element).
  std::map<std::string, std::vector<TensorType>, std::less<>> sequences = {};
  FileMode mode = FileMode::map;
  /// Hears of every input and node that cannot be imported, in order, before import_onnx throws; nodes that read what
  /// these would have made are only heard of where their own operator or version is unknown.
  std::function<void(const OnnxProblem&)> on_problem = {};
};

/// The model in the file `path`, external data in its folder included. Inputs, outputs and labels keep their names;
/// initialisers become constants that share the bytes of the file where alignment allows it. A declared size with a
/// name becomes a symbol of that name (other characters than letters, digits and _ are replaced), one without a name a
/// new symbol `INPUT_AXIS`. Operators of versions 6 to 28 of the standard set, most of versions 1 to 5 too, are known,
/// see docs/onnx.md. Throws Error for a file that is not well formed, for names that are not defined or defined twice,
/// and one Error that lists every node that cannot be imported and why.
Graph import_onnx(const std::filesystem::path& path, const OnnxOptions& options = {});
/// The same over bytes, without external data; `name` stands for the path in messages.
Graph import_onnx(const Bytes& bytes, const std::string& name, const OnnxOptions& options = {});

}  // namespace rlx
