// Files: ONNX models as graphs, tensors in safetensors files and in NumPy's npy and npz. Files are mapped: a tensor
// read from one shares its pages. What is not well formed is an Error that names the file, the place and the value.
#pragma once

#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "io/safetensors.h"
#include "rlx/graph.h"
