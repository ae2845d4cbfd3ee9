// The graph of a decoder: tokens to logits, alone or over caches that live in pages.
#pragma once

#include <functional>

#include "models/decoder_config.h"
#include "nn/parameters.h"

namespace rlx {

struct DecoderOptions {
  /// Positions of the longest sequence; 0: those that the config states. It chooses the factors of rotary embeddings
  /// that depend on it (longrope, ntk): the same for all positions of all sequences.
  Index context = 0;
  /// Tokens of one page of keys and values.
  Index page = 64;
  /// Element type of cached keys and values: f32, f16 or bf16.
  DType cache = DType::f32;
  /// Most tokens and sequences of one run.
  Index tokens = Index{1} << 20, sequences = Index{1} << 16;
};

/// The graph of docs/models.md, with states `k.I` and `v.I` of the sizes [slots,kv_heads,head_size]. Inputs `ids`,
/// `positions`, `sequences`, `slots` i32[T], `tables` i32[B,P], `rows` i32[R]; output `logits` f32[R,V]. Throws Error
/// for a tensor that is missing or has another shape than the config says, and one that lists all tensors of the source
/// that the model has no use for.
Graph decoder(const DecoderConfig& config, const WeightSource& weights, const DecoderOptions& options = {});

/// The same for one sequence from its beginning, without caches: input `ids` i32[T], output `logits` f32[T,V].
Graph decoder_uncached(const DecoderConfig& config, const WeightSource& weights, const DecoderOptions& options = {});

/// What a layer's attention is asked for: softmax of scale * q k, capped, over the last `window` keys (0: all).
struct DecoderAttention {
  Index layer = 0, window = 0;
  double scale = 1, soft_cap = 0;
};
/// Attention of q [T,H,D] over keys and values that begin with k and v [T,KV,D]; gives [T,H,D].
using Attend = std::function<Value(const DecoderAttention&, Value q, Value k, Value v)>;

}  // namespace rlx
