// Graphs: Builder and Value, a function for every op (`matmul`, `softmax`, `+`; docs/ops.md lists them), gradients as
// graphs, the text form (print, parse), and evaluate, which computes a graph op by op without compiling it.
#pragma once

#include "all_ops.h"
#include "autodiff/gradient.h"
#include "ir/builder.h"
#include "ir/graph.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "rlx/tensor.h"
#include "runtime/evaluate.h"
