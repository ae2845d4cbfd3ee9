// Attention taken apart: for what the op of rlx does not give, such as the scores, and for its relatives.
#pragma once

#include <functional>
#include <optional>

#include "ir/builder.h"

namespace rlx::onnx {

/// [B,S,heads*D] as [B,heads,S,D], and back.
Value split_heads(Value x, Index heads);
Value join_heads(Value x);

/// Where both of two conditions hold; one that is not there holds.
std::optional<Value> both(std::optional<Value> a, std::optional<Value> b);

/// Softmax along `axis`. Of bf16 and a short axis every step of it is rounded, additions too, as by the operators that
/// ONNX defines it with; along a long axis such a sum would stand still, so that it is computed in f32 and rounded
/// once.
Value softmax_of(Value x, Index axis);
/// Whether an axis is short enough for that.
bool is_short(const Dim& size);

struct AttentionRules {
  double scale = 1, soft_cap = 0;
  DType precision = DType::f32;                  // of softmax
  std::optional<Value> visible = {}, bias = {};  // bool, and floats that are added; they broadcast to [B,H,S_q,S_k]
  std::function<Value(Value)> change_scores = {}, change_weights = {};  // before and behind softmax, in its precision
  bool wide_product = false;                                            // the product with v is in that precision too
};
struct AttentionOutputs {
  Value y, scores, capped, biased, weights;  // the result, and what it comes from, [B,H,S_q,S_k], step by step
};
/// Attention of q [B,H,S_q,D], k [B,Hkv,S_k,D], v [B,Hkv,S_k,Dv] by the operators that ONNX defines it with. A query
/// without visible key has weights 0.
AttentionOutputs attention_by_operators(Value q, Value k, Value v, const AttentionRules& rules);

}  // namespace rlx::onnx
