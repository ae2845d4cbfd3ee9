// Parts of paged_attention that its files share.
#pragma once

#include "ops/paged_attention/paged_attention.h"

namespace rlx::detail {

/// Sizes of one paged attention. Heads and head sizes are constants.
struct PagedSizes {
  Dim tokens, slots, sequences, pages;  // `pages`: entries of a table
  Index heads = 0, kv_heads = 0, size = 0, value_size = 0;
  Index group() const { return heads / kv_heads; }
};

/// Reads the sizes off the types of the operands. Throws Error that names the operand that does not fit.
PagedSizes paged_sizes(Types in);
/// Factor of the scores.
double paged_scale(const PagedAttentionAttrs& a, const PagedSizes& s);

/// What a token reads must be there: sequence in [0, `sequences`), position in [0, `pages` * `page`), and every entry
/// of the sequence's table in [0, `pool`), the number of whole pages of the pools. Throws Error for the first that is
/// not.
struct PagedRanges {
  Index sequences = 0, pages = 0, page = 1, pool = 0;
  void check_token(Index token, Index sequence, Index position) const;
  void check_table(Index sequence, std::span<const std::int32_t> entries) const;
};

/// Evaluates in f64, one token of one head after the other, over its visible keys only.
void paged_attention_reference(const PagedAttentionAttrs& a, const RefArgs& r);

std::vector<Case<PagedAttentionAttrs>> paged_attention_cases();
std::vector<Failure<PagedAttentionAttrs>> paged_attention_failures();

}  // namespace rlx::detail
