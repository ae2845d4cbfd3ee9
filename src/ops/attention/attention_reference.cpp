// Reference of attention: one query of one head after the other, over its visible keys.
#include <cmath>
#include <limits>

#include "core/walk.h"
#include "ops/attention/attention_parts.h"

namespace rlx::detail {

namespace {

// Where element 0 of head h at position s of batch b lies.
struct Layout {
  Index batch = 0, position = 0, head = 0;
  std::size_t at(Index b, Index h, Index s) const {
    return static_cast<std::size_t>(b * batch + h * head + s * position);
  }
};

Layout layout_of(AttentionLayout layout, Index heads, Index positions, Index size) {
  if (layout == AttentionLayout::bhsd) return {heads * positions * size, size, positions * size};
  return {positions * heads * size, heads * size, size};
}

// The fourth operand: what it adds to the score of a key, -inf where it hides the key.
class Extra {
 public:
  Extra(const AttentionAttrs& a, const RefArgs& r, const std::vector<Index>& full) {
    if (a.extra == AttentionExtra::none) return;
    const Tensor& t = r.in[3];
    const bool keys = a.extra == AttentionExtra::keys;
    const std::vector<Index> shape =
        keys ? std::vector<Index>{t.shape()[0], 1, 1, t.shape()[1]} : std::vector<Index>(t.shape());
    strides_ = broadcast_strides(shape, full);
    added_ = load<double>(t);
    if (a.extra == AttentionExtra::bias) return;
    const bool real = is_float(t.dtype());
    for (double& x : added_) {
      const bool visible = real ? x >= 0.5 : x != 0;
      x = visible ? 0 : -std::numeric_limits<double>::infinity();
    }
    hides_ = true;
  }

  bool hides(Index b, Index h, Index i, Index j) const { return hides_ && added_[at(b, h, i, j)] != 0; }
  double bias(Index b, Index h, Index i, Index j) const {
    return hides_ || added_.empty() ? 0 : added_[at(b, h, i, j)];
  }

 private:
  std::size_t at(Index b, Index h, Index i, Index j) const {
    return static_cast<std::size_t>(b * strides_[0] + h * strides_[1] + i * strides_[2] + j * strides_[3]);
  }
  std::vector<double> added_;
  std::vector<Index> strides_;
  bool hides_ = false;
};

bool seen(const AttentionAttrs& a, Index position, Index key) {
  if (a.mask == AttentionMask::none) return true;
  return key <= position && (a.mask == AttentionMask::causal || key > position - a.window);
}

}  // namespace

void attention_reference(const AttentionAttrs& a, const RefArgs& r) {
  if (r.out[0].count() == 0) return;
  const std::vector<TensorType> types{r.in[0].type(), r.in[1].type(), r.in[2].type()};
  const AttentionSizes s = attention_sizes(a, types);
  const Index batch = s.batch.constant(), queries = s.queries.constant(), keys = s.keys.constant();
  const Index offset = attention_offset(a, s).evaluate(r.dims);
  const double scale = attention_scale(a, s), lowest = -std::numeric_limits<double>::infinity();
  const Layout q_at = layout_of(a.layout, s.heads, queries, s.size),
               k_at = layout_of(a.layout, s.kv_heads, keys, s.size);
  const Layout v_at = layout_of(a.layout, s.kv_heads, keys, s.value_size);
  const Layout out_at = layout_of(a.layout, s.heads, queries, s.value_size);
  const std::vector<double> q = load<double>(r.in[0]), k = load<double>(r.in[1]), v = load<double>(r.in[2]);
  const Extra extra(a, r, {batch, s.heads, queries, keys});
  const bool masked = a.mask != AttentionMask::none || a.extra != AttentionExtra::none;
  std::vector<double> out(static_cast<std::size_t>(r.out[0].count()), 0.0);

  const auto one_query = [&](Index b, Index h, Index i) {
    const Index shared = h / s.group();
    std::vector<std::pair<Index, double>> scores;  // of the visible keys
    double top = lowest, total = 0;
    for (Index j = 0; j < keys; ++j) {
      if (!seen(a, offset + i, j) || extra.hides(b, h, i, j)) continue;
      double score = 0;
      for (Index e = 0; e < s.size; ++e) {
        const auto x = static_cast<std::size_t>(e);
        score += q[q_at.at(b, h, i) + x] * k[k_at.at(b, shared, j) + x];
      }
      score *= scale;
      if (a.soft_cap > 0) score = a.soft_cap * std::tanh(score / a.soft_cap);
      score += extra.bias(b, h, i, j);
      scores.emplace_back(j, score);
      if (std::isnan(score) || score > top) top = score;
    }
    if (masked && top == lowest) return;
    for (auto& [j, weight] : scores) total += weight = std::exp(weight - top);
    for (const auto& [j, weight] : scores) {
      for (Index e = 0; e < s.value_size; ++e) {
        const auto x = static_cast<std::size_t>(e);
        out[out_at.at(b, h, i) + x] += weight / total * v[v_at.at(b, shared, j) + x];
      }
    }
  };
  for (Index b = 0; b < batch; ++b) {
    for (Index h = 0; h < s.heads; ++h) {
      for (Index i = 0; i < queries; ++i) one_query(b, h, i);
    }
  }
  store(r.out[0], out);
}

}  // namespace rlx::detail
