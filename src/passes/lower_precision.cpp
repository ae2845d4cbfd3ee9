// lower-precision: products and attention of f32 values in a shorter float type, where the options ask for it.
#include <map>

#include "core/error.h"
#include "ir/rewrite.h"
#include "ops/attention/attention.h"
#include "ops/cast/cast.h"
#include "ops/matmul/matmul.h"
#include "ops/slice/slice.h"
#include "passes/passes.h"

namespace rlx {

namespace {

class Shortener {
 public:
  Shortener(const Graph& g, DType type) : g_(g), type_(type) {}

  std::optional<Values> visit(Rewriter& r, Id id) {
    const Node& n = g_.nodes[id];
    if ((n.op != &matmul_op && n.op != &attention_op) || n.results[0].dtype != DType::f32) return std::nullopt;
    for (const Operand o : n.operands) {
      if (g_.type(o).encoding) return std::nullopt;
    }
    ++changed;
    Values in;
    for (const Operand o : n.operands) in.push_back(shortened(r, o));
    const Value result = r.builder().emit(*n.op, n.attrs, in)[0];
    short_.emplace(Operand{id, 0}, result);
    return Values{cast(result, DType::f32)};
  }
  std::size_t changed = 0;

 private:
  // A value in the shorter type, once for all that read it: parts of a value are parts of the short one.
  Value shortened(Rewriter& r, Operand o) {
    const auto made = short_.find(o);
    if (made != short_.end()) return made->second;
    const Node& n = g_.nodes[o.node];
    const bool part = n.op == &slice_op && n.results[0].dtype == DType::f32;
    const Value whole = part ? shortened(r, n.operands[0]) : r.value(o);
    const Value v = part                          ? slice(whole, n.attrs.as<SliceAttrs>())
                    : whole.dtype() == DType::f32 ? cast(whole, type_)
                                                  : whole;
    return short_.emplace(o, v).first->second;
  }

  const Graph& g_;
  DType type_;
  std::map<Operand, Value> short_;
};

}  // namespace

Graph lower_precision(const Graph& g, PassContext& context) {
  const std::optional<DType> shorter = context.options.matmul_dtype;
  if (!shorter || *shorter == DType::i8) return g;
  require(*shorter == DType::bf16 || *shorter == DType::f16, "products in {} are asked for, expected bf16, f16 or i8",
          name(*shorter));
  Shortener all(g, *shorter);
  const Graph result = rewrite(g, [&](Rewriter& r, Id id) { return all.visit(r, id); });
  context.remark(fmt::format("{} products and attentions in {}", all.changed, name(*shorter)));
  return fold_constants(result, context);  // weights
}

}  // namespace rlx
