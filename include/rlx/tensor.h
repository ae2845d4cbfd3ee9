// Tensors in host memory: element types (DType), shapes with symbolic sizes (Dim, TensorType), Tensor with load and
// store, and the errors that all of rlx throws: Error (the input is bad), DeviceError (the machine failed).
#pragma once

#include "core/dim.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/tensor.h"
#include "core/type.h"
