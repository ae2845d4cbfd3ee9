// What an op is: one constant of rules. A folder under ops/ states them; everything else follows from the table.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/tensor.h"
#include "ir/attrs.h"
#include "ir/cases.h"
#include "ir/graph.h"
#include "ir/value.h"

namespace rlx {

/// What inference sees: operand types, bodies, known elements of integer operands; and where it leaves what it finds.
class InferContext {
 public:
  InferContext(Types types, std::span<const GraphPtr> graphs, std::span<const std::vector<Dim>* const> known)
      : in(types), bodies(graphs), known_(known) {}

  Types in;
  std::span<const GraphPtr> bodies;

  /// Elements of operand `i` as sizes, or null.
  const std::vector<Dim>* value(std::size_t i) const { return i < known_.size() ? known_[i] : nullptr; }
  /// States the elements of result `r`.
  void track(std::size_t r, std::vector<Dim> elements);
  /// Forgets elements that the integer type of their result may not hold: at run time they would wrap.
  void forget_wrapping(Types results);
  /// a == b, or Error "WHY: A is not B" when they cannot be equal, or a run-time check when that is not provable.
  void equal(const Dim& a, const Dim& b, std::string_view why);
  /// Broadcasts two shapes; see broadcast_dims.
  std::vector<Dim> broadcast(std::span<const Dim> a, std::span<const Dim> b);

  std::vector<Check> checks;
  std::vector<std::pair<std::size_t, std::vector<Dim>>> tracked;

 private:
  std::span<const std::vector<Dim>* const> known_;
};

/// What a definition sees.
struct DefineArgs {
  std::span<const Value> in;
  std::span<const GraphPtr> bodies;
  const Value& operator[](std::size_t i) const { return in[i]; }
};

/// What a gradient rule sees: operands, results, and the cotangent of each result (absent when nothing depends on it).
struct VjpArgs {
  std::span<const Value> in, out;
  std::span<const std::optional<Value>> cotangents;
  /// Cotangent of the only result.
  const Value& dout() const { return *cotangents[0]; }
};
/// One gradient an operand; absent: none flows.
using Grads = std::vector<std::optional<Value>>;

/// What a reference evaluates: concrete tensors; results are allocated, zero-filled.
struct RefArgs {
  std::span<const Tensor> in;
  std::span<Tensor> out;
  const DimEnv& dims;
};

/// An inference rule, a function or a lambda without captures, in one of three forms: (attributes, operand types) ->
/// type, (attributes, context) -> type, (attributes, context) -> types.
template <class A>
class InferRule {
 public:
  constexpr InferRule() = default;
  template <class F>
  constexpr InferRule(F f) {
    if constexpr (std::is_convertible_v<F, Full>) {
      full_ = f;
    } else if constexpr (std::is_convertible_v<F, One>) {
      one_ = f;
    } else {
      short_ = f;
    }
  }
  std::vector<TensorType> operator()(const A& a, InferContext& c) const {
    if (full_) return full_(a, c);
    return {one_ ? one_(a, c) : short_(a, c.in)};
  }

 private:
  using Full = std::vector<TensorType> (*)(const A&, InferContext&);
  using One = TensorType (*)(const A&, InferContext&);
  using Short = TensorType (*)(const A&, Types);
  Full full_ = nullptr;
  One one_ = nullptr;
  Short short_ = nullptr;
};

/// A definition: (attributes, arguments) -> Value or Values.
template <class A>
class DefineRule {
 public:
  constexpr DefineRule() = default;
  template <class F>
  constexpr DefineRule(F f) {
    if constexpr (std::is_convertible_v<F, Full>) {
      full_ = f;
    } else {
      one_ = f;
    }
  }
  constexpr explicit operator bool() const { return full_ || one_; }
  Values operator()(const A& a, const DefineArgs& d) const { return full_ ? full_(a, d) : Values{one_(a, d)}; }

 private:
  using Full = Values (*)(const A&, const DefineArgs&);
  using One = Value (*)(const A&, const DefineArgs&);
  Full full_ = nullptr;
  One one_ = nullptr;
};

enum Trait : unsigned {
  elementwise = 1,  // element i of the result depends on elements i of the operands (after broadcasting)
  commutative = 2,  // two operands, in either order
};

/// The rules of an op. `A` holds its attributes.
template <class A>
struct OpSpec {
  std::string_view name;
  /// Shapes, dtypes, formula, edge cases, source; the first sentence stands alone.
  std::string_view doc;
  unsigned traits = 0;
  InferRule<A> infer = {};
  /// The op in simpler ops; absent for a primitive.
  DefineRule<A> definition = {};
  /// Reverse mode; absent: the definition is differentiated, or, without one, the op has no gradient.
  Grads (*vjp)(const A&, const VjpArgs&) = nullptr;
  /// Forward mode and batching; empty until the drivers exist.
  void (*jvp)() = nullptr;
  void (*batch)() = nullptr;
  /// Slow and obvious evaluation in f64, i64, u64 or bits, rounded once; absent: the definition is evaluated.
  void (*reference)(const A&, const RefArgs&) = nullptr;
  std::vector<Case<A>> (*cases)() = nullptr;
  std::vector<Failure<A>> (*failures)() = nullptr;
};

/// An attribute as the documentation lists it: `axis`, `integer`, `-1`.
struct AttrInfo {
  std::string name, kind, standard;
};

/// An op, whatever its attributes.
class OpDef {
 public:
  virtual std::string_view name() const = 0;
  virtual std::string_view doc() const = 0;
  virtual unsigned traits() const = 0;
  virtual bool accepts(const Attrs&) const = 0;
  virtual std::vector<TensorType> infer(const Attrs&, InferContext&) const = 0;
  virtual bool has_definition() const = 0;
  virtual Values define(const Attrs&, const DefineArgs&) const = 0;
  virtual bool has_vjp() const = 0;
  virtual Grads vjp(const Attrs&, const VjpArgs&) const = 0;
  virtual bool has_reference() const = 0;
  virtual void reference(const Attrs&, const RefArgs&) const = 0;
  virtual std::vector<AnyCase> cases() const = 0;
  virtual std::vector<AnyFailure> failures() const = 0;
  /// Reads attributes up to the closing brace.
  virtual Attrs parse(AttrReader&) const = 0;
  virtual Attrs default_attrs() const = 0;
  /// Names, kinds and defaults of the attributes, in order.
  virtual std::vector<AttrInfo> describe_attrs() const = 0;
  /// Members of the attribute struct, and how many of them `fields` lists: the two must agree.
  virtual std::pair<std::size_t, std::size_t> field_counts() const = 0;

 protected:
  ~OpDef() = default;
};

template <class A>
class Op final : public OpDef {
 public:
  constexpr explicit Op(OpSpec<A> spec) : s_(spec) {}

  std::string_view name() const override { return s_.name; }
  std::string_view doc() const override { return s_.doc; }
  unsigned traits() const override { return s_.traits; }
  bool accepts(const Attrs& a) const override { return a.is<A>(); }
  std::vector<TensorType> infer(const Attrs& a, InferContext& c) const override { return s_.infer(a.as<A>(), c); }
  bool has_definition() const override { return static_cast<bool>(s_.definition); }
  Values define(const Attrs& a, const DefineArgs& d) const override { return s_.definition(a.as<A>(), d); }
  bool has_vjp() const override { return s_.vjp; }
  Grads vjp(const Attrs& a, const VjpArgs& v) const override { return s_.vjp(a.as<A>(), v); }
  bool has_reference() const override { return s_.reference; }
  void reference(const Attrs& a, const RefArgs& r) const override { s_.reference(a.as<A>(), r); }
  std::vector<AnyCase> cases() const override {
    std::vector<AnyCase> all;
    if (s_.cases) {
      for (auto& c : s_.cases()) all.push_back({Attrs(std::move(c.attrs)), std::move(c.common)});
    }
    return all;
  }
  std::vector<AnyFailure> failures() const override {
    std::vector<AnyFailure> all;
    if (s_.failures) {
      for (auto& f : s_.failures())
        all.push_back({Attrs(std::move(f.attrs)), std::move(f.types), std::move(f.message)});
    }
    return all;
  }
  Attrs parse(AttrReader& in) const override { return parse_attrs<A>(in); }
  Attrs default_attrs() const override { return Attrs(A{}); }
  std::vector<AttrInfo> describe_attrs() const override {
    std::vector<AttrInfo> all;
    const A a{};
    A::fields(a, [&](const char* field, const auto& x) {
      attr::print(all.emplace_back(AttrInfo{field, attr::kind(x), ""}).standard, x, nullptr);
    });
    return all;
  }
  std::pair<std::size_t, std::size_t> field_counts() const override {
    std::size_t listed = 0;
    const A a{};
    A::fields(a, [&](const char*, const auto&) { ++listed; });
    return {attr::member_count<A>(), listed};
  }

 private:
  OpSpec<A> s_;
};

}  // namespace rlx
