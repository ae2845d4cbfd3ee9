// The decoder graph: embedding, layers, head, from the numbers in a config.
#include "models/decoder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/decoder_table.h"
#include "nn/layers.h"
#include "ops/attention/attention.h"
#include "ops/broadcast/broadcast.h"
#include "ops/cast/cast.h"
#include "ops/constant/constant.h"
#include "ops/gather/gather.h"
#include "ops/iota/iota.h"
#include "ops/matmul/matmul.h"
#include "ops/paged_attention/paged_attention.h"
#include "ops/reduce/reduce.h"
#include "ops/reshape/reshape.h"
#include "ops/scalar/scalar.h"
#include "ops/scatter/scatter.h"
#include "ops/slice/slice.h"
#include "ops/softmax/softmax.h"
#include "ops/topk/topk.h"

namespace rlx {

namespace {

class DecoderBuilder {
 public:
  DecoderBuilder(Builder& b, const DecoderConfig& config, const WeightSource& source, const DecoderOptions& options)
      : b_(b), c_(config), weights_(decoder_weights(source, config)), p_(b, weights_), context_(options.context) {
    if (context_ == 0) context_ = c_.context;
    require(context_ > 0, "the longest sequence has {} positions, expected 1 or more", context_);
    if (c_.from_gguf) {
      const Tensor table = p_.tensor("token_embedding.weight");
      require(table.rank() == 2, "{}: the embedding table is {}, expected a matrix", weights_.description(),
              table.type().text());
      c_.vocab = table.shape()[0];
    }
    stored_factors(c_.rope);
  }

  const DecoderConfig& config() const { return c_; }

  // Hidden states [T,hidden] behind the last layer, before the last norm.
  Value hidden(Value ids, Value positions, const Attend& attend) {
    Value x = gather(p_.in("token_embedding").take("weight", {c_.vocab, c_.hidden}), ids, 0);
    x = scaled(x, c_.embedding_scale);
    if (c_.learned_positions) {
      x = x + gather(p_.in("position_embedding").take("weight", {c_.context, c_.hidden}), positions, 0);
    }
    if (c_.rope.dims > 0) global_ = angles(c_.rope, positions);
    if (c_.local) local_ = angles(c_.local_rope, positions);
    for (Index i = 0; i < c_.layers; ++i) {
      x = layer(x, i, attend);
      b_.label(x, fmt::format("layers.{}", i));
    }
    return x;
  }

  // Logits [R,V] of hidden states.
  Value logits(Value x) {
    x = norm(x, p_.in("final_norm"), c_.hidden);
    const bool own = p_.has("head.weight") && !c_.tied.value_or(false);
    require(own || c_.tied.value_or(true), "{}: there is no head, and the embedding is not said to be one",
            weights_.description());
    Value y = linear(x, p_.in(own ? "head" : "token_embedding"), c_.hidden, c_.vocab);
    y = scaled(y, c_.logit_scale);
    return c_.logit_cap == 0 ? y : tanh(y / like(y, c_.logit_cap)) * like(y, c_.logit_cap);
  }

  // Throws Error for tensors that nothing has used.
  void check_unused() const {
    std::vector<std::string> left = weights_.unused();
    std::erase_if(left, [&](const std::string& n) { return buffer(n) || (c_.tied.value_or(false) && is_head(n)); });
    require(left.empty(), "{}: tensors are not understood: {}", weights_.description(), fmt::join(left, ", "));
  }

 private:
  // Buffers that old files store among their weights.
  static bool buffer(const std::string& n) {
    return n.ends_with("rotary_emb.inv_freq") || n.ends_with(".attn.bias") || n.ends_with(".attn.masked_bias");
  }
  static bool is_head(const std::string& n) { return n == "lm_head.weight" || n == "output.weight"; }

  static Value scaled(Value x, double by) { return by == 1 ? x : x * like(x, by); }

  // GGUF files hold the factors that divide rotary frequencies as tensors.
  void stored_factors(RopeConfig& rope) {
    const auto factors = [&](std::string_view name) {
      return weights_.has_stored(name) ? load<double>(weights_.stored(name)) : std::vector<double>();
    };
    if (!c_.from_gguf || rope.dims == 0) return;
    extra_factors_ = factors("rope_freqs.weight");
    const std::vector<double> longer = factors("rope_factors_long.weight");
    if (longer.empty()) return;
    rope.long_factors = longer;
    rope.short_factors = factors("rope_factors_short.weight");
    rope.scaling = RopeScaling::longrope;
  }

  RotaryTables angles(const RopeConfig& rope, Value positions) {
    std::vector<double> f = rope_frequencies(rope, context_);
    if (!extra_factors_.empty()) {
      require(extra_factors_.size() == f.size(), "{}: rope_freqs.weight has {} factors, expected {}",
              weights_.description(), extra_factors_.size(), f.size());
      for (std::size_t i = 0; i < f.size(); ++i) f[i] /= extra_factors_[i];
    }
    return rotary_tables(positions, f, rope.attention_factor);
  }

  Value norm(Value x, const Parameters& p, Index features) const {
    return c_.norm == NormKind::rms ? rms_norm(x, p, features, c_.epsilon) : layer_norm(x, p, features, c_.epsilon);
  }

  Value layer(Value x, Index i, const Attend& attend) {
    const Parameters p = p_.in("layers").in(std::to_string(i));
    Value a = attention(c_.pre_norm ? norm(x, p.in("attention_norm"), c_.hidden) : x, p, i, attend);
    if (c_.post_norm) a = norm(a, p.in("attention_post_norm"), c_.hidden);
    x = x + scaled(a, c_.residual_scale);
    Value f = c_.pre_norm ? norm(x, p.in("ffn_norm"), c_.hidden) : x;
    f = c_.experts.count > 0 ? experts(f, p) : feed_forward(f, p, c_.ffn);
    if (c_.post_norm) f = norm(f, p.in("ffn_post_norm"), c_.hidden);
    return x + scaled(f, c_.residual_scale);
  }

  void check_bias(const Parameters& p, std::optional<bool> stated) const {
    if (!stated || *stated == p.has("bias")) return;
    fail("{}: the configuration says that there are {}biases, and the file has {}", weights_.description(),
         *stated ? "" : "no ", *stated ? "none" : "some");
  }

  // x [T,heads*D], normalised and rotated, as [T,heads,D].
  Value heads_of(Value x, Index heads, const Parameters& norm_scope, bool windowed) const {
    const Dim tokens = x.dim(0);
    const auto by_head = [&](Value v) { return reshape(v, {tokens, heads, c_.head_size}); };
    if (c_.qk_norm == QkNorm::whole) x = norm(x, norm_scope, heads * c_.head_size);
    if (c_.qk_norm == QkNorm::head)
      x = reshape(norm(by_head(x), norm_scope, c_.head_size), {tokens, heads * c_.head_size});
    if (c_.rope.dims > 0) {
      const bool local = c_.local && windowed;
      const RopeConfig& rope = local ? c_.local_rope : c_.rope;
      const RotaryTables& angles = local ? *local_ : *global_;
      x = rlx::rope(x, angles.cosine, angles.sine,
                    {.pairing = rope.pairing, .head_size = c_.head_size, .rotary = rope.dims});
    }
    return by_head(x);
  }

  Value attention(Value x, const Parameters& p, Index i, const Attend& attend) const {
    const Index window = c_.windows[static_cast<std::size_t>(i)];
    check_bias(p.in("query"), c_.attention_bias);
    const Value q = linear(x, p.in("query"), c_.hidden, c_.query_size());
    const Value k = linear(x, p.in("key"), c_.hidden, c_.key_size());
    const Value v = linear(x, p.in("value"), c_.hidden, c_.key_size());
    const double scale =
        c_.attention_scale != 0 ? c_.attention_scale : 1 / std::sqrt(static_cast<double>(c_.head_size));
    const Value mixed = attend(
        {i, window, scale, c_.attention_cap}, heads_of(q, c_.heads, p.in("query_norm"), window > 0),
        heads_of(k, c_.kv_heads, p.in("key_norm"), window > 0), reshape(v, {v.dim(0), c_.kv_heads, c_.head_size}));
    return linear(reshape(mixed, {x.dim(0), c_.query_size()}), p.in("out"), c_.query_size(), c_.hidden);
  }

  Value feed_forward(Value x, const Parameters& p, Index inner) const {
    check_bias(p.in("up"), c_.ffn_bias);
    const Value up = linear(x, p.in("up"), c_.hidden, inner);
    const Value wide = c_.gated ? activation(linear(x, p.in("gate"), c_.hidden, inner), c_.activation) * up
                                : activation(up, c_.activation);
    return linear(wide, p.in("down"), inner, c_.hidden);
  }

  // Every token goes through all experts; those which the router has not picked count nothing.
  Value experts(Value x, const Parameters& p) const {
    const ExpertsConfig& e = c_.experts;
    const Value chances = softmax(linear(x, p.in("router"), c_.hidden, e.count), -1);
    auto [weights, picked] = topk(chances, e.used, -1);
    if (e.normalise) weights = weights / sum(weights, {-1}, true);
    std::optional<Value> total;
    for (Index i = 0; i < e.count; ++i) {
      const Value mine = equal(picked, like(picked, static_cast<double>(i)));
      const Value weight = sum(select(mine, weights, like(weights, 0)), {-1}, true);
      const Value part = select(greater(weight, like(weight, 0)),
                                feed_forward(x, p.in("experts").in(std::to_string(i)), e.ffn) * weight, like(x, 0));
      total = total ? *total + part : part;
    }
    return *total;
  }

  Builder& b_;
  DecoderConfig c_;
  StoredWeights weights_;
  Parameters p_;
  Index context_;
  std::vector<double> extra_factors_;
  std::optional<RotaryTables> global_, local_;
};

// Attention of one sequence from its beginning.
Value attend_alone(const DecoderAttention& a, Value q, Value k, Value v) {
  const Value y = attention(unsqueeze(q, {0}), unsqueeze(k, {0}), unsqueeze(v, {0}),
                            {.layout = AttentionLayout::bshd,
                             .mask = a.window > 0 ? AttentionMask::window : AttentionMask::causal,
                             .scale = a.scale,
                             .soft_cap = a.soft_cap,
                             .window = a.window});
  return squeeze(y, {0});
}

// The states of a decoder and the attention over them.
class PagedCache {
 public:
  PagedCache(Builder& b, const DecoderConfig& config, const DecoderOptions& options)
      : b_(b), c_(config), page_(options.page), type_(options.cache) {
    require(page_ >= 1, "a page has {} slots, expected 1 or more", page_);
    require(type_ == DType::f32 || type_ == DType::f16 || type_ == DType::bf16,
            "keys and values are cached in {}, expected f32, f16 or bf16", name(type_));
    const Dim tokens = Dim::symbol("T", 1, options.tokens), sequences = Dim::symbol("B", 1, options.sequences);
    const auto input = [&](std::string_view name, std::vector<Dim> dims) {
      return b.input(name, {DType::i32, std::move(dims)});
    };
    ids = input("ids", {tokens});
    positions = input("positions", {tokens});
    sequences_ = input("sequences", {tokens});
    slots_ = input("slots", {tokens});
    tables_ = input("tables", {sequences, Dim::symbol("P", 1)});
    rows = input("rows", {Dim::symbol("R", 0, options.tokens)});
  }

  Value attend(const DecoderAttention& a, Value q, Value k, Value v) {
    const Value keys = written(fmt::format("k.{}", a.layer), k), values = written(fmt::format("v.{}", a.layer), v);
    return paged_attention(
        {.q = q, .keys = keys, .values = values, .tables = tables_, .sequences = sequences_, .positions = positions},
        {.page = page_, .scale = a.scale, .window = a.window, .soft_cap = a.soft_cap});
  }

  Value ids, positions, rows;

 private:
  // The state called `name` with x [T,KV,D] at the slots of this run.
  Value written(const std::string& name, Value x) {
    const Value old = b_.input(name, {type_, {Dim::symbol("S", page_), c_.kv_heads, c_.head_size}});
    const Value at = broadcast(unsqueeze(slots_, {1, 2}), x.type().dims);
    const Value next = scatter(old, cast(x, type_), at, 0);
    b_.state(name, old, next);
    return next;
  }

  Builder& b_;
  const DecoderConfig& c_;
  Index page_;
  DType type_;
  Value sequences_, slots_, tables_;
};

}  // namespace

Graph decoder(const DecoderConfig& config, const WeightSource& weights, const DecoderOptions& options) {
  Builder b;
  DecoderBuilder decoder(b, config, weights, options);
  PagedCache cache(b, decoder.config(), options);
  const Attend attend = [&](const DecoderAttention& a, Value q, Value k, Value v) { return cache.attend(a, q, k, v); };
  const Value x = decoder.hidden(cache.ids, cache.positions, attend);
  const Value y = decoder.logits(gather(x, cache.rows, 0));
  decoder.check_unused();
  return b.finish(std::span(&y, 1), {"logits"});
}

Graph decoder_uncached(const DecoderConfig& config, const WeightSource& weights, const DecoderOptions& options) {
  Builder b;
  DecoderBuilder decoder(b, config, weights, options);
  const Dim tokens = Dim::symbol("T", 1, options.tokens);
  const Value ids = b.input("ids", {DType::i32, {tokens}});
  const Value positions = iota(b, DType::i32, {tokens});
  const Value y = decoder.logits(decoder.hidden(ids, positions, attend_alone));
  decoder.check_unused();
  return b.finish(std::span(&y, 1), {"logits"});
}

}  // namespace rlx
