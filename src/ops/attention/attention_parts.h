// Parts of attention that its files share.
#pragma once

#include "ops/attention/attention.h"

namespace rlx::detail {

/// Sizes of one attention. Heads and head sizes are constants.
struct AttentionSizes {
  Dim batch, queries, keys;
  Index heads = 0, kv_heads = 0, size = 0, value_size = 0;
  Index group() const { return heads / kv_heads; }
};

/// Reads the sizes off the types of q, k, v. Throws Error that names the operand that does not fit.
AttentionSizes attention_sizes(const AttentionAttrs& a, Types in);
/// Factor of the scores.
double attention_scale(const AttentionAttrs& a, const AttentionSizes& s);
/// Position of query 0 among the keys.
Dim attention_offset(const AttentionAttrs& a, const AttentionSizes& s);

/// Evaluates in f64, one query after the other, over its visible keys only.
void attention_reference(const AttentionAttrs& a, const RefArgs& r);

std::vector<Case<AttentionAttrs>> attention_cases();
std::vector<Failure<AttentionAttrs>> attention_failures();

}  // namespace rlx::detail
