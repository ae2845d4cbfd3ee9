// verify-numerics: runs a graph before and after every pass on random inputs, and names the pass that changes a result.
#pragma once

#include <vector>

#include "passes/pass.h"

namespace rlx {

/// Results of one graph for a few bindings of its symbols: the least sizes that are allowed (0 among them) and small
/// primes. New values of states count as results. Floats lie in [-2, 2), some are 0 or -0; integers are 0 or 1, so that
/// they are valid indices.
class NumericsCheck {
 public:
  /// Evaluates `g` with context.evaluate_graph; throws Error when there is none. A binding for which the graph fails
  /// says nothing about passes: it is left out with a remark.
  NumericsCheck(const Graph& g, PassContext& context);

  /// Throws InternalError that names pass, output, element, values and sizes when `after` gives other results than the
  /// graph before, beyond the tolerance of the pass, or fails. Its results are what the next graph is compared with.
  void compare(const Pass& pass, const Graph& after);

  /// How many bindings are compared.
  std::size_t bindings() const { return runs_.size(); }

 private:
  struct Run {
    DimEnv dims;
    std::vector<Tensor> inputs, results;
  };
  std::vector<Tensor> evaluate(const Graph& g, const Run& run) const;

  PassContext& context_;
  std::vector<std::string> names_;  // of results
  std::vector<Run> runs_;
};

/// Bindings of the symbols of `g` that satisfy its checks: least sizes, primes, distinct primes; at most three.
std::vector<DimEnv> small_bindings(const Graph& g);

}  // namespace rlx
