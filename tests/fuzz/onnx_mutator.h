// Changes one thing of an ONNX model at a time: a node, its operator or operands, an attribute, an initialiser, a
// shape, a type, the operator set.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "core/dtype.h"
#include "fuzz/onnx_message.h"
#include "io/onnx/importer.h"

namespace rlx::fuzz {

class OnnxMutator {
 public:
  explicit OnnxMutator(std::uint64_t seed) : random_(seed) {}

  /// A model with one change; the text itself when it is no model.
  std::string operator()(std::string_view text) {
    auto m = parse(text, Kind::model);
    if (!m) return std::string(text);
    change(*m);
    return written(*m);
  }
  /// The first model with a part of the second in place of one of its own, or beside it.
  std::string cross(std::string_view text, std::string_view other) {
    auto m = parse(text, Kind::model), from = parse(other, Kind::model);
    if (!m || !from) return std::string(text);
    take(*m, *from);
    return written(*m);
  }

 private:
  using Found = std::vector<Message*>;

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  template <class T>
  auto& one_of(T& all) {
    return all[below(std::size(all))];
  }

  static Found all(Message& m, Kind kind) {
    Found found;
    each_message(m, [&](Message& inner) {
      if (inner.kind == kind) found.push_back(&inner);
    });
    return found;
  }

  void change(Message& model) {
    using Change = bool (OnnxMutator::*)(Message&);
    static constexpr std::array<std::pair<std::size_t, Change>, 13> changes{{
        {18, &OnnxMutator::change_attribute},
        {14, &OnnxMutator::change_tensor},
        {10, &OnnxMutator::change_operand},
        {8, &OnnxMutator::change_operator},
        {8, &OnnxMutator::change_shape},
        {8, &OnnxMutator::change_type},
        {8, &OnnxMutator::append_node},
        {5, &OnnxMutator::add_attribute},
        {4, &OnnxMutator::fix_input},
        {4, &OnnxMutator::change_version},
        {4, &OnnxMutator::remove},
        {4, &OnnxMutator::repeat},
        {2, &OnnxMutator::change_name},
    }};
    for (int attempt = 0; attempt < 20; ++attempt) {
      std::size_t at = below(97);
      for (const auto& [weight, f] : changes) {
        if (at < weight) {
          if ((this->*f)(model)) return;
          break;
        }
        at -= weight;
      }
    }
  }

  std::uint64_t number() {
    constexpr std::int64_t big = std::numeric_limits<std::int64_t>::max();
    static constexpr std::int64_t values[] = {0,  1,   -1,   2,       -2,  3,    -3,         4,          5,
                                              7,  8,   11,   16,      -5,  64,   255,        1000,       65536,
                                              -4, 127, 2048, 1 << 20, big, -big, 2147483647, 2147483648, -big - 1};
    return static_cast<std::uint64_t>(values[chance(75) ? below(12) : below(std::size(values))]);
  }
  float real() {
    static constexpr float values[] = {0, 1, -1, 0.5F, 2, -0.0F, 1e30F, -1e30F, 1e-30F, 3.7F, INFINITY, NAN, 100, -7};
    return one_of(values);
  }
  void change_number(Part& p) {
    const std::size_t kind = below(5);
    p.value = kind == 0 ? p.value + 1 : kind == 1 ? p.value - 1 : kind == 2 ? ~p.value + 1 : number();
  }
  static std::string bytes_of(float v) {
    std::string s(sizeof v, 0);
    std::memcpy(s.data(), &v, sizeof v);
    return s;
  }

  std::string word() {
    static constexpr const char* words[] = {"NOTSET",
                                            "SAME_UPPER",
                                            "SAME_LOWER",
                                            "VALID",
                                            "constant",
                                            "edge",
                                            "reflect",
                                            "wrap",
                                            "linear",
                                            "cubic",
                                            "nearest",
                                            "bilinear",
                                            "bicubic",
                                            "zeros",
                                            "border",
                                            "reflection",
                                            "half_pixel",
                                            "align_corners",
                                            "asymmetric",
                                            "pytorch_half_pixel",
                                            "tf_crop_and_resize",
                                            "half_pixel_symmetric",
                                            "floor",
                                            "ceil",
                                            "round_prefer_floor",
                                            "round_prefer_ceil",
                                            "sum",
                                            "mean",
                                            "none",
                                            "add",
                                            "mul",
                                            "max",
                                            "min",
                                            "forward",
                                            "reverse",
                                            "bidirectional",
                                            "Relu",
                                            "Tanh",
                                            "Sigmoid",
                                            "Affine",
                                            "DCR",
                                            "CRD",
                                            "LEFT",
                                            "RIGHT",
                                            "avg",
                                            "output_half_pixel",
                                            "ij,jk->ik",
                                            "...ii->...i",
                                            "i,i->",
                                            "tanh",
                                            "stretch",
                                            "not_larger",
                                            "not_smaller",
                                            "circular",
                                            "TF",
                                            "TFIDF",
                                            ""};
    return one_of(words);
  }
  // The words of a text that a blank ends each.
  static std::vector<std::string> words(std::string_view text) {
    std::vector<std::string> all;
    for (std::size_t end = 0; (end = text.find(' ')) != text.npos; text.remove_prefix(end + 1)) {
      all.emplace_back(text.substr(0, end));
    }
    return all;
  }
  std::string attribute_name() {
    static const std::vector<std::string> names = words(
        "axis axes perm keepdims pads strides dilations group kernel_shape mode to value direction "
        "hidden_size ceil_mode auto_pad batch_dims exclusive reverse largest sorted alpha beta transA "
        "transB epsilon num_outputs allowzero noop_with_empty_axes blocksize output_shape output_padding "
        "count_include_pad storage_order select_last_index upper p num_groups block_size saturate "
        "is_causal q_num_heads kv_num_heads scale softcap layout linear_before_reset clip input_forget "
        "activations align_corners padding_mode reduction ignore_index onesided inverse seed dtype "
        "sampling_ratio spatial_scale new_axis center_point_box fmod detect_positive starts ends split "
        "shape min max broadcast ");
    return one_of(names);
  }
  // Operators of all domains, as the importer has them.
  std::pair<std::string_view, std::string_view> operator_name() {
    static const auto known = [] {
      std::vector<std::pair<std::string_view, std::string_view>> all;
#define RLX_ROWS(family, domain) \
  for (const onnx::OperatorRow& r : onnx::family##_rows()) all.emplace_back(domain, r.name);
      RLX_ONNX_FAMILIES(RLX_ROWS)
#undef RLX_ROWS
      return all;
    }();
    return one_of(known);
  }
  // Names of values of the model's graph.
  static std::vector<std::string> names(Message& model) {
    std::vector<std::string> all;
    each_message(model, [&](Message& m) {
      for (const Part& p : m.parts) {
        const bool result = m.kind == Kind::node && p.number == 2;
        const bool named = (m.kind == Kind::value && p.number == 1) || (m.kind == Kind::tensor && p.number == 8);
        if ((result || named) && !p.bytes.empty()) all.push_back(p.bytes);
      }
    });
    return all;
  }

  bool change_attribute(Message& model) {
    Found found = all(model, Kind::attribute);
    if (found.empty()) return false;
    Message& a = *one_of(found);
    if (chance(4)) return a.set(1, attribute_name()), true;
    std::vector<Part*> values;
    for (Part& p : a.parts) {
      if (p.number == 2 || p.number == 3 || p.number == 4 || (p.number >= 7 && p.number <= 9)) values.push_back(&p);
    }
    if (values.empty()) return false;
    Part& p = *one_of(values);
    if (p.number >= 7 && chance(30)) {  // a list: longer or shorter
      const auto at = static_cast<std::ptrdiff_t>(&p - a.parts.data());
      if (chance(50)) return a.parts.erase(a.parts.begin() + at), true;
      const Part copy = p;
      return a.parts.insert(a.parts.begin() + at, copy), true;
    }
    if (p.wire == onnx::Wire::varint) {
      change_number(p);
    } else if (p.number == 2 || p.number == 7) {
      p.bytes = bytes_of(real());
    } else {
      p.bytes = word();
    }
    return true;
  }

  bool add_attribute(Message& model) {
    Found nodes = all(model, Kind::node), others = all(model, Kind::attribute);
    if (nodes.empty()) return false;
    Message a{Kind::attribute, {}};
    if (!others.empty() && chance(30)) {
      a = *one_of(others);
    } else {
      a.set(1, attribute_name());
      const std::size_t kind = below(5);
      const std::size_t elements = kind >= 3 ? below(5) : 1;
      static constexpr std::uint32_t fields[] = {3, 2, 4, 8, 7}, types[] = {2, 1, 3, 7, 6};
      for (std::size_t i = 0; i < elements; ++i) {
        Part p{fields[kind], onnx::Wire::varint, number(), {}, {}};
        if (kind == 1 || kind == 4) p = {fields[kind], onnx::Wire::fixed32, 0, bytes_of(real()), {}};
        if (kind == 2) p = {fields[kind], onnx::Wire::bytes, 0, word(), {}};
        a.parts.push_back(p);
      }
      a.set(20, types[kind]);
    }
    one_of(nodes)->parts.push_back({5, onnx::Wire::bytes, 0, {}, {std::move(a)}});
    return true;
  }

  // Dimensions, type or elements of a tensor, whose number of bytes fits again.
  bool change_tensor(Message& model) {
    Found found = all(model, Kind::tensor);
    if (found.empty()) return false;
    Message& t = *one_of(found);
    std::vector<Part*> dims;
    for (Part& p : t.parts) {
      if (p.number == 1) dims.push_back(&p);
    }
    switch (below(5)) {
      case 0:
        t.set(2, 1 + below(27));
        break;
      case 1:
        if (dims.empty()) return false;
        one_of(dims)->value = chance(90) ? below(9) : number();
        break;
      case 2:
        t.parts.insert(t.parts.begin(), {1, onnx::Wire::varint, below(4), {}, {}});
        break;
      case 3:
        if (dims.empty()) return false;
        t.parts.erase(t.parts.begin() + (one_of(dims) - t.parts.data()));
        break;
      default:
        return change_element(t);
    }
    if (chance(95)) fit(t);
    return true;
  }

  bool change_element(Message& t) {
    std::vector<Part*> elements;
    for (Part& p : t.parts) {
      if (p.number == 4 || p.number == 5 || p.number == 7 || p.number == 9 || p.number == 10) elements.push_back(&p);
    }
    if (elements.empty()) return false;
    Part& p = *one_of(elements);
    if (p.wire == onnx::Wire::varint) return change_number(p), true;
    const Part* type = t.find(2);
    const std::size_t width = width_of(type ? type->value : 0);
    if (width == 0 || p.bytes.size() < width) return false;
    const std::size_t at = below(p.bytes.size() / width) * width;
    const std::uint64_t v = number();
    const float f = real();
    const double d = f;
    const bool is_real = type->value == 1, is_double = type->value == 11;
    const void* from = is_real ? static_cast<const void*>(&f) : is_double ? static_cast<const void*>(&d) : &v;
    std::memcpy(p.bytes.data() + at, from, std::min<std::size_t>(width, 8));
    return true;
  }

  // Bytes of an element; 0 for what has none of a byte or more.
  static std::size_t width_of(std::uint64_t type) {
    static constexpr std::uint8_t widths[] = {0, 4, 1,  1, 2, 2, 4, 8, 0, 1, 2, 8, 4,
                                              8, 8, 16, 2, 1, 1, 1, 1, 0, 0, 0, 1};
    return type < std::size(widths) ? widths[type] : 0;
  }

  // Raw elements as many as dimensions and type ask for: those that are there, repeated.
  static void fit(Message& t) {
    const Part* type = t.find(2);
    const std::uint64_t code = type ? type->value : 0;
    std::uint64_t bits = width_of(code) * 8;
    if (code == 21 || code == 22 || code == 23) bits = 4;
    if (code == 25 || code == 26) bits = 2;
    std::string bytes;
    for (const Part& p : t.parts) {
      if (p.number == 1) bits = p.value > 4096 ? 0 : bits * p.value;
      if (p.number == 9 || p.number == 4 || p.number == 10) bytes += p.bytes;
      if (p.number == 5 || p.number == 7)
        bytes.append(reinterpret_cast<const char*>(&p.value), std::min<std::size_t>(width_of(code), 8));
      if (bits > 8 * 4096) return;
    }
    for (const std::uint32_t list : {4U, 5U, 7U, 9U, 10U, 11U}) t.erase(list);
    std::string raw((bits + 7) / 8, 1);
    for (std::size_t i = 0; i < raw.size() && !bytes.empty(); ++i) raw[i] = bytes[i % bytes.size()];
    t.set(9, raw);
  }

  bool change_operand(Message& model) {
    Found nodes = all(model, Kind::node);
    if (nodes.empty()) return false;
    Message& n = *one_of(nodes);
    const std::vector<std::string> known = names(model);
    std::vector<Part*> operands;
    for (Part& p : n.parts) {
      if (p.number == 1) operands.push_back(&p);
    }
    const std::size_t kind = below(5);
    if (operands.empty() || kind == 0) {
      if (known.empty()) return false;
      n.parts.push_back({1, onnx::Wire::bytes, 0, chance(20) ? "" : one_of(known), {}});
    } else if (kind == 1) {
      n.parts.erase(n.parts.begin() + (one_of(operands) - n.parts.data()));
    } else if (kind == 2) {
      std::swap(one_of(operands)->bytes, one_of(operands)->bytes);
    } else if (kind == 3) {
      one_of(operands)->bytes.clear();
    } else if (!known.empty()) {
      one_of(operands)->bytes = one_of(known);
    }
    return true;
  }

  bool change_operator(Message& model) {
    Found nodes = all(model, Kind::node);
    if (nodes.empty()) return false;
    set_operator(model, *one_of(nodes));
    return true;
  }
  void set_operator(Message& model, Message& n) {
    const auto [domain, name] = operator_name();
    n.set(4, name);
    n.erase(7);
    if (domain.empty()) return;
    n.set(7, domain);
    Found sets = all(model, Kind::opset);
    if (std::ranges::any_of(sets, [&](Message* s) { return s->text(1) == domain; })) return;
    Message set{Kind::opset, {}};
    set.set(1, domain);
    set.set(2, 1);
    model.parts.push_back({8, onnx::Wire::bytes, 0, {}, {std::move(set)}});
  }

  // A node after the others, whose result takes the place of an output.
  bool append_node(Message& model) {
    Part* graph = model.find(7);
    if (!graph || graph->message.empty()) return false;
    Message& g = graph->message[0];
    const std::vector<std::string> known = names(model);
    Found outputs;
    for (Part& p : g.parts) {
      if (p.number == 12 && !p.message.empty()) outputs.push_back(&p.message[0]);
    }
    if (known.empty() || outputs.empty()) return false;
    Message n{Kind::node, {}};
    Message& out = *one_of(outputs);
    n.parts.push_back({1, onnx::Wire::bytes, 0, out.text(1), {}});
    for (std::size_t i = below(3); i > 0; --i) n.parts.push_back({1, onnx::Wire::bytes, 0, one_of(known), {}});
    const std::string result = "n" + std::to_string(random_() % 100000);
    n.parts.push_back({2, onnx::Wire::bytes, 0, result, {}});
    set_operator(model, n);
    out.set(1, result);
    out.erase(2);
    Part part{1, onnx::Wire::bytes, 0, {}, {}};
    part.message.push_back(std::move(n));
    // set_operator may have moved the parts of the model.
    model.find(7)->message[0].parts.push_back(std::move(part));
    return true;
  }

  bool change_shape(Message& model) {
    Found shapes = all(model, Kind::shape);
    if (shapes.empty()) return false;
    Message& s = *one_of(shapes);
    Message d{Kind::dim, {}};
    if (chance(50)) {
      d.set(1, chance(85) ? below(8) : number());
    } else if (chance(70)) {
      static constexpr const char* symbols[] = {"N", "M", "K", "?"};
      d.set(2, one_of(symbols));
    }
    const std::size_t kind = below(4);
    if (s.parts.empty() || kind == 0) {
      s.parts.insert(s.parts.begin() + static_cast<std::ptrdiff_t>(below(s.parts.size() + 1)),
                     {1, onnx::Wire::bytes, 0, {}, {d}});
    } else if (kind == 1) {
      s.parts.erase(s.parts.begin() + static_cast<std::ptrdiff_t>(below(s.parts.size())));
    } else {
      one_of(s.parts) = {1, onnx::Wire::bytes, 0, {}, {d}};
    }
    return true;
  }

  bool change_type(Message& model) {
    Found types = all(model, Kind::tensor_type);
    if (types.empty()) return false;
    one_of(types)->set(1, 1 + below(26));
    return true;
  }

  // An input of few known sizes becomes an initialiser.
  bool fix_input(Message& model) {
    Part* graph = model.find(7);
    if (!graph || graph->message.empty()) return false;
    Message& g = graph->message[0];
    Found inputs;
    for (Part& p : g.parts) {
      if (p.number == 11 && !p.message.empty()) inputs.push_back(&p.message[0]);
    }
    if (inputs.empty()) return false;
    Message& v = *one_of(inputs);
    Found types = all(v, Kind::tensor_type), dims = all(v, Kind::dim);
    if (types.empty()) return false;
    Message t{Kind::tensor, {}};
    for (Message* d : dims) {
      const Part* size = d->find(1);
      t.parts.push_back({1, onnx::Wire::varint, size ? size->value : below(4), {}, {}});
    }
    const Part* type = types[0]->find(1);
    t.set(2, type ? type->value : 1);
    t.set(8, v.text(1));
    fit(t);
    g.parts.push_back({5, onnx::Wire::bytes, 0, {}, {std::move(t)}});
    return true;
  }

  bool change_version(Message& model) {
    Found sets = all(model, Kind::opset);
    if (sets.empty()) return false;
    one_of(sets)->set(2, 1 + below(28));
    return true;
  }

  static bool holds_parts(const Message& m) {
    return (m.kind == Kind::graph || m.kind == Kind::node || m.kind == Kind::function) && !m.parts.empty();
  }
  bool remove(Message& model) {
    Found found;
    each_message(model, [&](Message& m) {
      if (holds_parts(m)) found.push_back(&m);
    });
    if (found.empty()) return false;
    Message& m = *one_of(found);
    m.parts.erase(m.parts.begin() + static_cast<std::ptrdiff_t>(below(m.parts.size())));
    return true;
  }
  bool repeat(Message& model) {
    Found found;
    each_message(model, [&](Message& m) {
      if (holds_parts(m)) found.push_back(&m);
    });
    if (found.empty()) return false;
    Message& m = *one_of(found);
    Part copy = one_of(m.parts);
    if (copy.message.size() == 1 && copy.message[0].kind == Kind::node) {
      for (Part& p : copy.message[0].parts) {
        if (p.number == 2) p.bytes += "b";
      }
    }
    m.parts.insert(m.parts.begin() + static_cast<std::ptrdiff_t>(below(m.parts.size() + 1)), std::move(copy));
    return true;
  }
  bool change_name(Message& model) {
    Found nodes = all(model, Kind::node);
    const std::vector<std::string> known = names(model);
    if (nodes.empty() || known.empty()) return false;
    one_of(nodes)->set(chance(50) ? 2 : 3, one_of(known));
    return true;
  }

  // A node, attribute, initialiser or declared value of `from`, in place of one of its kind, or beside it.
  void take(Message& m, Message& from) {
    static constexpr Kind kinds[] = {Kind::node, Kind::attribute, Kind::tensor, Kind::shape, Kind::type};
    for (int attempt = 0; attempt < 10; ++attempt) {
      const Kind kind = one_of(kinds);
      Found here = all(m, kind), there = all(from, kind);
      if (here.empty() || there.empty()) continue;
      Message& to = *one_of(here);
      const Message taken = *one_of(there);
      if (kind == Kind::node && chance(50)) {  // the operator with its attributes, on the operands that are here
        std::erase_if(to.parts, [](const Part& p) { return p.number > 2; });
        for (const Part& p : taken.parts) {
          if (p.number > 2) to.parts.push_back(p);
        }
      } else {
        const std::string name = to.text(8);
        to = taken;
        if (kind == Kind::tensor) to.set(8, name);
      }
      return;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace rlx::fuzz
