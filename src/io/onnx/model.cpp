// Messages of the ONNX format into views.
#include "io/onnx/model.h"

#include <array>

#include "core/error.h"
#include "core/quote.h"

namespace rlx::onnx {

namespace {

/// Fills the structures; counts what they take.
class Parser {
 public:
  explicit Parser(const WireFile& file) : file_(file) {}

  void model(ModelProto& m);

 private:
  void charge(const WireReader& in, std::size_t bytes) {
    described_ += static_cast<Index>(bytes);
    if (described_ > most_described) {
      in.fail(fmt::format("the description of the model takes more than {} bytes", most_described));
    }
  }
  template <class T>
  T& add(const WireReader& in, std::vector<T>& list) {
    charge(in, sizeof(T));
    return list.emplace_back();
  }
  void text(const WireReader& in, const Field& f, const char* what, std::vector<std::string_view>& list) {
    const std::string_view s = in.text(f, what);
    add(in, list) = s;
  }
  void deeper(const WireReader& in) const {
    if (depth_ >= deepest) in.fail(fmt::format("nested deeper than {}", deepest));
  }

  void graph(std::string_view message, GraphProto& g);
  void node(std::string_view message, NodeProto& n);
  void attribute(std::string_view message, AttributeProto& a);
  AttributeType attribute_value(const WireReader& in, const Field& f, AttributeProto& a, bool& single);
  void check_attribute(const WireReader& in, AttributeProto& a, std::uint32_t seen) const;
  void tensor(std::string_view message, TensorProto& t);
  void dimensions(const WireReader& in, const Field& f, TensorProto& t);
  void external(std::string_view message, TensorProto& t);
  std::string_view sparse_name(std::string_view message);
  void value(std::string_view message, ValueInfo& v);
  void type(std::string_view message, ValueInfo& v);
  void tensor_type(std::string_view message, ValueInfo& v);
  void shape(std::string_view message, ValueInfo& v);
  void dimension(std::string_view message, DimProto& d);
  std::string_view nested_type(std::string_view message, const char* kind);
  std::string_view forget_type(std::string_view message) {
    ValueInfo inner;
    type(message, inner);
    return inner.kind;
  }
  void opset(std::string_view message, OpsetImport& o);
  void function(std::string_view message, FunctionProto& f);
  std::pair<std::string_view, std::string_view> entry(std::string_view message);

  const WireFile& file_;
  Index described_ = 0;
  int depth_ = 0;
};

void Parser::model(ModelProto& m) {
  WireReader in(file_, file_.bytes, "model");
  bool graph_seen = false, ir = false, producer = false, version = false, domain = false, number = false;
  for (Field f; in.next(f);) {
    switch (f.number) {
      case 1:
        in.once(ir, "ir_version");
        m.ir_version = in.integer(f, "ir_version");
        break;
      case 2:
        in.once(producer, "producer_name");
        m.producer = in.text(f, "producer_name");
        break;
      case 3:
        in.once(version, "producer_version");
        m.producer_version = in.text(f, "producer_version");
        break;
      case 4:
        in.once(domain, "domain");
        m.domain = in.text(f, "domain");
        break;
      case 5:
        in.once(number, "model_version");
        m.model_version = in.integer(f, "model_version");
        break;
      case 7:
        in.once(graph_seen, "graph");
        graph(in.bytes(f, "graph"), m.graph);
        break;
      case 8:
        opset(in.bytes(f, "opset_import"), add(in, m.opsets));
        break;
      case 14: {
        const auto pair = entry(in.bytes(f, "metadata_props"));
        add(in, m.metadata) = pair;
        break;
      }
      case 25:
        function(in.bytes(f, "function"), add(in, m.functions));
        break;
      default:
        break;
    }
  }
  require(graph_seen, "'{}' has no graph: it is not an ONNX model", file_.name);
}

void Parser::graph(std::string_view message, GraphProto& g) {
  WireReader in(file_, message, "graph");
  deeper(in);
  ++depth_;
  bool name = false;
  for (Field f; in.next(f);) {
    switch (f.number) {
      case 1:
        node(in.bytes(f, "node"), add(in, g.nodes));
        break;
      case 2:
        in.once(name, "name");
        g.name = in.text(f, "name");
        break;
      case 5:
        tensor(in.bytes(f, "initializer"), add(in, g.initializers));
        break;
      case 11:
        value(in.bytes(f, "input"), add(in, g.inputs));
        break;
      case 12:
        value(in.bytes(f, "output"), add(in, g.outputs));
        break;
      case 13:
        value(in.bytes(f, "value_info"), add(in, g.values));
        break;
      case 15: {
        const std::string_view s = sparse_name(in.bytes(f, "sparse_initializer"));
        add(in, g.sparse_initializers) = s;
        break;
      }
      default:
        break;
    }
  }
  --depth_;
}

void Parser::node(std::string_view message, NodeProto& n) {
  WireReader in(file_, message, "node");
  bool name = false, op = false, domain = false, overload = false;
  for (Field f; in.next(f);) {
    switch (f.number) {
      case 1:
        text(in, f, "input", n.inputs);
        break;
      case 2:
        text(in, f, "output", n.outputs);
        break;
      case 3:
        in.once(name, "name");
        n.name = in.text(f, "name");
        break;
      case 4:
        in.once(op, "op_type");
        n.op = in.text(f, "op_type");
        break;
      case 5:
        attribute(in.bytes(f, "attribute"), add(in, n.attributes));
        break;
      case 7:
        in.once(domain, "domain");
        n.domain = in.text(f, "domain");
        if (n.domain == "ai.onnx") n.domain = {};
        break;
      case 8:
        in.once(overload, "overload");
        n.overload = in.text(f, "overload");
        break;
      default:
        break;
    }
  }
}

void Parser::attribute(std::string_view message, AttributeProto& a) {
  WireReader in(file_, message, "attribute");
  a.body = message;
  std::uint32_t kinds = 0;  // bit per attribute type that has a value here
  bool name = false, reference = false, type_seen = false, single = false;
  for (Field f; in.next(f);) {
    if (f.number == 1) {
      in.once(name, "name");
      a.name = in.text(f, "name");
    } else if (f.number == 20) {
      in.once(type_seen, "type");
      const Index t = in.integer(f, "type");
      if (t < 0 || t > static_cast<Index>(AttributeType::types))
        in.fail(fmt::format("attribute type {} is unknown", t));
      a.type = static_cast<AttributeType>(t);
    } else if (f.number == 21) {
      in.once(reference, "ref_attr_name");
      a.reference = in.text(f, "ref_attr_name");
    } else {
      const AttributeType t = attribute_value(in, f, a, single);
      if (t != AttributeType::undefined) kinds |= 1u << static_cast<unsigned>(t);
    }
  }
  check_attribute(in, a, kinds);
}

// Reads a field that holds a value; says of which type, or undefined for a field of another kind.
AttributeType Parser::attribute_value(const WireReader& in, const Field& f, AttributeProto& a, bool& single) {
  const bool one = (f.number >= 2 && f.number <= 6) || f.number == 14 || f.number == 22;
  if (one) in.once(single, "a value");
  switch (f.number) {
    case 2:
      a.real = in.real(f, "f");
      return AttributeType::real;
    case 3:
      a.integer = in.integer(f, "i");
      return AttributeType::integer;
    case 4:
      a.string = in.bytes(f, "s");
      return AttributeType::string;
    case 5:
    case 10:
      tensor(in.bytes(f, "tensor"), add(in, a.tensors));
      return one ? AttributeType::tensor : AttributeType::tensors;
    case 6:
    case 11: {
      auto g = std::make_unique<GraphProto>();
      charge(in, sizeof(GraphProto));
      graph(in.bytes(f, "graph"), *g);
      add(in, a.graphs) = std::move(g);
      return one ? AttributeType::graph : AttributeType::graphs;
    }
    case 7:
      if (f.wire != Wire::bytes) in.real(f, "floats");
      return AttributeType::reals;
    case 8:
      if (f.wire != Wire::bytes) in.integer(f, "ints");
      return AttributeType::integers;
    case 9:
      in.bytes(f, "strings");
      return AttributeType::strings;
    case 14:
    case 15:
      forget_type(in.bytes(f, "type"));
      return one ? AttributeType::type : AttributeType::types;
    case 22:
    case 23:
      sparse_name(in.bytes(f, "sparse_tensor"));
      return one ? AttributeType::sparse_tensor : AttributeType::sparse_tensors;
    default:
      return AttributeType::undefined;
  }
}

// One attribute has one kind of value, the one it states. An empty list is written as no field at all, and some writers
// leave out the type (IR version 1) or a value that is 0.
void Parser::check_attribute(const WireReader& in, AttributeProto& a, std::uint32_t kinds) const {
  if ((kinds & (kinds - 1)) != 0) in.fail(fmt::format("attribute {} has values of several types", quote(a.name)));
  if (a.type == AttributeType::undefined && kinds != 0) {
    a.type = static_cast<AttributeType>(std::countr_zero(kinds));
  }
  const std::uint32_t stated = 1u << static_cast<unsigned>(a.type);
  if (kinds != 0 && kinds != stated) {
    in.fail(fmt::format("attribute {} is stated to be {}, its value is of another type", quote(a.name),
                        attribute_type_name(a.type)));
  }
  const bool needs = a.type == AttributeType::tensor || a.type == AttributeType::graph;
  if (needs && kinds == 0 && a.reference.empty()) in.fail(fmt::format("attribute {} has no value", quote(a.name)));
}

void Parser::dimensions(const WireReader& in, const Field& f, TensorProto& t) {
  const auto push = [&](std::uint64_t v) {
    if (t.dims.size() >= most_axes) in.fail(fmt::format("a tensor has more than {} dimensions", most_axes));
    add(in, t.dims) = static_cast<Index>(v);
  };
  if (f.wire == Wire::bytes) {
    each_varint(file_, f.bytes, push);
  } else {
    push(static_cast<std::uint64_t>(in.integer(f, "dims")));
  }
}

void Parser::tensor(std::string_view message, TensorProto& t) {
  WireReader in(file_, message, "tensor");
  t.body = message;
  bool name = false, type_seen = false, place = false;
  for (Field f; in.next(f);) {
    switch (f.number) {
      case 1:
        dimensions(in, f, t);
        break;
      case 2: {
        in.once(type_seen, "data_type");
        const Index v = in.integer(f, "data_type");
        if (v < 0 || v > 1'000'000) in.fail(fmt::format("data_type is {}", v));
        t.type = static_cast<std::int32_t>(v);
        break;
      }
      case 3:
        t.has_segment = true;
        break;
      case 4:
      case 5:
      case 6:
      case 7:
      case 10:
      case 11:
        if (f.wire != Wire::bytes || !f.bytes.empty() || f.number == 6) {
          t.typed = static_cast<std::uint8_t>(t.typed | 1u << (f.number - 4));
        }
        break;
      case 8:
        in.once(name, "name");
        t.name = in.text(f, "name");
        break;
      case 9:
        in.once(t.has_raw, "raw_data");
        t.raw = in.bytes(f, "raw_data");
        break;
      case 13:
        external(in.bytes(f, "external_data"), t);
        break;
      case 14: {
        in.once(place, "data_location");
        const Index v = in.integer(f, "data_location");
        if (v != 0 && v != 1) in.fail(fmt::format("data_location is {}, expected 0 or 1", v));
        t.external = v == 1;
        break;
      }
      default:
        break;
    }
  }
}

void Parser::external(std::string_view message, TensorProto& t) {
  const auto [key, value] = entry(message);
  std::string_view* const to = key == "location" ? &t.location
                               : key == "offset" ? &t.offset
                               : key == "length" ? &t.length
                                                 : nullptr;
  if (!to) return;  // `checksum` and what others add
  const char* const position = message.data();
  if (!to->empty()) file_.fail_at(position, fmt::format("external_data has {} twice", quote(key)));
  if (value.empty()) file_.fail_at(position, fmt::format("external_data has an empty {}", quote(key)));
  *to = value;
}

std::pair<std::string_view, std::string_view> Parser::entry(std::string_view message) {
  WireReader in(file_, message, "entry");
  std::pair<std::string_view, std::string_view> pair;
  bool key = false, value = false;
  for (Field f; in.next(f);) {
    if (f.number == 1) {
      in.once(key, "key");
      pair.first = in.text(f, "key");
    } else if (f.number == 2) {
      in.once(value, "value");
      pair.second = in.text(f, "value");
    }
  }
  return pair;
}

// A sparse tensor is only named: nothing that rlx runs takes one.
std::string_view Parser::sparse_name(std::string_view message) {
  WireReader in(file_, message, "sparse tensor");
  std::string_view name;
  for (Field f; in.next(f);) {
    if (f.number != 1) continue;
    TensorProto values;
    tensor(in.bytes(f, "values"), values);
    name = values.name;
  }
  return name;
}

void Parser::value(std::string_view message, ValueInfo& v) {
  WireReader in(file_, message, "value");
  bool name = false, type_seen = false;
  for (Field f; in.next(f);) {
    if (f.number == 1) {
      in.once(name, "name");
      v.name = in.text(f, "name");
    } else if (f.number == 2) {
      in.once(type_seen, "type");
      type(in.bytes(f, "type"), v);
    }
  }
}

void Parser::type(std::string_view message, ValueInfo& v) {
  WireReader in(file_, message, "type");
  deeper(in);
  ++depth_;
  bool kind = false;
  for (Field f; in.next(f);) {
    const char* const name = f.number == 1   ? "tensor"
                             : f.number == 4 ? "sequence"
                             : f.number == 5 ? "map"
                             : f.number == 8 ? "sparse tensor"
                             : f.number == 9 ? "optional"
                                             : nullptr;
    if (!name) continue;
    in.once(kind, "the kind of a type");
    v.kind = name;
    if (f.number == 1) {
      tensor_type(in.bytes(f, name), v);
    } else if (f.number == 8) {
      ValueInfo inner;
      tensor_type(in.bytes(f, name), inner);
    } else {
      v.inside = nested_type(in.bytes(f, name), name);
    }
  }
  --depth_;
}

void Parser::tensor_type(std::string_view message, ValueInfo& v) {
  WireReader in(file_, message, "tensor type");
  bool element = false;
  for (Field f; in.next(f);) {
    if (f.number == 1) {
      in.once(element, "elem_type");
      const Index t = in.integer(f, "elem_type");
      if (t < 0 || t > 1'000'000) in.fail(fmt::format("elem_type is {}", t));
      v.type = static_cast<std::int32_t>(t);
    } else if (f.number == 2) {
      in.once(v.has_shape, "shape");
      shape(in.bytes(f, "shape"), v);
    }
  }
}

void Parser::shape(std::string_view message, ValueInfo& v) {
  WireReader in(file_, message, "shape");
  for (Field f; in.next(f);) {
    if (f.number != 1) continue;
    if (v.dims.size() >= most_axes) in.fail(fmt::format("a shape has more than {} dimensions", most_axes));
    dimension(in.bytes(f, "dim"), add(in, v.dims));
  }
}

void Parser::dimension(std::string_view message, DimProto& d) {
  WireReader in(file_, message, "dimension");
  bool seen = false;
  for (Field f; in.next(f);) {
    if (f.number == 1) {
      in.once(seen, "the value of a dimension");
      d = {DimProto::Kind::value, in.integer(f, "dim_value"), {}};
    } else if (f.number == 2) {
      in.once(seen, "the value of a dimension");
      d = {DimProto::Kind::name, 0, in.text(f, "dim_param")};
      if (d.name.empty()) d.kind = DimProto::Kind::unknown;
    }
  }
}

// Types inside of sequences, maps and optionals are read, so that all of the file is well formed; their kind is kept.
std::string_view Parser::nested_type(std::string_view message, const char* kind) {
  WireReader in(file_, message, kind);
  std::string_view inside;
  for (Field f; in.next(f);) {
    if (f.number == (std::string_view(kind) == "map" ? 2u : 1u)) inside = forget_type(in.bytes(f, "elem_type"));
  }
  return inside;
}

void Parser::opset(std::string_view message, OpsetImport& o) {
  WireReader in(file_, message, "opset_import");
  bool domain = false, version = false;
  for (Field f; in.next(f);) {
    if (f.number == 1) {
      in.once(domain, "domain");
      o.domain = in.text(f, "domain");
      if (o.domain == "ai.onnx") o.domain = {};
    } else if (f.number == 2) {
      in.once(version, "version");
      o.version = in.integer(f, "version");
    }
  }
}

void Parser::function(std::string_view message, FunctionProto& g) {
  WireReader in(file_, message, "function");
  bool name = false, domain = false, overload = false;
  for (Field f; in.next(f);) {
    switch (f.number) {
      case 1:
        in.once(name, "name");
        g.name = in.text(f, "name");
        break;
      case 4:
        text(in, f, "input", g.inputs);
        break;
      case 5:
        text(in, f, "output", g.outputs);
        break;
      case 6:
        text(in, f, "attribute", g.attributes);
        break;
      case 7:
        node(in.bytes(f, "node"), add(in, g.nodes));
        break;
      case 9:
        opset(in.bytes(f, "opset_import"), add(in, g.opsets));
        break;
      case 10:
        in.once(domain, "domain");
        g.domain = in.text(f, "domain");
        if (g.domain == "ai.onnx") g.domain = {};
        break;
      case 11:
        attribute(in.bytes(f, "attribute_proto"), add(in, g.standard));
        break;
      case 13:
        in.once(overload, "overload");
        g.overload = in.text(f, "overload");
        break;
      default:
        break;
    }
  }
}

}  // namespace

std::unique_ptr<const ModelProto> read_model(const Bytes& bytes, const std::string& name) {
  auto model = std::make_unique<ModelProto>();
  model->bytes = bytes;
  model->file = {{reinterpret_cast<const char*>(bytes.data.data()), bytes.data.size()}, name};
  Parser(model->file).model(*model);
  return model;
}

std::unique_ptr<const ModelProto> read_model(const std::string& path, FileMode mode) {
  return read_model(MappedFile(path, mode).bytes(), path);
}

}  // namespace rlx::onnx
