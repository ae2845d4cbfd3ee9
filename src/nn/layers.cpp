// Layers.
#include "nn/layers.h"

#include <array>

#include "core/error.h"
#include "ops/attention/attention.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/layer_norm/layer_norm.h"
#include "ops/matmul/matmul.h"
#include "ops/reshape/reshape.h"
#include "ops/rope/rope.h"
#include "ops/scalar/scalar.h"

namespace rlx {

Value linear(Value x, const Parameters& p, Index in, Index out) {
  const Value y = matmul(x, p.take("weight", {out, in}), {.transpose_b = true});
  return p.has("bias") ? y + p.take("bias", {out}) : y;
}

Value layer_norm(Value x, const Parameters& p, Index features, double epsilon) {
  // Older files call the parameters gamma and beta.
  const bool old = !p.has("weight") && p.has("gamma");
  return layer_norm(x, p.take(old ? "gamma" : "weight", {features}), p.take(old ? "beta" : "bias", {features}),
                    {.epsilon = epsilon});
}

Value rms_norm(Value x, const Parameters& p, Index features, double epsilon) {
  return rms_norm(x, p.take("weight", {features}), {.epsilon = epsilon});
}

Value embedding(Value indices, const Parameters& p, Index rows, Index features) {
  return gather(p.take("weight", {rows, features}), indices, 0);
}

Value activation(Value x, std::string_view name) {
  struct Row {
    std::string_view name;
    Value (*function)(Value);
  };
  static constexpr std::array<Row, 10> rows{{{"gelu", gelu},
                                             {"gelu_new", gelu_tanh},
                                             {"gelu_pytorch_tanh", gelu_tanh},
                                             {"gelu_fast", gelu_tanh},
                                             {"relu", relu},
                                             {"silu", silu},
                                             {"swish", silu},
                                             {"tanh", tanh},
                                             {"sigmoid", sigmoid},
                                             {"mish", mish}}};
  std::string known;
  for (const Row& r : rows) {
    if (r.name == name) return r.function(x);
    known += (known.empty() ? "" : ", ") + std::string(r.name);
  }
  fail("unknown activation \"{}\", expected one of {}", name, known);
}

namespace {

struct Projected {
  Value q, k, v;
};

Projected project(Value x, const Parameters& p, const AttentionNames& names, Index features, Index heads) {
  require(heads > 0 && features % heads == 0, "{} features are not divisible by {} heads", features, heads);
  return {linear(x, p.in(names.query), features, features), linear(x, p.in(names.key), features, features),
          linear(x, p.in(names.value), features, features)};
}

Value attend(const Projected& p, Value mask, Index heads) {
  return attention(p.q, p.k, p.v, mask,
                   {.layout = AttentionLayout::packed, .extra = AttentionExtra::keys, .heads = heads});
}

}  // namespace

Value self_attention(Value x, Value mask, const Parameters& p, const AttentionNames& names, Index features,
                     Index heads) {
  return attend(project(x, p, names, features, heads), mask, heads);
}

RotaryTables rotary_tables(Value positions, const std::vector<double>& frequencies, double scale) {
  const auto count = static_cast<Index>(frequencies.size());
  const Value row = constant(*positions.builder, Tensor::of<double>(DType::f32, {1, count}, frequencies));
  const Value angle = unsqueeze(cast(positions, DType::f32), {1}) * row;
  const auto scaled = [&](Value x) { return scale == 1 ? x : x * like(x, scale); };
  return {scaled(cos(angle)), scaled(sin(angle))};
}

Value self_attention(Value x, Value mask, const Parameters& p, const AttentionNames& names, Index features, Index heads,
                     const RotaryTables& tables) {
  Projected all = project(x, p, names, features, heads);
  for (Value* turned : {&all.q, &all.k}) {
    *turned = rope(*turned, tables.cosine, tables.sine, {.head_size = features / heads});
  }
  return attend(all, mask, heads);
}

}  // namespace rlx
