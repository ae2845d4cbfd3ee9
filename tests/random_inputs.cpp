// Sizes and inputs of random graphs.
#include <algorithm>
#include <limits>
#include <random>

#include "conformance.h"
#include "random_graph.h"

namespace rlx::test {

namespace {
constexpr Index largest_size = 7;  // that random_dims gives
}

DimEnv random_dims(const Graph& g, unsigned seed) {
  std::mt19937_64 random(seed);
  DimEnv dims;
  for (const auto& [name, bounds] : g.symbols) {
    const Index hi = std::min(bounds.hi, std::max(bounds.lo, largest_size));
    dims[name] = bounds.lo + static_cast<Index>(random() % static_cast<std::uint64_t>(hi - bounds.lo + 1));
  }
  return dims;
}

std::vector<Tensor> random_inputs(const Graph& g, const DimEnv& dims, unsigned seed, bool special) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> all;
  for (const Id id : g.inputs) {
    const TensorType& type = g.nodes[id].results[0];
    CaseInput in(type);
    if (is_integer(type.dtype)) in.range(is_unsigned_integer(type.dtype) ? 0 : -5, 5);
    Tensor t = fill(in, dims, static_cast<unsigned>(random()));
    if (is_float(type.dtype)) {
      constexpr double inf = std::numeric_limits<double>::infinity();
      constexpr double values[] = {0, 1, -1, 2, -0.0, inf, -inf, std::numeric_limits<double>::quiet_NaN()};
      std::vector<double> x = load<double>(t);
      for (double& v : x) {
        if (random() % 8 == 0) v = values[random() % (special ? 8 : 4)];
      }
      store(t, x);
    }
    all.push_back(std::move(t));
  }
  return all;
}

}  // namespace rlx::test
