// verify-numerics: results before and after every pass.
#include "passes/verify_numerics.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.h"

namespace rlx {

namespace {

constexpr std::size_t most_bindings = 3;

bool satisfies(const Graph& g, const DimEnv& dims) {
  try {
    return std::ranges::all_of(g.checks,
                               [&](const Check& c) { return c.left.evaluate(dims) == c.right.evaluate(dims); });
  } catch (const Error&) {
    return false;
  }
}

Tensor random_tensor(const TensorType& type, const DimEnv& dims, std::mt19937_64& random) {
  if (type.encoding) {  // blocks of zeros decode to something; what, is no matter
    TensorType bound = type;
    for (Dim& d : bound.dims) d = d.evaluate(dims);
    std::vector<Bytes> planes;
    for (std::size_t i = 0; i < bound.plane_count(); ++i) {
      planes.push_back(Bytes::allocate(bound.plane_bytes(i).constant()));
    }
    return {bound, std::move(planes)};
  }
  std::vector<Index> shape;
  for (const Dim& d : type.dims) shape.push_back(d.evaluate(dims));
  Tensor t(type.dtype, std::move(shape));
  if (is_integer(type.dtype) || type.dtype == DType::boolean) {
    for (Index i = 0; i < t.count(); ++i) t.set_code(i, random() % 2);
    return t;
  }
  const auto number = [&] {
    if (random() % 16 == 0) return random() % 2 == 0 ? 0.0 : -0.0;
    return std::ldexp(static_cast<double>(random() >> 11), -51) - 2;
  };
  std::vector<std::complex<double>> v(static_cast<std::size_t>(t.count()));
  for (std::complex<double>& z : v) z = {number(), number()};
  store(t, v);
  return t;
}

// States begin as inputs; their next values are results.
Graph with_states_as_results(const Graph& g) {
  Graph r = g;
  for (const StatePair& s : g.states) {
    r.outputs.push_back(s.output);
    r.output_names.emplace_back();
  }
  r.states.clear();
  r.index();
  return r;
}

double unit(DType d) {
  if (d == DType::f16) return std::ldexp(1.0, -10);
  return d == DType::bf16 ? std::ldexp(1.0, -7) : 0;
}

// One part of a number; NaN equals NaN.
bool close(double got, double want, double bound) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (bound == 0 || std::isinf(got) || std::isinf(want)) {
    return got == want && (bound > 0 || std::signbit(got) == std::signbit(want));
  }
  return std::fabs(got - want) <= bound;
}

std::string difference_of_numbers(const Tensor& got, const Tensor& want, double tolerance) {
  const auto a = load<std::complex<double>>(got), b = load<std::complex<double>>(want);
  double largest = 0;
  for (const std::complex<double>& z : b) {
    for (const double part : {z.real(), z.imag()}) {
      if (std::isfinite(part)) largest = std::max(largest, std::fabs(part));
    }
  }
  const double bound = tolerance == 0 ? 0 : std::max({tolerance, unit(got.dtype())}) * std::max(largest, 1e-30);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (close(a[i].real(), b[i].real(), bound) && close(a[i].imag(), b[i].imag(), bound)) continue;
    if (!is_complex(got.dtype())) return fmt::format("element {} is {:.9g}, was {:.9g}", i, a[i].real(), b[i].real());
    return fmt::format("element {} is ({:.9g}, {:.9g}), was ({:.9g}, {:.9g})", i, a[i].real(), a[i].imag(), b[i].real(),
                       b[i].imag());
  }
  return "";
}

// Where results differ; empty: nowhere.
std::string difference(const Tensor& got, const Tensor& want, double tolerance) {
  if (got.type() != want.type()) return got.type().text() + ", was " + want.type().text();
  if (got.type().encoding) return identical(got, want) ? "" : "its bytes differ";
  if (is_float(got.dtype()) || is_complex(got.dtype())) return difference_of_numbers(got, want, tolerance);
  for (Index i = 0; i < got.count(); ++i) {
    if (got.code(i) == want.code(i)) continue;
    const auto number = [&](const Tensor& t) { return extend_integer(t.dtype(), t.code(i)); };
    return fmt::format("element {} is {}, was {}", i, number(got), number(want));
  }
  return "";
}

std::string text(const DimEnv& dims) {
  std::string s;
  for (const auto& [name, value] : dims) s += fmt::format("{}{} = {}", s.empty() ? " with " : ", ", name, value);
  return s;
}

}  // namespace

std::vector<DimEnv> small_bindings(const Graph& g) {
  constexpr Index primes[] = {3, 2, 5, 7, 11, 13};
  std::vector<DimEnv> found;
  const auto add = [&](DimEnv dims) {
    if (found.size() < most_bindings && satisfies(g, dims) && std::ranges::find(found, dims) == found.end())
      found.push_back(std::move(dims));
  };
  const auto all = [&](const std::function<Index(std::size_t)>& size) {
    DimEnv dims;
    for (const auto& [name, b] : g.symbols) dims[name] = std::clamp(size(dims.size()), b.lo, b.hi);
    add(std::move(dims));
  };
  all([&](std::size_t i) { return primes[i % std::size(primes)]; });
  all([&](std::size_t) { return Index{0}; });
  for (const Index p : primes) all([&](std::size_t) { return p; });
  std::mt19937_64 random(1);
  for (int attempt = 0; attempt < 200 && found.empty(); ++attempt) {
    all([&](std::size_t) { return static_cast<Index>(random() % 16); });
  }
  return found;
}

NumericsCheck::NumericsCheck(const Graph& g, PassContext& context) : context_(context) {
  require(static_cast<bool>(context.evaluate_graph), "verify_numerics needs an evaluator of graphs, none is given");
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    names_.push_back(g.output_names[i].empty() ? fmt::format("output {}", i) : "output " + g.output_names[i]);
  }
  for (const StatePair& s : g.states) names_.push_back("state " + s.name);
  std::mt19937_64 random(1);
  for (DimEnv& dims : small_bindings(g)) {
    Run run{std::move(dims), {}, {}};
    try {
      for (const Id id : g.inputs) run.inputs.push_back(random_tensor(g.nodes[id].results[0], run.dims, random));
      run.results = evaluate(g, run);
    } catch (const Error& e) {
      context.remark(fmt::format("results{} are not compared: {}", text(run.dims), e.what()));
      continue;
    }
    runs_.push_back(std::move(run));
  }
  if (runs_.empty()) context.remark("no results are compared: no small sizes suit the graph");
}

std::vector<Tensor> NumericsCheck::evaluate(const Graph& g, const Run& run) const {
  return context_.evaluate_graph(with_states_as_results(g), run.inputs, run.dims);
}

void NumericsCheck::compare(const Pass& pass, const Graph& after) {
  for (Run& run : runs_) {
    std::vector<Tensor> results;
    try {
      results = evaluate(after, run);
    } catch (const Error& e) {
      throw InternalError(fmt::format("the graph that pass {} gives fails{}: {}", pass.name, text(run.dims), e.what()));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string where = difference(results[i], run.results[i], pass.tolerance);
      if (where.empty()) continue;
      throw InternalError(fmt::format("pass {} changes {}: {}{}", pass.name, names_[i], where, text(run.dims)));
    }
    run.results = std::move(results);
  }
}

}  // namespace rlx
