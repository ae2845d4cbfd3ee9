// Dumps of models and messages made by hand.
#include "io/onnx_models.h"

#include <fmt/core.h>

#include <bit>
#include <cstring>

#include "core/error.h"
#include "io/onnx/tensors.h"

namespace rlx::test {

std::string onnx_file(const std::string& name) { return fmt::format("{}/onnx/{}", RLX_TEST_DATA, name); }

namespace {

using namespace onnx;

std::string quoted_bytes(std::string_view text) {
  std::string s = "'";
  for (const char c : text) {
    const auto b = static_cast<unsigned char>(c);
    s += b >= 0x20 && b < 0x7f && b != '\'' && b != '\\' ? std::string(1, c) : fmt::format("\\x{:02x}", b);
  }
  return s + "'";
}

std::string bits_text(std::string_view data) {
  std::string hex;
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : data) {
    const auto b = static_cast<unsigned char>(c);
    hash = (hash ^ b) * 0x100000001b3;
    if (data.size() <= 16) hex += fmt::format("{:02x}", b);
  }
  return data.size() <= 16 ? hex : fmt::format("{} bytes {:016x}", data.size(), hash);
}

template <class List, class F>
std::string joined(const List& list, F&& text) {
  std::string s;
  bool first = true;
  for (const auto& x : list) {
    if (!first) s += ',';
    first = false;
    s += text(x);
  }
  return s;
}

/// Writes the parts of a model line by line.
class Dumper {
 public:
  explicit Dumper(const ModelProto& m) : model_(m), loader_(m, FileMode::map, false) {}

  std::string run() {
    const ModelProto& m = model_;
    line("", fmt::format("model {} {} {} {} {}", m.ir_version, m.model_version, quoted_bytes(m.producer),
                         quoted_bytes(m.producer_version), quoted_bytes(m.domain)));
    opsets("", m.opsets);
    for (const auto& [key, value] : m.metadata) {
      line("", fmt::format("metadata {} {}", quoted_bytes(key), quoted_bytes(value)));
    }
    graph("", m.graph);
    for (const FunctionProto& f : m.functions) {
      line("", fmt::format("function {} {} {} ({}) -> ({}) attributes {}", quoted_bytes(f.domain), quoted_bytes(f.name),
                           quoted_bytes(f.overload), joined(f.inputs, quoted_bytes), joined(f.outputs, quoted_bytes),
                           joined(f.attributes, quoted_bytes)));
      opsets("  ", f.opsets);
      for (const AttributeProto& a : f.standard) attribute("  ", a);
      for (const NodeProto& n : f.nodes) node("  ", n);
    }
    return text_;
  }

 private:
  void line(const std::string& indent, const std::string& s) { text_ += indent + s + "\n"; }

  void opsets(const std::string& indent, const std::vector<OpsetImport>& list) {
    for (const OpsetImport& o : list) line(indent, fmt::format("opset {} {}", quoted_bytes(o.domain), o.version));
  }

  std::string tensor(const TensorProto& t) {
    std::string s = fmt::format("{} type {} [{}]", quoted_bytes(t.name), t.type,
                                joined(t.dims, [](Index d) { return std::to_string(d); }));
    if (t.has_raw) s += " raw " + bits_text(t.raw);
    std::string typed;
    for (int bit = 0; bit < 8; ++bit) {
      if ((t.typed >> bit & 1) != 0) typed += (typed.empty() ? "" : ",") + std::to_string(bit + 4);
    }
    if (!typed.empty()) s += " typed " + typed;
    if (t.has_segment) s += " segment";
    if (t.external) {
      return s + " external " + quoted_bytes(t.location) + ' ' + quoted_bytes(t.offset) + ' ' + quoted_bytes(t.length);
    }
    if (!dtype_of(t.type)) return s;
    const Tensor loaded = loader_.load(t);
    return s + " = " + bits_text({reinterpret_cast<const char*>(loaded.bytes().data()), loaded.bytes().size()});
  }

  static std::string value(const ValueInfo& v) {
    if (v.kind.empty()) return quoted_bytes(v.name);
    if (v.kind != "tensor") return quoted_bytes(v.name) + ' ' + std::string(v.kind);
    std::string s = fmt::format("{} tensor type {}", quoted_bytes(v.name), v.type);
    if (!v.has_shape) return s;
    return s + fmt::format(" [{}]", joined(v.dims, [](const DimProto& d) -> std::string {
                             if (d.kind == DimProto::Kind::value) return std::to_string(d.value);
                             return d.kind == DimProto::Kind::name ? quoted_bytes(d.name) : "?";
                           }));
  }

  std::string attribute_value(const AttributeProto& a) {
    const auto real = [](float f) { return fmt::format("{:08x}", std::bit_cast<std::uint32_t>(f)); };
    switch (a.type) {
      case AttributeType::real:
        return real(a.real);
      case AttributeType::integer:
        return std::to_string(a.integer);
      case AttributeType::string:
        return quoted_bytes(a.string);
      case AttributeType::tensor:
        return tensor(a.tensors.at(0));
      case AttributeType::reals:
        return joined(reals_of(model_.file, a), real);
      case AttributeType::integers:
        return joined(integers_of(model_.file, a), [](Index i) { return std::to_string(i); });
      case AttributeType::strings:
        return joined(strings_of(model_.file, a), quoted_bytes);
      default:
        return "";
    }
  }

  void attribute(const std::string& indent, const AttributeProto& a) {
    std::string head = fmt::format("attribute {} {}", quoted_bytes(a.name), static_cast<int>(a.type));
    if (!a.reference.empty()) return line(indent, head + " refers to " + quoted_bytes(a.reference));
    const std::string simple = attribute_value(a);
    line(indent, simple.empty() ? head : head + ' ' + simple);
    if (a.type == AttributeType::tensors) {
      for (const TensorProto& t : a.tensors) line(indent + "  ", tensor(t));
    }
    for (const auto& g : a.graphs) graph(indent + "  ", *g);
  }

  void node(const std::string& indent, const NodeProto& n) {
    line(indent,
         fmt::format("node {} {} {} {} ({}) -> ({})", quoted_bytes(n.name), quoted_bytes(n.domain), quoted_bytes(n.op),
                     quoted_bytes(n.overload), joined(n.inputs, quoted_bytes), joined(n.outputs, quoted_bytes)));
    for (const AttributeProto& a : n.attributes) attribute(indent + "  ", a);
  }

  void graph(const std::string& outer, const GraphProto& g) {
    line(outer, "graph " + quoted_bytes(g.name));
    const std::string indent = outer + "  ";
    for (const ValueInfo& v : g.inputs) line(indent, "input " + value(v));
    for (const ValueInfo& v : g.outputs) line(indent, "output " + value(v));
    for (const ValueInfo& v : g.values) line(indent, "value " + value(v));
    for (const TensorProto& t : g.initializers) line(indent, "initializer " + tensor(t));
    for (const std::string_view s : g.sparse_initializers) line(indent, "sparse " + quoted_bytes(s));
    for (const NodeProto& n : g.nodes) node(indent, n);
  }

  const ModelProto& model_;
  TensorLoader loader_;
  std::string text_;
};

}  // namespace

std::string dump(const onnx::ModelProto& model) { return Dumper(model).run(); }

std::string varint(std::uint64_t value) {
  std::string s;
  for (; value >= 0x80; value >>= 7) s += static_cast<char>(0x80 | (value & 0x7f));
  return s + static_cast<char>(value);
}

std::string number_field(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}

std::string bytes_field(int field, std::string_view bytes) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string float_field(int field, float value) {
  std::string s = varint(static_cast<std::uint64_t>(field) << 3 | 5);
  char bytes[4];
  std::memcpy(bytes, &value, 4);
  return s.append(bytes, 4);
}

std::string message(const NodeText& n) {
  std::string s;
  for (const std::string& i : n.in) s += bytes_field(1, i);
  for (const std::string& o : n.out) s += bytes_field(2, o);
  s += bytes_field(3, n.name) + bytes_field(4, n.op);
  for (const std::string& a : n.attributes) s += bytes_field(5, a);
  return n.domain.empty() ? s : s + bytes_field(7, n.domain);
}

std::string integer_attribute(const std::string& name, std::int64_t value) {
  return bytes_field(1, name) + number_field(3, static_cast<std::uint64_t>(value)) + number_field(20, 2);
}

std::string integers_attribute(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string list;
  for (const std::int64_t v : values) list += varint(static_cast<std::uint64_t>(v));
  return bytes_field(1, name) + bytes_field(8, list) + number_field(20, 7);
}

std::string graph_attribute(const std::string& name, std::string_view graph) {
  return bytes_field(1, name) + bytes_field(6, graph) + number_field(20, 5);
}

static std::string tensor_head(const std::string& name, int type, const std::vector<std::int64_t>& dims) {
  std::string s;
  for (const std::int64_t d : dims) s += number_field(1, static_cast<std::uint64_t>(d));
  return s + number_field(2, static_cast<std::uint64_t>(type)) + bytes_field(8, name);
}

std::string raw_tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims, std::string_view raw) {
  return tensor_head(name, type, dims) + bytes_field(9, raw);
}

std::string i64_tensor(const std::string& name, const std::vector<std::int64_t>& values) {
  std::string raw;
  for (const std::int64_t v : values) raw.append(reinterpret_cast<const char*>(&v), 8);
  return raw_tensor(name, 7, {static_cast<std::int64_t>(values.size())}, raw);
}

std::string external_tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string s = tensor_head(name, type, dims);
  for (const auto& [key, value] : entries) s += bytes_field(13, bytes_field(1, key) + bytes_field(2, value));
  return s + number_field(14, 1);
}

std::string value_info(const std::string& name, int type, const std::vector<std::int64_t>& dims) {
  std::string shape;
  for (const std::int64_t d : dims) {
    shape += bytes_field(
        1, d < 0 ? bytes_field(2, "d" + std::to_string(-d)) : number_field(1, static_cast<std::uint64_t>(d)));
  }
  const std::string tensor = number_field(1, static_cast<std::uint64_t>(type)) + bytes_field(2, shape);
  return bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor));
}

std::string message(const GraphText& g) {
  std::string s;
  for (const NodeText& n : g.nodes) s += bytes_field(1, message(n));
  s += bytes_field(2, "g");
  for (const std::string& t : g.initializers) s += bytes_field(5, t);
  for (const std::string& v : g.inputs) s += bytes_field(11, v);
  for (const std::string& v : g.outputs) s += bytes_field(12, v);
  return s;
}

std::string model(const GraphText& graph, std::int64_t opset) {
  return number_field(1, 8) + bytes_field(7, message(graph)) +
         bytes_field(8, number_field(2, static_cast<std::uint64_t>(opset)));
}

std::string one_node(const NodeText& node, const std::vector<std::string>& initializers, std::int64_t opset,
                     const std::vector<std::string>& inputs) {
  GraphText g;
  g.nodes = {node};
  g.inputs = inputs.empty() ? std::vector<std::string>{value_info("x", 1, {2, 3})} : inputs;
  g.initializers = initializers;
  for (const std::string& o : node.out) {
    if (!o.empty()) g.outputs.push_back(bytes_field(1, o));
  }
  return model(g, opset);
}

}  // namespace rlx::test
