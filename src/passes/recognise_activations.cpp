// Recognises activations: one row a written form.
#include <fmt/format.h>

#include <unordered_map>

#include "ir/rewrite.h"
#include "ops/scalar/scalar.h"
#include "passes/pattern.h"
#include "passes/recognise.h"

namespace rlx {

namespace {

using namespace pattern;

constexpr Var x{0};

// Element types in which a written form equals the activation.
enum class Where {
  all,
  wide,    // not f16, whose exponentials overflow early
  single,  // f32 and bf16: a threshold fits their rounding
};

struct Rule {
  Pattern written;
  Value (*activation)(Value);
  Where where = Where::all;
};

bool holds_in(Where w, DType d) {
  if (w == Where::single) return d == DType::f32 || d == DType::bf16;
  return w == Where::all || d != DType::f16;
}

Pattern plus(double c, Pattern p) { return op("add", {std::move(p), number(c)}); }

Pattern clamped(double low, Pattern p, double high) {
  return either({op("minimum", {op("maximum", {p, number(low)}), number(high)}),
                 op("maximum", {op("minimum", {p, number(high)}), number(low)})});
}

Pattern relu_of(Pattern p) { return either({op("relu", {p}), op("maximum", {p, number(0)})}); }

Pattern relu6_of(Pattern p) {
  return either({op("relu6", {p}), clamped(0, p, 6), op("minimum", {op("relu", {p}), number(6)}),
                 op("relu", {op("minimum", {p, number(6)})})});
}

// 1 + e^-p
Pattern sigmoid_divisor(Pattern p) { return plus(1, op("exp", {product(-1, {p})})); }

// The forms that do not overflow: max(p, 0) + log(1 + e^-|p|). log(1 + e^p) is infinite from 89 on.
Pattern softplus_of(Pattern p) {
  const Pattern e = op("exp", {product(-1, {op("abs", {p})})});
  return either({op("softplus", {p}), op("add", {relu_of(p), either({op("log1p", {e}), op("log", {plus(1, e)})})})});
}

// p above a threshold from which on log(1 + e^p) rounds to it.
Pattern guarded_softplus_of(Pattern p) {
  const Pattern curve = either({op("log1p", {op("exp", {p})}), op("log", {plus(1, op("exp", {p}))})});
  return either({op("select", {op("greater", {p, number(20)}), p, curve}),
                 op("select", {op("less", {number(20), p}), p, curve})});
}

Pattern hard_sigmoid_of(Pattern p) {
  return either({op("hard_sigmoid", {p}), clamped(0, plus(0.5, product(1.0 / 6, {p})), 1),
                 product(1.0 / 6, {relu6_of(plus(3, p))})});
}

Pattern cube(Pattern p) {
  return either({op("pow", {p, number(3)}), product(1, {p, square(p)}), product(1, {p, p, p})});
}

// sqrt(2 / pi) * (p + 0.044715 p^3), times `factor`
Pattern gelu_tanh_inner(double factor, Pattern p) {
  const double outer = factor * base::sqrt_two_over_pi;
  return either({product(outer, {op("add", {p, product(0.044715, {cube(p)})})}),
                 product(outer, {p, plus(1, product(0.044715, {square(p)}))}),
                 product(outer, {p, plus(1, product(0.044715, {p, p}))}),
                 op("add", {product(outer, {p}), product(outer * 0.044715, {cube(p)})})});
}

std::vector<Rule> rules() {
  const Pattern erf_part = op("erf", {product(base::sqrt_half, {x})});
  const Pattern tanh_part = op("tanh", {gelu_tanh_inner(1, x)});
  return {
      {product(0.5, {x, plus(1, erf_part)}), gelu},
      {product(1, {x, plus(0.5, product(0.5, {erf_part}))}), gelu},
      {product(0.5, {x, op("erfc", {product(-base::sqrt_half, {x})})}), gelu},
      {product(0.5, {x, plus(1, tanh_part)}), gelu_tanh},
      {product(1, {x, plus(0.5, product(0.5, {tanh_part}))}), gelu_tanh},
      {product(1, {x, op("sigmoid", {gelu_tanh_inner(2, x)})}), gelu_tanh},
      {product(1, {x, op("sigmoid", {x})}), silu},
      {product(1, {x, inverse(sigmoid_divisor(x))}), silu, Where::wide},
      {op("div", {x, sigmoid_divisor(x)}), silu, Where::wide},
      {inverse(sigmoid_divisor(x)), sigmoid, Where::wide},
      {product(1, {x, op("tanh", {softplus_of(x)})}), mish},
      {product(1, {x, op("tanh", {guarded_softplus_of(x)})}), mish, Where::single},
      {product(-1, {softplus_of(product(-1, {x}))}), log_sigmoid},
      {softplus_of(x), softplus},
      {guarded_softplus_of(x), softplus, Where::single},
      {product(1, {x, hard_sigmoid_of(x)}), hard_swish},
      {hard_sigmoid_of(x), hard_sigmoid},
      {relu6_of(x), relu6},
      {op("maximum", {x, number(0)}), relu},
      {op("div", {x, plus(1, op("abs", {x}))}), softsign},
      {inverse(op("sqrt", {x})), rsqrt},
  };
}

// Ops that a written form can end in.
bool may_end(std::string_view op) {
  for (const std::string_view name :
       {"mul", "div", "add", "minimum", "maximum", "relu", "select", "neg", "reciprocal"}) {
    if (op == name) return true;
  }
  return false;
}

}  // namespace

Graph recognise_activations(const Graph& g, PassContext& context) {
  static const std::vector<Rule> all = rules();
  Matcher m(g);
  std::unordered_map<Id, std::pair<const Rule*, Operand>> found;
  for (Id id = 0; id < g.nodes.size(); ++id) {
    if (!m.live(id) || !may_end(g.nodes[id].op->name()) || !is_arithmetic_float(g.nodes[id].results[0].dtype)) continue;
    for (const Rule& rule : all) {
      if (!holds_in(rule.where, g.nodes[id].results[0].dtype) || !m.match(rule.written, {id, 0})) continue;
      if (!m.same_type(x, {id, 0})) continue;
      found.emplace(id, std::pair(&rule, m[x]));
      break;
    }
  }
  if (found.empty()) return g;
  context.remark(fmt::format("{} activations", found.size()));
  return drop_dead(rewrite(g, [&](Rewriter& r, Id id) -> std::optional<Values> {
    const auto at = found.find(id);
    if (at == found.end()) return std::nullopt;
    return Values{at->second.first->activation(r.value(at->second.second))};
  }));
}

}  // namespace rlx
