// Runs one node test: reads its tensors with the importer's own reader, compiles, compares.
#include "node_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <functional>
#include <set>

#include "backend/cpu/cpu_device.h"
#include "io/onnx/onnx.h"
#include "io/onnx/tensors.h"
#include "runtime/session.h"

namespace rlx::test {

namespace {

namespace fs = std::filesystem;

std::string file_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.is_open(), "{} cannot be read", path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void put_varint(std::string& out, std::size_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7F));
  out += static_cast<char>(value);
}

std::string message(char tag, const std::string& body) {
  std::string out(1, tag);
  put_varint(out, body.size());
  return out + body;
}

// A tensor message, as the only initialiser of a model, which the reader takes.
Tensor tensor_of(std::string_view tensor, const fs::path& path) {
  const std::string text = "\x08\x08" + message('\x3A', message('\x2A', std::string(tensor)));
  Bytes bytes = Bytes::allocate(static_cast<Index>(text.size()));
  std::ranges::transform(text, const_cast<std::byte*>(bytes.data.data()),
                         [](char c) { return static_cast<std::byte>(c); });
  const auto model = onnx::read_model(bytes, path.string());
  onnx::TensorLoader loader(*model, FileMode::map, false);
  return loader.load(model->graph.initializers.at(0));
}

// What a file holds for a declared value: a tensor, the elements of a sequence, or those of an optional value.
std::vector<Tensor> read_value(const fs::path& path, std::string_view kind) {
  const std::string text = file_bytes(path);
  if (kind == "tensor") return {tensor_of(text, path)};
  const onnx::WireFile file{text, path.string()};
  std::vector<Tensor> all;
  const std::function<void(std::string_view, bool)> read = [&](std::string_view message, bool optional) {
    onnx::WireReader in(file, message, "list");
    for (onnx::Field f; in.next(f);) {
      if (f.number == 3) all.push_back(tensor_of(in.bytes(f, "tensor"), path));
      require(f.number < 4 || (optional && f.number == 5), "{} holds values that are no tensors", path.string());
      if (f.number == 5) read(in.bytes(f, "sequence"), false);
    }
  };
  read(text, kind == "optional");
  return all;
}

struct Tolerance {
  double relative = 1e-3, absolute = 1e-7;
};

Tolerance tolerance_of(const fs::path& folder) {
  Tolerance t;
  std::ifstream file(folder / "tolerance");
  if (file.is_open()) file >> t.relative >> t.absolute;
  return t;
}

bool close(double a, double b, const Tolerance& t) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= t.absolute + t.relative * std::abs(b);
}

// What differs, or nothing.
std::string difference(const Tensor& got, const Tensor& want, const Tolerance& t, bool values) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return fmt::format("is {}, expected {}", got.type().text(), want.type().text());
  }
  if (!values) return {};
  if (is_integer(got.dtype()) || got.dtype() == DType::boolean) {
    const auto a = load<std::int64_t>(got), b = load<std::int64_t>(want);
    const auto [i, j] = std::ranges::mismatch(a, b);
    if (i == a.end()) return {};
    return fmt::format("element {} is {}, expected {}", i - a.begin(), *i, *j);
  }
  const auto a = load<std::complex<double>>(got), b = load<std::complex<double>>(want);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (close(a[i].real(), b[i].real(), t) && close(a[i].imag(), b[i].imag(), t)) continue;
    return fmt::format("element {} is {}, expected {}", i, a[i].real(), b[i].real());
  }
  return {};
}

struct DataSet {
  NamedTensors inputs;
  std::map<std::string, std::vector<TensorType>, std::less<>> sequences;  // inputs that are lists
  std::vector<std::pair<std::string, Tensor>> outputs;                    // by name; lists as NAME.0, NAME.1
};

// Name of an element of a list, as the importer makes it.
std::string element_name(const onnx::ValueInfo& v, std::size_t i) {
  const bool list = v.kind == "sequence" || v.inside == "sequence";
  return std::string(v.name) + (list ? "." + std::to_string(i) : "");
}

// Older data hold the bits of bf16 as u16, for values that the model declares as bf16.
std::vector<Tensor> read_declared(const fs::path& path, const onnx::ValueInfo& v) {
  std::vector<Tensor> all = read_value(path, v.kind);
  const bool bf16 = v.kind == "tensor" && onnx::dtype_of(v.type) == DType::bf16;
  for (Tensor& t : all) {
    if (!bf16 || t.dtype() != DType::u16) continue;
    t = Tensor(TensorType(DType::bf16, t.type().dims), {t.plane()});
  }
  return all;
}

DataSet read_data(const fs::path& folder, const onnx::GraphProto& g) {
  DataSet d;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const fs::path file = folder / fmt::format("input_{}.pb", i);
    if (!fs::exists(file)) continue;
    const onnx::ValueInfo& v = g.inputs[i];
    const std::vector<Tensor> all = read_declared(file, v);
    if (v.kind != "tensor") d.sequences[std::string(v.name)];
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (v.kind != "tensor") d.sequences[std::string(v.name)].push_back(all[k].type());
      d.inputs.emplace(element_name(v, k), all[k]);
    }
  }
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const std::vector<Tensor> all = read_declared(folder / fmt::format("output_{}.pb", i), g.outputs[i]);
    for (std::size_t k = 0; k < all.size(); ++k) d.outputs.emplace_back(element_name(g.outputs[i], k), all[k]);
  }
  return d;
}

// Inputs that a model may need to know before it runs: few elements, or those that decide sizes.
std::map<std::string, Tensor, std::less<>> to_fix(const DataSet& data, const onnx::GraphProto& g) {
  std::map<std::string, Tensor, std::less<>> fixed;
  for (const auto& [name, value] : data.inputs) {
    if (std::ranges::find(g.inputs, name, &onnx::ValueInfo::name) == g.inputs.end() || data.sequences.contains(name))
      continue;
    if (value.rank() <= 1 && value.count() <= 16) fixed.emplace(name, value);
  }
  return fixed;
}

Graph import_test(const fs::path& model, const DataSet& data, const onnx::GraphProto& proto, NodeResult& result) {
  OnnxOptions options;
  options.sequences = data.sequences;
  try {
    return import_onnx(model, options);
  } catch (const Error& e) {
    const std::string_view why = e.what();
    const bool unknown = why.find("depends on the data of a run") != std::string_view::npos;
    const auto fixed = to_fix(data, proto);
    if (!unknown || fixed.empty()) throw;
    options.fixed = fixed;
    Graph g = import_onnx(model, options);
    result.fixed_inputs = true;
    return g;
  }
}

// Sequences, maps, optionals and strings.
std::string foreign_types(const onnx::GraphProto& g) {
  for (const auto* list : {&g.inputs, &g.outputs}) {
    for (const onnx::ValueInfo& v : *list) {
      if (v.kind != "tensor") return v.kind.empty() ? "untyped" : std::string(v.kind);
      if (v.type == static_cast<std::int32_t>(onnx::ElementType::string)) return "string";
    }
  }
  return {};
}

// Version of a domain's operators that a model imports; 0: none.
Index version_of(const onnx::ModelProto& model, std::string_view domain) {
  const auto it = std::ranges::find(model.opsets, domain, &onnx::OpsetImport::domain);
  return it == model.opsets.end() ? 0 : it->version;
}

void collect_operators(const onnx::ModelProto& model, const onnx::GraphProto& g, std::set<std::string>& names,
                       std::map<std::string, Index>& versions) {
  for (const onnx::NodeProto& n : g.nodes) {
    names.emplace(n.op);
    const std::string full = std::string(n.domain) + (n.domain.empty() ? "" : ".") + std::string(n.op);
    versions.emplace(full, version_of(model, n.domain));
    for (const onnx::AttributeProto& a : n.attributes) {
      for (const auto& inner : a.graphs) collect_operators(model, *inner, names, versions);
    }
  }
}

void run_data_set(const fs::path& folder, const fs::path& data_folder, const onnx::GraphProto& g, NodeResult& r) {
  DataSet data = read_data(data_folder, g);
  const Graph graph = import_test(folder / "model.onnx", data, g, r);
  std::erase_if(data.inputs, [&](const auto& named) {
    return std::ranges::find(graph.input_names, named.first) == graph.input_names.end();
  });
  ExecutableOptions options;
  options.poison = options.check = true;
  const std::vector<Tensor> got = cpu_session({.threads = 1}).compile(graph, {}, options).run(data.inputs);
  r.verdict = Verdict::pass;
  for (std::size_t i = 0; i < std::max(got.size(), data.outputs.size()); ++i) {
    const bool both = i < got.size() && i < data.outputs.size() && graph.output_names[i] == data.outputs[i].first;
    const std::string d = both ? difference(got[i], data.outputs[i].second, tolerance_of(folder), !r.random)
                               : fmt::format("there are {}, expected {}", got.size(), data.outputs.size());
    if (d.empty()) continue;
    r.verdict = Verdict::wrong;
    r.reason = fmt::format("output {}: {}", i < data.outputs.size() ? data.outputs[i].first : "", d);
    return;
  }
}

}  // namespace

NodeResult run_node_test(const fs::path& folder) {
  NodeResult r;
  r.name = folder.filename().string();
  try {
    const auto model = onnx::read_model((folder / "model.onnx").string());
    std::set<std::string> names;
    collect_operators(*model, model->graph, names, r.versions);
    r.operators = fmt::format("{}", fmt::join(names, " "));
    r.random =
        std::ranges::any_of(names, [](const std::string& n) { return n == "Bernoulli" || n.starts_with("Random"); });
    // ONNX leaves the numbers of a training dropout to the engine.
    if (r.name.starts_with("test_training_dropout") && r.name.find("zero_ratio") == std::string::npos) r.random = true;
    const std::string foreign = foreign_types(model->graph);
    r.tensors_only = foreign.empty();
    const bool lists = foreign == "sequence" || foreign == "optional";
    require(foreign.empty() || lists, "inputs or outputs of type {}", foreign);
    for (Index i = 0; i == 0 || r.verdict == Verdict::pass; ++i) {
      const fs::path data = folder / fmt::format("test_data_set_{}", i);
      if (!fs::exists(data)) break;
      run_data_set(folder, data, model->graph, r);
    }
  } catch (const Error& e) {
    r.verdict = Verdict::unsupported;
    r.reason = e.what();
  } catch (const std::exception& e) {  // of our own bugs
    r.verdict = Verdict::wrong;
    r.reason = e.what();
  }
  return r;
}

}  // namespace rlx::test
