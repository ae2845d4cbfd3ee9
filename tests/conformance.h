// What the conformance runner needs of a case: inputs, evaluation, comparison, central differences.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/op.h"
#include "runtime/evaluate.h"

namespace rlx::test {

/// The ops of all folders.
const std::vector<const OpDef*>& all_ops();
/// The element types a case is repeated with, as maps for bind_case: {} first, then floats for f32, or integers for
/// i32.
std::vector<std::map<DType, DType>> variants(const AnyCase& c);

/// A case with every symbol bound, and its graph.
struct Bound {
  Graph graph;
  std::vector<Tensor> inputs;
  DimEnv dims;
};

/// Builds the one-node graph of a case; `replace` maps element types of inputs. Throws Error when inference refuses the
/// types.
Bound bind_case(const OpDef& op, const AnyCase& c, const std::map<DType, DType>& replace, unsigned seed);

/// The same with encoded inputs as constants, and encoded results decoded: programs take and give dense tensors.
Bound program_of(const Bound& b);

/// Fills a tensor as a case input asks.
Tensor fill(const CaseInput& input, const DimEnv& dims, unsigned seed);

struct Difference {
  bool ok = true;
  double worst = 0;  // in the tolerance's unit
  std::string where;
};
/// Compares results; for half types the tolerance is at least one unit of theirs.
Difference compare(const Tensor& got, const Tensor& want, const Tolerance& tolerance);

/// Worst error of the graph gradient against central differences, relative to the largest gradient of each input (at
/// least 1e-3); every float input is f64. `skipped` counts inputs without gradient.
double gradient_error(const Graph& g, const std::vector<Tensor>& inputs, const DimEnv& dims, std::string& where);

}  // namespace rlx::test
