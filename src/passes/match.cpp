// Looking at values while a graph is rebuilt.
#include "passes/match.h"

#include <algorithm>

#include "core/error.h"
#include "ir/op_table.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/softmax/softmax.h"
#include "ops/transpose/transpose.h"

namespace rlx::match {

const OpDef& op(std::string_view name) {
  static const OpRegistry registry;
  const OpDef* found = registry.find(name);
  ensure(found != nullptr, "a pass names an op that rlx lacks");
  return *found;
}

const Tensor* constant_of(const Node& n) { return n.op == &constant_op ? &n.attrs.as<ConstantAttrs>().data : nullptr; }

std::optional<std::uint64_t> splat(Value v) {
  constexpr Index most_elements = 1 << 16;
  while (is(v, broadcast_op) || is(v, reshape_op)) v = operand(v);
  const Tensor* t = constant_of(v);
  if (!t || t->type().encoding || t->count() == 0 || t->count() > most_elements) return {};
  const std::uint64_t first = t->code(0);
  for (Index i = 1; i < t->count(); ++i) {
    if (t->code(i) != first) return {};
  }
  return first;
}

bool is_all(Value v, double number) {
  const std::optional<std::uint64_t> bits = splat(v);
  return bits && !is_complex(v.dtype()) && *bits == Tensor::scalar(v.dtype(), number).code(0);
}

bool is_all_ones(Value v) {
  const std::optional<std::uint64_t> code = splat(v);
  if (!code) return false;
  if (v.dtype() == DType::boolean) return *code != 0;
  return is_integer(v.dtype()) && *code == ~std::uint64_t{0} >> (64 - bits(v.dtype()));
}

Value filled(Builder& b, const TensorType& type, double number) {
  return broadcast(constant(b, type.dtype, number), type.dims);
}

bool non_negative(Value v, int depth) {
  static const OpDef* const always[] = {&op("exp"),     &op("abs"),      &op("relu"),
                                        &op("sigmoid"), &op("softplus"), &softmax_op};
  static const OpDef* const passing[] = {&op("add"), &op("maximum"), &op("minimum"), &op("sqrt")};
  if (is_unsigned_integer(v.dtype()) || v.dtype() == DType::boolean) return true;
  if (!is_arithmetic_float(v.dtype()) || depth == 0) return false;
  const Node& n = node(v);
  if (std::ranges::find(always, n.op) != std::end(always)) return true;
  const auto all = [&] {
    return std::ranges::all_of(n.operands, [&](Operand o) { return non_negative({v.builder, o}, depth - 1); });
  };
  if (n.op == &op("mul")) return n.operands[0] == n.operands[1] || all();
  if (n.op == &reduce_op) return n.attrs.as<ReduceAttrs>().kind != ReduceKind::max && all();  // -inf of nothing
  if (n.op == &reshape_op || n.op == &transpose_op || n.op == &broadcast_op) return all();
  if (std::ranges::find(passing, n.op) != std::end(passing)) return all();
  const std::optional<std::uint64_t> code = splat(v);
  return code && (*code >> (bits(v.dtype()) - 1)) == 0;
}

// Bits of the significand, the leading one included.
static int precision(DType d) {
  switch (d) {
    case DType::f64:
      return 53;
    case DType::f32:
      return 24;
    case DType::f16:
      return 11;
    case DType::bf16:
      return 8;
    default:
      return 0;
  }
}

bool holds_all(DType to, DType from) {
  const auto plain = [](DType d) {
    return is_arithmetic_float(d) || d == DType::boolean || (is_integer(d) && bits(d) >= 8);
  };
  if (!plain(to) || !plain(from)) return false;
  if (to == from || from == DType::boolean) return true;
  if (to == DType::boolean) return false;
  if (is_float(from)) return is_float(to) && bits(to) > bits(from);
  const int value_bits = bits(from) - (is_signed_integer(from) ? 1 : 0);
  if (is_float(to)) return value_bits <= precision(to);
  if (is_signed_integer(from) && is_unsigned_integer(to)) return false;
  return value_bits <= bits(to) - (is_signed_integer(to) ? 1 : 0);
}

bool fits(Builder& b, const OpDef& op, const Attrs& attrs, std::span<const Value> operands, const TensorType& result) {
  std::vector<TensorType> types;
  std::vector<const std::vector<Dim>*> known;
  for (const Value& v : operands) {
    types.push_back(v.type());
    known.push_back(b.known(v));
  }
  InferContext context(types, {}, known);
  try {
    const std::vector<TensorType> inferred = op.infer(attrs, context);
    return inferred.size() == 1 && inferred[0] == result && context.checks.empty();
  } catch (const Error&) {
    return false;
  }
}

std::optional<Value> folded(Builder& b, const OpDef& op, std::span<const Value> constants) {
  constexpr Index most_elements = 4096;
  std::vector<TensorType> types;
  std::vector<Tensor> in;
  for (const Value& v : constants) {
    const Tensor* t = constant_of(v);
    if (!t || t->type().encoding) return {};
    types.push_back(t->type());
    in.push_back(*t);
  }
  if (!op.has_reference()) return {};
  InferContext context(types, {}, {});
  const TensorType type = op.infer(Attrs(), context)[0];
  if (!type.is_constant() || type.count().constant() > most_elements) return {};
  std::vector<Index> shape;
  for (const Dim& d : type.dims) shape.push_back(d.constant());
  std::vector<Tensor> out{Tensor(type.dtype, std::move(shape))};
  op.reference(Attrs(), {in, out, {}});
  return constant(b, std::move(out[0]));
}

bool stretches_to(std::span<const Dim> dims, std::span<const Dim> to) {
  if (dims.size() > to.size()) return false;
  to = to.last(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != Dim(1) && dims[i] != to[i]) return false;
  }
  return true;
}

}  // namespace rlx::match
