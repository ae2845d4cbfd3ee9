// Attention by a state that every position updates, and FlexAttention.
#include <cmath>

#include "core/error.h"
#include "io/onnx/attention_parts.h"
#include "io/onnx/casts.h"
#include "io/onnx/importer.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/concat/concat.h"
#include "ops/constant/constant.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/slice/slice.h"

namespace rlx::onnx {

namespace {

constexpr Index most_positions = 512;  // that are laid out one by one

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

Values linear_attention(NodeArgs& n) {
  LinearNode a = linear_operands(n);
  const Index positions = known_size(a.q.dim(2), "the number of positions");
  require(positions <= most_positions, "{} positions, at most {} are supported", positions, most_positions);
  const Index shared = a.k.dim(1).constant(), size = a.q.dim(3).constant();
  Values results;
  for (Index t = 0; t < positions; ++t) {
    const auto at = [&](Value x) { return slice(x, 2, t, t + 1); };  // [B,H,1,..]
    const auto column = [&](Value x) { return reshape(x, {x.dim(0), x.dim(1), x.dim(3), 1}); };
    if (a.decay) a.state = a.state * exp(column(at(*a.decay)));
    Value v = at(a.v);
    const Value k = column(at(a.k));
    if (a.beta) v = at(*a.beta) * (v - matmul(k, a.state, {true, false}));
    a.state = a.state + k * v;
    const Value q = reshape(at(a.q), {a.q.dim(0), shared, a.group, size});
    results.push_back(reshape(matmul(q, a.state), {a.q.dim(0), shared * a.group, 1, a.v.dim(3)}));
  }
  require(!results.empty(), "there are no positions");
  const Value y = concat(results, 2) * constant(n.builder(), DType::f32, a.scale);
  return {cast(join_heads(y), n[0].dtype()), cast(a.state, (n.has(3) ? n[3] : n[0]).dtype())};
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
