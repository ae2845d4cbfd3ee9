// Random graphs over all ops of rlx, for tests that hold for every graph: optimised and not, compiled and evaluated.
#pragma once

#include <vector>

#include "core/tensor.h"
#include "ir/graph.h"

namespace rlx::test {

struct RandomGraphOptions {
  int steps = 16;             // about as many nodes, or some more
  Index largest = 4096;       // elements of a value, for all sizes that random_dims gives
  bool symbols = true;        // some sizes are B (1..4), S (1..7) or N (0..5)
  bool empty = true;          // some sizes are 0
  bool special = true;        // constants may be infinite, NaN or -0
  bool states = true;         // some graphs have a state
  bool found = false;         // some sizes are found by a run
  std::vector<DType> dtypes;  // of inputs; none: f32 mostly, also f64, f16, bf16, i32, i64, bool
};

/// A graph that evaluates without Error for every binding that random_dims gives; equal seeds give equal graphs. It has
/// no run-time checks.
Graph random_graph(unsigned seed, const RandomGraphOptions& options = {});

/// A value for every symbol of `g`, from its bounds, at most 7; 0 is among them where it is allowed.
DimEnv random_dims(const Graph& g, unsigned seed);

/// Inputs of `g`, those of states included, in order: floats in [-2, 2), some of them small integers, and, if
/// `special`, a few infinities, NaN and zeros of both signs; integers in [-5, 5].
std::vector<Tensor> random_inputs(const Graph& g, const DimEnv& dims, unsigned seed, bool special = false);

}  // namespace rlx::test
