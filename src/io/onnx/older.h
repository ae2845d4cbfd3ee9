// What operators had before version 7 of the standard set: broadcasting by attributes.
#pragma once

#include "io/onnx/importer.h"

namespace rlx::onnx {

/// Operand 1 of an elementwise operator, in the form that broadcasts to operand 0. Before version 7 the attribute
/// `broadcast` allows it to have only the axes of operand 0 from `axis` on (the last ones unless given); without it the
/// sizes must be equal, else Error.
Value second_operand(NodeArgs& n);

}  // namespace rlx::onnx
