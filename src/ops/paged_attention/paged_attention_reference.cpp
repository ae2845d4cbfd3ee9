// Reference of paged_attention: one token of one head after the other, over its visible keys.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "ops/paged_attention/paged_attention_parts.h"

namespace rlx::detail {

namespace {

std::vector<std::int32_t> integers(const Tensor& t) {
  std::vector<std::int32_t> out;
  for (const std::int64_t x : load<std::int64_t>(t)) out.push_back(static_cast<std::int32_t>(x));
  return out;
}

std::size_t place(Index row, Index heads, Index head, Index size) {
  return static_cast<std::size_t>((row * heads + head) * size);
}

}  // namespace

void paged_attention_reference(const PagedAttentionAttrs& a, const RefArgs& r) {
  std::vector<TensorType> types;
  for (const Tensor& t : r.in) types.push_back(t.type());
  const PagedSizes s = paged_sizes(types);
  const Index tokens = s.tokens.constant(), pages = s.pages.constant();
  const PagedRanges ranges{s.sequences.constant(), pages, a.page, s.slots.constant() / a.page};
  const double scale = paged_scale(a, s);
  const std::vector<double> q = load<double>(r.in[0]), k = load<double>(r.in[1]), v = load<double>(r.in[2]);
  const std::vector<std::int32_t> tables = integers(r.in[3]), sequences = integers(r.in[4]), at = integers(r.in[5]);
  std::vector<double> out(static_cast<std::size_t>(r.out[0].count()), 0.0);
  std::vector<double> weights;

  const auto one = [&](Index token, Index head, std::span<const std::int32_t> table) {
    const Index last = at[static_cast<std::size_t>(token)], shared = head / s.group();
    const Index first = a.window > 0 ? std::max<Index>(0, last - a.window + 1) : 0;
    const auto slot = [&](Index p) { return table[static_cast<std::size_t>(p / a.page)] * a.page + p % a.page; };
    double top = -std::numeric_limits<double>::infinity(), total = 0;
    weights.clear();
    for (Index p = first; p <= last; ++p) {
      double score = 0;
      for (Index e = 0; e < s.size; ++e) {
        const auto i = static_cast<std::size_t>(e);
        score += q[place(token, s.heads, head, s.size) + i] * k[place(slot(p), s.kv_heads, shared, s.size) + i];
      }
      score *= scale;
      if (a.soft_cap > 0) score = a.soft_cap * std::tanh(score / a.soft_cap);
      weights.push_back(score);
      if (std::isnan(score) || score > top) top = score;
    }
    for (double& w : weights) total += w = std::exp(w - top);
    for (Index p = first; p <= last; ++p) {
      for (Index e = 0; e < s.value_size; ++e) {
        const auto i = static_cast<std::size_t>(e);
        out[place(token, s.heads, head, s.value_size) + i] += weights[static_cast<std::size_t>(p - first)] / total *
                                                              v[place(slot(p), s.kv_heads, shared, s.value_size) + i];
      }
    }
  };
  for (Index t = 0; t < tokens; ++t) {
    const Index sequence = sequences[static_cast<std::size_t>(t)];
    ranges.check_token(t, sequence, at[static_cast<std::size_t>(t)]);
    const auto table =
        std::span(tables).subspan(static_cast<std::size_t>(sequence * pages), static_cast<std::size_t>(pages));
    ranges.check_table(sequence, table);
    for (Index h = 0; h < s.heads; ++h) one(t, h, table);
  }
  store(r.out[0], out);
}

}  // namespace rlx::detail
