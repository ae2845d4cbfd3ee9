// Attention by a state that every position updates, and FlexAttention.
#include <cmath>

#include "core/error.h"
#include "io/onnx/attention_parts.h"
#include "io/onnx/casts.h"
#include "io/onnx/importer.h"
#include "ir/control.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/transpose/transpose.h"

namespace rlx::onnx {

namespace {

Index known_size(const Dim& d, const char* what) {
  require(d.is_constant(), "{} is {}, expected a known number", what, d.text());
  return d.constant();
}

// Operands in f32 and [B,H,T,..].
struct LinearNode {
  Value q, k, v, state;
  std::optional<Value> decay, beta;
  double scale = 1;
  Index group = 1;
};

// [B,T,heads*n] with n of `sizes`; n in the last axis.
Value gate(Value x, Index heads, std::initializer_list<Index> sizes, const char* what) {
  require(x.rank() == 3, "{} is {}, expected rank 3", what, x.type().text());
  for (const Index size : sizes) {
    if (x.dim(-1) == Dim(heads * size)) return split_heads(cast(x, DType::f32), heads);
  }
  fail("{} is {}, which are not {} heads", what, x.type().text(), heads);
}

LinearNode linear_operands(NodeArgs& n) {
  n.expect(3, 6);
  n.ignore("chunk_size");  // of an algorithm
  const Index heads = n.integer("q_num_heads"), shared = n.integer("kv_num_heads");
  require(heads > 0 && shared > 0 && heads % shared == 0, "{} heads of q do not share {} heads of k evenly", heads,
          shared);
  const std::string rule = n.string("update_rule", "gated_delta");
  require(rule == "linear" || rule == "gated" || rule == "delta" || rule == "gated_delta",
          "update_rule {} is not known", in_quotes(rule));
  const bool gated = rule.starts_with("gated"), delta = rule.ends_with("delta");
  require(n.has(4) == gated, "update_rule {} is {} a decay", in_quotes(rule), gated ? "given without" : "given");
  require(n.has(5) == delta, "update_rule {} is {} a beta", in_quotes(rule), delta ? "given without" : "given");
  LinearNode a;
  a.q = split_heads(cast(n[0], DType::f32), heads);
  a.k = split_heads(cast(n[1], DType::f32), shared);
  a.v = split_heads(cast(n[2], DType::f32), shared);
  a.group = heads / shared;
  const Index size = known_size(a.q.dim(3), "the size of a head");
  require(a.k.dim(3) == Dim(size), "heads of k have {} elements, those of q {}", a.k.dim(3).text(), size);
  if (gated) a.decay = gate(n[4], shared, {1, size}, "decay");
  if (delta) a.beta = n[5].dim(-1) == Dim(1) ? gate(n[5], 1, {1}, "beta") : gate(n[5], shared, {1}, "beta");
  const double scale = n.real("scale", 0);
  a.scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(size)) : scale;
  const std::vector<Dim> dims{a.q.dim(0), shared, size, a.v.dim(3)};
  a.state = n.has(3) ? cast(n[3], DType::f32) : broadcast(constant(n.builder(), DType::f32, 0), dims);
  require(a.state.rank() == 4, "past_state is {}, expected rank 4", a.state.type().text());
  return a;
}

// What belongs to one position, [B,H,..].
struct Position {
  Value q, k, v;
  std::optional<Value> decay, beta;
};
struct Updated {
  Value state, y;  // [B,Hkv,Dk,Dv] and [B,H,Dv]
};

Updated updated(Value state, const Position& p, Index group) {
  const Value k = unsqueeze(p.k, {3});
  Value v = unsqueeze(p.v, {2});
  if (p.decay) state = state * exp(unsqueeze(*p.decay, {3}));
  if (p.beta) v = unsqueeze(*p.beta, {3}) * (v - matmul(k, state, {true, false}));
  state = state + k * v;
  const Index shared = p.k.dim(1).constant();
  const Value q = reshape(p.q, {p.q.dim(0), shared, group, p.q.dim(2)});
  return {state, reshape(matmul(q, state), {p.q.dim(0), shared * group, p.v.dim(2)})};
}

Values linear_attention(NodeArgs& n) {
  const LinearNode a = linear_operands(n);
  Values operands{a.state};  // what is read position by position lies along axis 0
  for (const std::optional<Value>& x : {std::optional(a.q), std::optional(a.k), std::optional(a.v), a.decay, a.beta}) {
    if (x) operands.push_back(transpose(*x, {2, 0, 1, 3}));
  }
  Builder body;
  Values in;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    TensorType t = operands[i].type();
    if (i > 0) t.dims.erase(t.dims.begin());
    in.push_back(body.input("x" + std::to_string(i), std::move(t)));
  }
  Position p{in[1], in[2], in[3], {}, {}};
  if (a.decay) p.decay = in[4];
  if (a.beta) p.beta = in.back();
  const Updated step = updated(in[0], p, a.group);
  const ScanAttrs attrs{a.q.dim(2), 1, static_cast<Index>(operands.size()) - 1, {}, {}};
  const Values out =
      scan(n.builder(), attrs, operands, std::make_shared<const Graph>(body.finish({step.state, step.y})));
  const Value y = out[1] * constant(n.builder(), DType::f32, a.scale), by_batch = transpose(y, {1, 0, 2, 3});
  const Value joined = reshape(by_batch, {y.dim(1), y.dim(0), y.dim(2) * y.dim(3)});
  return {cast(joined, n[0].dtype()), cast(out[0], (n.has(3) ? n[3] : n[0]).dtype())};
}

// A graph with one input and one result, in place of a function.
Value inlined(NodeArgs& n, const GraphProto& g, Value x) {
  require(g.inputs.size() == 1 && g.outputs.size() == 1, "a graph has {} inputs and {} results, expected one of each",
          g.inputs.size(), g.outputs.size());
  const Item item = n.importer().inline_graph(g, n.frame(), {x})[0];
  require(item.tensor(), "a graph makes {}, expected a tensor", kind_of(item));
  const Value y = item.values[0];
  require(y.type() == x.type(), "a graph makes {} of {}", y.type().text(), x.type().text());
  return y;
}

Values flex_attention(NodeArgs& n) {
  n.expect(3, 3);
  const Value q = n[0];
  require(q.rank() == 4 && q.dim(-1).is_constant(), "q is {}, expected rank 4 and heads of a known size",
          q.type().text());
  AttentionRules r;
  r.scale = n.real("scale", 1 / std::sqrt(static_cast<double>(q.dim(-1).constant())));
  const Index wanted = n.integer("softmax_precision", 0);
  r.precision = wanted != 0 ? element_type(wanted) : q.dtype() == DType::f64 ? DType::f64 : DType::f32;
  r.wide_product = true;
  if (n.given("score_mod")) r.change_scores = [&, g = &n.graph("score_mod")](Value x) { return inlined(n, *g, x); };
  if (n.given("prob_mod")) r.change_weights = [&, g = &n.graph("prob_mod")](Value x) { return inlined(n, *g, x); };
  return {attention_by_operators(q, n[1], n[2], r).y};
}

}  // namespace

OperatorRows linear_attention_rows() {
  static constexpr OperatorRow rows[] = {
      {"LinearAttention", 27, linear_attention},
  };
  return rows;
}

OperatorRows preview_rows() {
  static constexpr OperatorRow rows[] = {{"FlexAttention", 1, flex_attention}};
  return rows;
}

}  // namespace rlx::onnx
