// Inputs, comparison and central differences of the conformance runner.
#include "conformance.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "autodiff/gradient.h"
#include "codecs/codec.h"
#include "core/error.h"
#include "ir/builder.h"
#include "ir/op_table.h"
#include "ir/rewrite.h"
#include "ops/constant/constant.h"
#include "ops/encode/encode.h"

namespace rlx::test {

const std::vector<const OpDef*>& all_ops() {
  static const std::vector<const OpDef*> all = [] {
    std::vector<const OpDef*> list;
    for (const OpFolder& f : op_folders()) {
      for (const OpDef* op : f.ops()) list.push_back(op);
    }
    return list;
  }();
  return all;
}

std::vector<std::map<DType, DType>> variants(const AnyCase& c) {
  std::vector<std::map<DType, DType>> all{{}};
  if (!c.common.other_dtypes) return all;
  bool real = false, integer = false;
  for (const CaseInput& in : c.common.inputs) {
    real |= in.type.dtype == DType::f32;
    integer |= in.type.dtype == DType::i32;
  }
  if (real) {
    for (const DType d : {DType::f64, DType::f16, DType::bf16}) all.push_back({{DType::f32, d}});
  } else if (integer) {
    for (const DType d : {DType::i64, DType::i16, DType::i8, DType::u64, DType::u32, DType::u16, DType::u8}) {
      all.push_back({{DType::i32, d}});
    }
  }
  return all;
}

namespace {

std::vector<double> draw(const CaseInput& in, Index count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<double> v(static_cast<std::size_t>(count));
  const bool whole = is_integer(in.type.dtype) || in.type.dtype == DType::boolean;
  if (in.distinct && !whole) {  // equally spaced, shuffled
    for (std::size_t i = 0; i < v.size(); ++i) {
      v[i] = in.lo + (in.hi - in.lo) * (static_cast<double>(i) + 0.5) / static_cast<double>(v.size());
    }
    std::ranges::shuffle(v, random);
  } else if (whole) {
    const bool flag = in.type.dtype == DType::boolean;
    std::uniform_int_distribution<std::int64_t> pick(flag ? 0 : static_cast<Index>(std::ceil(in.lo)),
                                                     flag ? 1 : static_cast<Index>(std::floor(in.hi)));
    for (double& x : v) x = static_cast<double>(pick(random));
  } else {
    std::uniform_real_distribution<double> pick(in.lo, in.hi);
    for (double& x : v) x = pick(random);
  }
  for (double& x : v) {
    const double nearest = std::round(x);
    if (in.away > 0 && !whole && std::fabs(x - nearest) < in.away) x = nearest + (x < nearest ? -in.away : in.away);
  }
  return v;
}

double unit(DType d) {
  if (d == DType::f16) return std::ldexp(1.0, -10);
  if (d == DType::bf16) return std::ldexp(1.0, -7);
  if (d == DType::f32) return std::ldexp(1.0, -23);
  return std::ldexp(1.0, -52);
}

double ulps(double got, double want, DType d) {
  const int exponent = want == 0 ? -1022 : std::ilogb(want);
  const int least = d == DType::f16 ? -14 : d == DType::f64 ? -1022 : -126;
  return std::fabs(got - want) / std::ldexp(unit(d), std::max(exponent, least));
}

std::vector<std::complex<double>> numbers(const Tensor& t) { return load<std::complex<double>>(t); }

bool same_class(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return true;
}

}  // namespace

Tensor fill(const CaseInput& input, const DimEnv& dims, unsigned seed) {
  if (input.type.encoding) {
    CaseInput dense = input;
    dense.type = TensorType(input.type.dtype, input.type.dims);
    return encode(fill(dense, dims, seed), codec_of(*input.type.encoding));
  }
  std::vector<Index> shape;
  for (const Dim& d : input.type.dims) shape.push_back(d.evaluate(dims));
  Tensor t(input.type.dtype, shape);
  if (is_complex(t.dtype())) {
    CaseInput parts = input;
    parts.type.dtype = DType::f32;
    const std::vector<double> v = draw(parts, 2 * t.count(), seed);
    std::vector<std::complex<double>> z;
    for (std::size_t i = 0; i + 1 < v.size(); i += 2) z.emplace_back(v[i], v[i + 1]);
    store(t, z);
  } else if (is_integer(t.dtype()) && input.values.empty()) {
    const std::vector<double> v = draw(input, t.count(), seed);
    store(t, std::vector<std::int64_t>(v.begin(), v.end()));
  } else {
    store(t, input.values.empty() ? draw(input, t.count(), seed) : input.values);
  }
  return t;
}

Bound bind_case(const OpDef& op, const AnyCase& c, const std::map<DType, DType>& replace, unsigned seed) {
  Bound r;
  Builder b;
  Values operands;
  std::vector<CaseInput> inputs = c.common.inputs;
  DimSymbols symbols;
  for (CaseInput& in : inputs) {
    const auto it = replace.find(in.type.dtype);
    if (it != replace.end() && !in.type.encoding) in.type.dtype = it->second;
    operands.push_back(b.input("a" + std::to_string(operands.size()), in.type));
    for (const Dim& d : in.type.dims) d.collect_symbols(symbols);
  }
  c.attrs.collect_symbols(symbols);
  r.dims = c.common.dims;
  for (const auto& [name, bounds] : symbols) r.dims.emplace(name, std::min(std::max<Index>(bounds.lo, 2), bounds.hi));
  const Values out = b.emit(op, c.attrs, operands);
  r.graph = b.finish(out);
  for (const CaseInput& in : inputs) r.inputs.push_back(fill(in, r.dims, seed++));
  return r;
}

Bound program_of(const Bound& b) {
  Bound r{.graph = {}, .inputs = {}, .dims = b.dims};
  // Constants have numbers for sizes; what meets them has the same.
  const bool fixed = std::ranges::any_of(b.inputs, [](const Tensor& t) { return t.type().encoding != nullptr; });
  NamedDims numbers;
  for (const auto& [name, size] : b.dims) numbers.emplace(name, size);
  const Graph body = fixed ? substitute_symbols(b.graph, numbers) : b.graph;
  Builder g;
  Values in;
  for (std::size_t i = 0; i < b.inputs.size(); ++i) {
    const Tensor& t = b.inputs[i];
    if (t.type().encoding) {
      in.push_back(constant(g, t));
      continue;
    }
    in.push_back(g.input(body.input_names[i], body.nodes[body.inputs[i]].results[0]));
    r.inputs.push_back(t);
  }
  Values out = g.inline_graph(body, in);
  for (Value& v : out) {
    if (v.type().encoding) v = decode(v);
  }
  r.graph = g.finish(out);
  return r;
}

Difference compare(const Tensor& got, const Tensor& want, const Tolerance& tolerance) {
  Difference d;
  if (got.type() != want.type()) return {false, 0, got.type().text() + " for " + want.type().text()};
  if (got.type().encoding) {
    Difference decoded = compare(decode(got), decode(want), tolerance);
    if (decoded.ok && !identical(got, want)) return {false, 0, "bytes that decode to the same"};
    return decoded;
  }
  const auto a = numbers(got), b = numbers(want);
  double largest = 0;
  for (const auto& z : b) {
    for (const double v : {z.real(), z.imag()}) {
      if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
    }
  }
  const DType type = got.dtype();
  const bool half = type == DType::f16 || type == DType::bf16;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const auto& [x, y] : {std::pair(a[i].real(), b[i].real()), std::pair(a[i].imag(), b[i].imag())}) {
      bool ok = same_class(x, y);
      double error = 0;
      if (ok && std::isfinite(x)) {
        if (tolerance.kind == Tolerance::Kind::exact) {
          error = x == y && std::signbit(x) == std::signbit(y) ? 0 : 1;
          ok = error == 0;
        } else if (tolerance.kind == Tolerance::Kind::ulp) {
          error = ulps(x, y, is_float(type) ? type : DType::f64);
          ok = error <= (half ? std::max(tolerance.bound, 1.0) : tolerance.bound);
        } else {
          error = largest == 0 ? std::fabs(x - y) : std::fabs(x - y) / largest;
          ok = error <= (half ? std::max(tolerance.bound, unit(type)) : tolerance.bound);
        }
      }
      if (!ok && d.ok) d.where = fmt::format("element {}: {:.17g} for {:.17g}", i, x, y);
      d.ok = d.ok && ok;
      d.worst = std::max(d.worst, error);
    }
  }
  return d;
}

namespace {

// Sum of weights times float outputs.
double weighted(const Graph& g, const std::vector<Tensor>& inputs, const std::vector<std::vector<double>>& weights,
                const DimEnv& dims) {
  const std::vector<Tensor> out = evaluate(g, inputs, {false, dims});
  double total = 0;
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!is_float(out[r].dtype())) continue;
    const std::vector<double> y = load<double>(out[r]);
    for (std::size_t i = 0; i < y.size(); ++i) total += weights[r][i] * y[i];
  }
  return total;
}

double slope(const Graph& g, std::vector<Tensor> inputs, std::size_t which, std::size_t i,
             const std::vector<std::vector<double>>& weights, const DimEnv& dims) {
  std::vector<double> x = load<double>(inputs[which]);
  const double at = x[i], h = 1e-3;
  const auto value = [&](double step) {
    x[i] = at + step;
    store(inputs[which], x);
    return weighted(g, inputs, weights, dims);
  };
  return (8 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12 * h);
}

}  // namespace

double gradient_error(const Graph& g, const std::vector<Tensor>& inputs, const DimEnv& dims, std::string& where) {
  const Graph d = gradient(g);
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> pick(0.5, 1.5);
  std::vector<Tensor> all = inputs;
  std::vector<std::vector<double>> weights(g.outputs.size());
  for (std::size_t r = 0; r < g.outputs.size(); ++r) {
    const TensorType& t = g.type(g.outputs[r]);
    if (!is_float(t.dtype)) continue;
    std::vector<Index> shape;
    for (const Dim& e : t.dims) shape.push_back(e.evaluate(dims));
    Tensor cotangent(t.dtype, shape);
    weights[r].resize(static_cast<std::size_t>(cotangent.count()));
    for (double& w : weights[r]) w = pick(random);
    store(cotangent, weights[r]);
    all.push_back(std::move(cotangent));
  }
  const std::vector<Tensor> grads = evaluate(d, all, {false, dims});
  double worst = 0;
  std::size_t next = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!is_float(inputs[k].dtype()) || inputs[k].type().encoding) continue;
    const std::vector<double> got = load<double>(grads[next++]);
    double scale = 1e-3;
    for (const double v : got) scale = std::max(scale, std::fabs(v));
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double want = slope(g, inputs, k, i, weights, dims);
      const double error = std::fabs(got[i] - want) / scale;
      if (error > worst || std::isnan(error)) {
        worst = std::isnan(error) ? INFINITY : error;
        where = fmt::format("input {} element {}: {:.12g}, differences give {:.12g}", k, i, got[i], want);
      }
    }
  }
  return worst;
}

}  // namespace rlx::test
