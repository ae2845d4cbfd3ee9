// Temperature, the k largest, softmax, the most probable of a given sum, and the first class whose running sum exceeds
// the number.
#include "ops/sample/draw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace rlx {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Hides what is below the k-th largest; ties with it stay.
void hide_smaller(std::vector<double>& x, Index k, std::vector<double> sorted) {
  const auto kth = sorted.begin() + (k - 1);
  std::ranges::nth_element(sorted, kth, std::greater<>());
  for (double& v : x) v = v < *kth ? -infinity : v;
}

// Zero for all but the most probable that reach the sum `top`; the one that crosses it stays.
void keep_most_probable(std::vector<double>& w, double top, std::vector<Index>& order) {
  order.resize(w.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto at = [&](Index i) -> double& { return w[static_cast<std::size_t>(i)]; };
  std::ranges::sort(order, [&](Index i, Index j) { return at(i) > at(j) || (at(i) == at(j) && i < j); });
  double sum = 0;
  for (const Index i : order) {
    const bool reached = sum >= top && i != order.front();
    sum += at(i);
    if (reached) at(i) = 0;
  }
}

}  // namespace

Index draw(std::span<const double> logits, double number, const SampleAttrs& a, std::vector<double>& weights,
           std::vector<Index>& order) {
  if (logits.empty()) return 0;
  require(0 <= number && number < 1, "the number {} is outside [0, 1)", number);
  double largest = -infinity;
  for (const double v : logits) {
    require(!std::isnan(v) && v != infinity, "a logit is {}", v);
    largest = std::max(largest, v);
  }
  require(largest != -infinity, "all {} logits are -inf", logits.size());
  const auto first = static_cast<Index>(std::ranges::find(logits, largest) - logits.begin());
  if (a.temperature <= 1e-6 || a.top_k == 1) return first;
  weights.assign(logits.begin(), logits.end());
  for (double& v : weights) v /= a.temperature;
  if (a.top_k > 0 && a.top_k < static_cast<Index>(weights.size())) hide_smaller(weights, a.top_k, weights);
  const double most = largest / a.temperature;
  double all = 0;
  for (double& v : weights) all += v = std::exp(v - most);
  for (double& v : weights) v /= all;
  if (a.top_p < 1) {
    keep_most_probable(weights, a.top_p, order);
    all = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& v : weights) v /= all;
  }
  double sum = 0;
  Index last = first;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    last = static_cast<Index>(i);
    sum += weights[i];
    if (sum > number) return last;
  }
  return last;
}

}  // namespace rlx
