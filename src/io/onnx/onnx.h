// ONNX models as graphs: everything that exporters write for encoders, multilayer perceptrons and small transformers.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/os_posix.h"
#include "core/tensor.h"
#include "ir/graph.h"

namespace rlx {

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
};

/// The model in the file `path`, external data in its folder included. Inputs, outputs and labels keep their names;
/// initialisers become constants that share the bytes of the file where alignment allows it. A declared size with a
/// name becomes a symbol of that name (other characters than letters, digits and _ are replaced), one without a name a
/// new symbol `INPUT_AXIS`. Operators of versions 7 to 28 of the standard set are known, see docs/onnx.md. Throws Error
/// for a file that is not well formed, for names that are not defined or defined twice, and one Error that lists every
/// node that cannot be imported and why.
Graph import_onnx(const std::filesystem::path& path, const OnnxOptions& options = {});
/// The same over bytes, without external data; `name` stands for the path in messages.
Graph import_onnx(const Bytes& bytes, const std::string& name, const OnnxOptions& options = {});

}  // namespace rlx
