// What a caller must know of a graph: names and types of inputs, outputs and states, symbols, run-time checks.
#pragma once

#include "ir/graph.h"

namespace rlx {

struct Interface {
  struct Port {
    std::string name;
    TensorType type;
  };
  struct StatePort {
    std::string name;
    std::size_t input = 0;  // the input that is the old value
    TensorType type;
  };
  std::vector<Port> inputs, outputs;
  std::vector<StatePort> states;
  DimSymbols symbols;         // without those that a run finds
  std::vector<Check> checks;  // of sizes that are known from the start

  explicit Interface(const Graph& g);
};

/// Values of the symbols that the types of `inputs`, whose sizes are constants, show; `dims` gives further ones. Throws
/// Error when a type or rank differs, a symbol has two values, a size disagrees, a bound or a run-time check does not
/// hold.
DimEnv bind_dims(const Interface& interface, Types inputs, const DimEnv& dims = {});

/// Whether all symbols of a check are among `symbols`.
bool knows(const DimSymbols& symbols, const Check& c);
/// Throws Error unless the check holds.
void verify_check(const Check& c, const DimEnv& env);

}  // namespace rlx
