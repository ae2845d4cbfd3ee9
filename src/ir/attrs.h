// Attributes of a node: a plain struct with one `fields` list, from which equality, hash, text and parsing follow.
//
//   struct SoftmaxAttrs {
//     Index axis = -1;
//     static void fields(auto& a, auto&& f) { f("axis", a.axis); }
//   };
//
// A field is a bool, Index, double, std::string, DType, Dim, Tensor, an enum with `enum_names(E)` found by
// argument-dependent lookup (values 0, 1, 2, …), or a std::vector or std::optional of these.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/dim.h"
#include "core/error.h"
#include "core/tensor.h"

namespace rlx {

using NamedDims = std::map<std::string, Dim, std::less<>>;
using NamedTensors = std::map<std::string, Tensor, std::less<>>;

/// Where large constants go while a graph is printed: `add` stores the bytes and gives the name that stands in the
/// text.
class ConstantSink {
 public:
  std::string add(const Tensor& data);
  NamedTensors take() { return std::move(tensors_); }

 private:
  NamedTensors tensors_;
  std::map<std::pair<std::vector<const void*>, std::string>, std::string> names_;  // by storage of all planes
};

/// A cursor over attribute text.
class AttrReader {
 public:
  AttrReader(std::string_view text, std::size_t& position, const NamedDims& symbols, const NamedTensors& data)
      : text_(text), position_(position), symbols_(symbols), data_(data) {}

  bool take(std::string_view token);
  void need(std::string_view token);
  std::string word();
  std::string quoted();
  Dim dim();
  Index integer();
  std::uint64_t natural();
  double real();
  Tensor tensor();
  char peek();

 private:
  void skip();
  std::string_view text_;
  std::size_t& position_;
  const NamedDims& symbols_;
  const NamedTensors& data_;
};

/// `"a\nb"` with \" \\ \n \t \xHH escapes; reads back by AttrReader::quoted.
std::string quote(std::string_view s);

namespace attr {

// Canonical bytes: equal fields give equal keys, floats by their bits (all NaN alike), large tensors by storage.
void key(std::string& out, bool v);
void key(std::string& out, Index v);
void key(std::string& out, double v);
void key(std::string& out, const std::string& v);
void key(std::string& out, DType v);
void key(std::string& out, const Dim& v);
void key(std::string& out, const Tensor& v);

void print(std::string& out, bool v, ConstantSink*);
void print(std::string& out, Index v, ConstantSink*);
void print(std::string& out, double v, ConstantSink*);
void print(std::string& out, const std::string& v, ConstantSink*);
void print(std::string& out, DType v, ConstantSink*);
void print(std::string& out, const Dim& v, ConstantSink*);
void print(std::string& out, const Tensor& v, ConstantSink*);

void parse(AttrReader& in, bool& v);
void parse(AttrReader& in, Index& v);
void parse(AttrReader& in, double& v);
void parse(AttrReader& in, std::string& v);
void parse(AttrReader& in, DType& v);
void parse(AttrReader& in, Dim& v);
void parse(AttrReader& in, Tensor& v);

template <class E>
  requires std::is_enum_v<E>
void key(std::string& out, E v) {
  key(out, static_cast<Index>(v));
}
template <class E>
  requires std::is_enum_v<E>
void print(std::string& out, E v, ConstantSink*) {
  out += enum_names(v)[static_cast<std::size_t>(v)];
}
template <class E>
  requires std::is_enum_v<E>
void parse(AttrReader& in, E& v) {
  const std::string w = in.word();
  std::string known;
  for (std::size_t i = 0; i < enum_names(v).size(); ++i) {
    if (enum_names(v)[i] == w) {
      v = static_cast<E>(i);
      return;
    }
    known += (i ? ", " : "") + std::string(enum_names(v)[i]);
  }
  fail("\"{}\" is unknown, expected one of {}", w, known);
}

template <class T>
void key(std::string& out, const std::vector<T>& v) {
  key(out, static_cast<Index>(v.size()));
  for (const auto& x : v) key(out, static_cast<const T&>(x));
}
template <class T>
void print(std::string& out, const std::vector<T>& v, ConstantSink* sink) {
  out += '[';
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (i) out += ',';
    print(out, static_cast<const T&>(v[i]), sink);
  }
  out += ']';
}
template <class T>
void parse(AttrReader& in, std::vector<T>& v) {
  v.clear();
  in.need("[");
  if (in.take("]")) return;
  do {
    T x{};
    parse(in, x);
    v.push_back(std::move(x));
  } while (in.take(","));
  in.need("]");
}

template <class T>
void key(std::string& out, const std::optional<T>& v) {
  key(out, v.has_value());
  if (v) key(out, *v);
}
template <class T>
void print(std::string& out, const std::optional<T>& v, ConstantSink* sink) {
  if (v) {
    print(out, *v, sink);
  } else {
    out += "none";
  }
}
template <class T>
void parse(AttrReader& in, std::optional<T>& v) {
  v.reset();
  if (in.take("none")) return;
  parse(in, v.emplace());
}

// What an attribute of this type holds, in words for the documentation.
inline std::string kind(bool) { return "bool"; }
inline std::string kind(Index) { return "integer"; }
inline std::string kind(double) { return "number"; }
inline std::string kind(const std::string&) { return "string"; }
inline std::string kind(DType) { return "element type"; }
inline std::string kind(const Dim&) { return "size"; }
inline std::string kind(const Tensor&) { return "tensor"; }
template <class E>
  requires std::is_enum_v<E>
std::string kind(E v) {
  std::string words;
  for (const std::string_view word : enum_names(v)) words += (words.empty() ? "" : " or ") + std::string(word);
  return words;
}
template <class T>
std::string kind(const std::vector<T>&) {
  return "list of " + kind(T{});
}
template <class T>
std::string kind(const std::optional<T>&) {
  return kind(T{}) + " or none";
}

template <class T>
void substitute(T&, const NamedDims&) {}
inline void substitute(Dim& v, const NamedDims& by) { v = v.substitute(by); }
inline void substitute(std::vector<Dim>& v, const NamedDims& by) {
  for (Dim& d : v) d = d.substitute(by);
}
inline void substitute(std::optional<Dim>& v, const NamedDims& by) {
  if (v) v = v->substitute(by);
}

inline void symbols(const auto&, DimSymbols&) {}
inline void symbols(const Dim& v, DimSymbols& out) { v.collect_symbols(out); }
inline void symbols(const std::vector<Dim>& v, DimSymbols& out) {
  for (const Dim& d : v) d.collect_symbols(out);
}
inline void symbols(const std::optional<Dim>& v, DimSymbols& out) {
  if (v) v->collect_symbols(out);
}

template <class A>
inline constexpr char type_tag = 0;  // its address identifies A

}  // namespace attr

/// No attributes.
struct NoAttrs {
  static void fields(auto&, auto&&) {}
};

/// Attributes of any type, immutable and shared.
class Attrs {
 public:
  Attrs() : Attrs(NoAttrs{}) {}
  template <class A>
    requires(!std::is_same_v<A, Attrs>)
  explicit Attrs(A value) {
    if constexpr (std::is_empty_v<A>) {
      static const std::shared_ptr<const Box> empty = std::make_shared<Of<A>>(A{});
      box_ = empty;
    } else {
      box_ = std::make_shared<Of<A>>(std::move(value));
    }
  }

  template <class A>
  bool is() const {
    return box_->tag == &attr::type_tag<A>;
  }
  /// The attributes as their own type; throws InternalError for another one.
  template <class A>
  const A& as() const {
    ensure(is<A>(), "attributes of another op");
    return static_cast<const Of<A>&>(*box_).value;
  }

  bool operator==(const Attrs& o) const {
    return box_ == o.box_ || (box_->tag == o.box_->tag && box_->hash == o.box_->hash && box_->key == o.box_->key);
  }
  std::size_t hash() const { return box_->hash; }
  /// `axis=1, keep=true`: fields that differ from their defaults, in order. Large tensors go to `sink`.
  std::string print(ConstantSink* sink = nullptr) const { return box_->print(sink); }
  Attrs substitute(const NamedDims& by) const { return box_->substitute(by); }
  void collect_symbols(DimSymbols& out) const { box_->symbols(out); }

 private:
  struct Box {
    const void* tag = nullptr;
    std::string key;
    std::size_t hash = 0;
    virtual ~Box() = default;
    virtual std::string print(ConstantSink*) const = 0;
    virtual Attrs substitute(const NamedDims&) const = 0;
    virtual void symbols(DimSymbols&) const = 0;
  };

  template <class A>
  struct Of final : Box {
    A value;
    explicit Of(A v) : value(std::move(v)) {
      this->tag = &attr::type_tag<A>;
      A::fields(value, [&](const char*, const auto& x) { attr::key(this->key, x); });
      this->hash = std::hash<std::string>{}(this->key);
    }
    std::string print(ConstantSink* sink) const override {
      std::vector<std::string> standard;
      const A d{};
      A::fields(d, [&](const char*, const auto& x) { attr::key(standard.emplace_back(), x); });
      std::string s;
      std::size_t i = 0;
      A::fields(value, [&](const char* name, const auto& x) {
        std::string k;
        attr::key(k, x);
        if (k == standard[i++]) return;
        s += (s.empty() ? "" : ", ") + std::string(name) + "=";
        attr::print(s, x, sink);
      });
      return s;
    }
    Attrs substitute(const NamedDims& by) const override {
      A copy = value;
      A::fields(copy, [&](const char*, auto& x) { attr::substitute(x, by); });
      return Attrs(std::move(copy));
    }
    void symbols(DimSymbols& out) const override {
      A::fields(value, [&](const char*, const auto& x) { attr::symbols(x, out); });
    }
  };

  std::shared_ptr<const Box> box_;
};

/// Reads `name=value, …` up to the closing brace; throws Error for an unknown or repeated name or a bad value.
template <class A>
Attrs parse_attrs(AttrReader& in) {
  A value{};
  std::vector<std::string> seen;
  while (!in.take("}")) {
    if (!seen.empty()) in.need(",");
    const std::string name = in.word();
    for (const std::string& s : seen) require(s != name, "attribute {} is given twice", name);
    seen.push_back(name);
    in.need("=");
    bool known = false;
    A::fields(value, [&](const char* field, auto& x) {
      if (name != field) return;
      known = true;
      try {
        attr::parse(in, x);
      } catch (const Error& e) {
        fail("attribute {}: {}", name, e.what());
      }
    });
    if (known) continue;
    std::string fields;
    A::fields(value, [&](const char* field, auto&) { fields += (fields.empty() ? "" : ", ") + std::string(field); });
    fail("unknown attribute \"{}\", expected {}", name, fields.empty() ? "none" : "one of " + fields);
  }
  return Attrs(std::move(value));
}

namespace attr {
struct Anything {
  template <class T>
  operator T() const;
};
template <class A, class... Members>
consteval std::size_t member_count() {
  if constexpr (requires { A{Members{}..., Anything{}}; }) {
    return member_count<A, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}
}  // namespace attr

}  // namespace rlx
