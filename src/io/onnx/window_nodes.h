// How the format states windows: kernel_shape, strides, dilations, pads, auto_pad and ceil_mode of a node.
#pragma once

#include "io/onnx/importer.h"
#include "ops/conv/conv_windows.h"

namespace rlx::onnx {

/// Windows over the axes of `x` behind the first two, and the padding behind each of them.
struct NodeWindows {
  Windows windows;
  std::vector<Dim> after;
};

/// Reads the attributes; `kernel` holds the sizes of a weight, or is empty: kernel_shape then states them.
NodeWindows node_windows(NodeArgs& n, const TensorType& x, std::vector<Dim> kernel, bool ceil);

/// A list attribute with one entry an axis; `standard` everywhere when it is left out.
std::vector<Index> axis_list(NodeArgs& n, std::string_view name, std::size_t axes, Index standard);

/// `v` [C] for the channels of a tensor of this rank: [C, 1, ..].
Value along_channels(Value v, Index rank);

}  // namespace rlx::onnx
