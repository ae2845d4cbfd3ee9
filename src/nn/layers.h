// Layers as functions from values to values; parameters come from a scope under the field's usual names.
#pragma once

#include "nn/parameters.h"

namespace rlx {

/// x W^T + b for W `weight` [out, in] and b `bias` [out] (left out when the scope has none). x is [.., in].
Value linear(Value x, const Parameters& p, Index in, Index out);

/// Normalisation of the last axis with `weight` and `bias` [features].
Value layer_norm(Value x, const Parameters& p, Index features, double epsilon);

/// x / sqrt(mean(x^2) + epsilon) over the last axis, times `weight` [features].
Value rms_norm(Value x, const Parameters& p, Index features, double epsilon);

/// Rows of `weight` [rows, features] at integer indices of any shape.
Value embedding(Value indices, const Parameters& p, Index rows, Index features);

/// The activation called `name` as model configurations call it: gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, relu,
/// silu, swish, tanh, sigmoid, mish. Throws Error that lists these for another name.
Value activation(Value x, std::string_view name);

/// Multi-head self-attention of x [B,S,H]: three projections `query`, `key`, `value` in the scopes given, attention
/// over the positions where `mask` [B,S] (1 or 0, in the type of x) is 1. The result is [B,S,H], before the output
/// projection.
struct AttentionNames {
  std::string_view query, key, value;
};
Value self_attention(Value x, Value mask, const Parameters& p, const AttentionNames& names, Index features,
                     Index heads);

/// Cosines and sines of the angles positions * frequencies, f32 [positions,frequencies].
struct RotaryTables {
  Value cosine, sine;
};
/// `positions` are integers of rank 1; tables are multiplied by `scale`.
RotaryTables rotary_tables(Value positions, const std::vector<double>& frequencies, double scale = 1);

/// The same with queries and keys rotated, element i of a head with i + D/2.
Value self_attention(Value x, Value mask, const Parameters& p, const AttentionNames& names, Index features, Index heads,
                     const RotaryTables& tables);

}  // namespace rlx
