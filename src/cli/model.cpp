// Models, inputs and sizes of the commands.
#include "cli/model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <complex>
#include <filesystem>
#include <limits>
#include <random>

#include "cli/cli.h"
#include "core/error.h"
#include "core/os_posix.h"
#include "io/npy.h"
#include "io/onnx/onnx.h"
#include "ir/print.h"
#include "models/sentence.h"

namespace rlx::cli {

// For all sizes; or for those of the given inputs; or with single integers (rates, flags) as constants too.
static Graph import_for(const std::string& path, NamedTensors& given) {
  OnnxOptions options;
  for (int attempt = 0;; ++attempt) {
    try {
      Graph g = import_onnx(path, options);
      for (const auto& [name, value] : options.fixed) given.erase(name);
      return g;
    } catch (const Error&) {
      if (given.empty() || attempt == 2) throw;
    }
    for (const auto& [name, value] : given) {
      options.shapes.emplace(name, value.shape());
      if (attempt == 1 && value.rank() == 0 && is_integer(value.dtype())) options.fixed.emplace(name, value);
    }
    if (attempt == 1) std::erase_if(options.shapes, [&](const auto& s) { return options.fixed.contains(s.first); });
  }
}

Graph read_model(const std::string& path) {
  NamedTensors none;
  return read_model(path, none);
}

Graph read_model(const std::string& path, NamedTensors& given) {
  if (std::filesystem::is_directory(path)) return SentenceModel::load_graph(path);
  if (path.ends_with(".onnx")) return import_for(path, given);
  require(path.ends_with(".rlx") || !std::filesystem::exists(path),
          "{}: unknown kind of file, expected a model folder, .onnx or .rlx (a graph in text form)", path);
  const MappedFile file(path, FileMode::read);
  const auto data = file.bytes().data;
  return parse({reinterpret_cast<const char*>(data.data()), data.size()});
}

std::map<std::string, std::string> pairs(const std::vector<std::string>& texts, std::string_view option) {
  std::map<std::string, std::string> all;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    require(equals != std::string::npos && equals > 0, "{} is \"{}\", expected NAME=VALUE", option, text);
    const bool added = all.emplace(text.substr(0, equals), text.substr(equals + 1)).second;
    require(added, "{} names {} twice", option, text.substr(0, equals));
  }
  return all;
}

DimEnv sizes(const std::vector<std::string>& texts, const Graph& g) {
  DimEnv dims;
  for (const auto& [name, text] : pairs(texts, "--dim")) {
    std::string known;
    for (const auto& [symbol, bounds] : g.symbols) known += (known.empty() ? "" : ", ") + symbol;
    const auto it = g.symbols.find(name);
    require(it != g.symbols.end(), "--dim names {}, the model's sizes are {}", name,
            known.empty() ? "all fixed" : known);
    Index value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && end == text.data() + text.size(), "--dim {} is \"{}\", expected a number", name,
            text);
    require(it->second.lo <= value && value <= it->second.hi, "--dim {} is {}, outside its bounds {}..{}", name, value,
            it->second.lo, it->second.hi);
    dims.emplace(name, value);
  }
  return dims;
}

DimEnv complete_sizes(const Graph& g, DimEnv given, Index wish) {
  for (const auto& [name, bounds] : g.symbols) given.emplace(name, std::clamp(wish, bounds.lo, bounds.hi));
  return given;
}

NamedTensors made_up_inputs(const Graph& g, const DimEnv& dims, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  NamedTensors all;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const TensorType& type = g.nodes[g.inputs[i]].results[0];
    std::vector<Index> shape;
    for (const Dim& d : type.dims) shape.push_back(d.evaluate(dims));
    Tensor t(type.dtype, std::move(shape));
    std::vector<double> values(static_cast<std::size_t>(t.count()), 1);
    if (g.input_names[i].find("mask") == std::string::npos) {
      for (double& v : values) v = is_float(type.dtype) ? uniform(random) : std::floor(uniform(random) * 2);
    }
    store<double>(t, values);
    all.emplace(g.input_names[i], std::move(t));
  }
  return all;
}

// Numbers of a tensor; a complex one has two an element.
static std::vector<double> parts(const Tensor& t) {
  if (t.dtype() != DType::c64) return load<double>(t);
  std::vector<double> all;
  for (const auto& v : load<std::complex<double>>(t)) all.insert(all.end(), {v.real(), v.imag()});
  return all;
}

double difference(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = parts(a), y = parts(b);
  double largest = 1e-30, worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (std::isnan(x[i]) != std::isnan(y[i])) return std::numeric_limits<double>::infinity();
    if (std::isnan(y[i]) || x[i] == y[i]) continue;
    worst = std::max(worst, std::fabs(x[i] - y[i]));
  }
  for (const double v : y) {
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  }
  return worst / largest;
}

std::string output_name(const Interface& interface, std::size_t i) {
  return interface.outputs[i].name.empty() ? std::to_string(i) : interface.outputs[i].name;
}

DimEnv sizes_of(const NamedTensors& in, const Graph& g, DimEnv known) {
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const auto it = in.find(g.input_names[i]);
    if (it == in.end()) continue;
    const std::vector<Dim>& declared = g.nodes[g.inputs[i]].results[0].dims;
    for (std::size_t k = 0; k < declared.size() && k < it->second.shape().size(); ++k) {
      if (const auto symbol = declared[k].symbol_name(); !symbol.empty()) known.emplace(symbol, it->second.shape()[k]);
    }
  }
  return known;
}

NamedTensors read_arrays(const std::vector<std::string>& texts) {
  NamedTensors in;
  for (const auto& [name, path] : pairs(texts, "--input")) in.emplace(name, read_npy(path));
  return in;
}

NamedTensors complete_inputs(NamedTensors in, bool random, const Graph& g, const DimEnv& dims, Index wish) {
  for (const auto& [name, value] : in) {
    require(std::ranges::find(g.input_names, name) != g.input_names.end(),
            "--input names {}, the model's inputs are {}", name, fmt::join(g.input_names, ", "));
  }
  if (!random) return in;
  const DimEnv all = complete_sizes(g, sizes_of(in, g, dims), wish);
  for (auto& [name, value] : made_up_inputs(g, all, 1)) in.emplace(name, std::move(value));
  return in;
}

std::optional<DType> product_type(const std::string& precision) {
  if (precision == "f32") return std::nullopt;
  if (precision == "bf16") return DType::bf16;
  if (precision == "f16") return DType::f16;
  require(precision == "int8", "precision is \"{}\", expected f32, bf16, f16 or int8", precision);
  return DType::i8;
}

}  // namespace rlx::cli
