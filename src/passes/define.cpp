// Expanding a node into its definition, with the rule of the half types.
#include "passes/define.h"

#include <algorithm>

#include "ops/cast/cast.h"
#include "ops/reshape/reshape.h"

namespace rlx {

static bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

Values define(const OpDef& op, const Attrs& attrs, std::span<const Value> operands, std::span<const GraphPtr> bodies) {
  require(op.has_definition(), "op {} has no definition", op.name());
  require(!operands.empty(), "op {} has no operands", op.name());
  const bool widen = bodies.empty() && std::ranges::any_of(operands, [](Value v) { return is_half(v.dtype()); });
  if (!widen) return op.define(attrs, {operands, bodies});

  std::vector<TensorType> types;
  for (const Value& v : operands) types.push_back(v.type());
  InferContext context(types, bodies, {});
  const std::vector<TensorType> results = op.infer(attrs, context);
  Values wide;
  for (const Value& v : operands) wide.push_back(is_half(v.dtype()) ? cast(v, DType::f32) : v);
  Values made = op.define(attrs, {wide, bodies});
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (is_half(results[i].dtype)) made[i] = cast(made[i], results[i].dtype);
  }
  return made;
}

Values in_declared_sizes(Values made, const Node& n) {
  for (std::size_t i = 0; i < made.size() && i < n.results.size(); ++i) {
    const TensorType& declared = n.results[i];
    if (made[i].type() == declared || made[i].rank() != declared.rank()) continue;
    made[i] = reshape(made[i], declared.dims);
  }
  return made;
}

}  // namespace rlx
