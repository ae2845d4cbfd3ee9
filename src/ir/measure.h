// Sizes that a run finds: how many elements are not 0, how many rows differ. Each is a symbol, and a node `measure`
// says which value it is an element of. What uses the symbol runs after that.
#pragma once

#include "ir/builder.h"

namespace rlx {

struct MeasureAttrs {
  Dim size = 0;  // the symbol
  static void fields(auto& a, auto&& f) { f("size", a.size); }
};
/// The operand, an i64 of rank 0, whose element becomes the value of the symbol.
const OpDef& measure_op();

/// The size that `count`, i64[], names in a run; it is then at least 0 and at most `most`. Equal counts of one builder
/// give the same size.
Dim measure(Value count, const Dim& most);

/// A measure of a graph.
struct Measure {
  std::string symbol;
  Dim size;
  Id node = 0;  // its result is the element
};
std::vector<Measure> measures(const Graph& g);

/// Adds the symbols of a node's attributes, results and bodies; of a measure none.
void collect_symbols(const Node& n, DimSymbols& out);
/// How many sizes, one after the other, must be found before each node can run. Throws Error for a size that depends on
/// itself.
std::vector<std::uint32_t> node_levels(const Graph& g);
/// Throws Error unless each size is found once, by no body, and shown by no input.
void verify_measures(const Graph& g);

}  // namespace rlx
