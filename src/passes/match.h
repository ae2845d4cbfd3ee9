// Looking at values while a graph is rebuilt: which op made them, constants, equal elements.
#pragma once

#include <optional>
#include <string_view>

#include "ir/builder.h"

namespace rlx::match {

/// The op of rlx with this name; InternalError when there is none.
const OpDef& op(std::string_view name);

/// The node that makes a value. The reference holds until a node is added.
inline const Node& node(Value v) { return v.builder->graph().nodes[v.at.node]; }
inline bool is(Value v, const OpDef& op) { return node(v).op == &op; }
/// Operand `i` of the node that makes a value.
inline Value operand(Value v, std::size_t i = 0) { return {v.builder, node(v).operands[i]}; }
/// The attributes of the node that makes a value.
template <class A>
A attrs(Value v) {
  return node(v).attrs.template as<A>();
}

/// The tensor of a constant, or null.
const Tensor* constant_of(const Node& n);
inline const Tensor* constant_of(Value v) { return constant_of(node(v)); }

/// The bits of one element, when a value is known to hold nothing else: a constant whose elements are equal bit by bit,
/// maybe reshaped or broadcast. Large constants are not looked at.
std::optional<std::uint64_t> splat(Value v);
/// Whether every element is `number`, told apart from 0 of the other sign.
bool is_all(Value v, double number);
/// Whether every element has all bits set (true, for a bool).
bool is_all_ones(Value v);

/// `number` everywhere, of this type: a constant, broadcast where it has to be.
Value filled(Builder& b, const TensorType& type, double number);

/// Whether no element is below 0 or -0 (it may be NaN or infinite), as far as a few steps back show.
bool non_negative(Value v, int depth = 8);

/// Whether every value of `from` is one of `to`, so that a cast loses nothing.
bool holds_all(DType to, DType from);

/// Whether a node can be added without a new run-time check, and has results of these types.
bool fits(Builder& b, const OpDef& op, const Attrs& attrs, std::span<const Value> operands, const TensorType& result);

/// The constant that an elementwise op without attributes makes of constants, by its reference; nothing when it is
/// large, or the op has none.
std::optional<Value> folded(Builder& b, const OpDef& op, std::span<const Value> constants);

/// Whether `dims` broadcast to `to` for all values of the symbols: axis by axis equal, or the constant 1.
bool stretches_to(std::span<const Dim> dims, std::span<const Dim> to);

}  // namespace rlx::match
