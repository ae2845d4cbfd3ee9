// The chain of a sampler, in f64 over the candidates that are left.
#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "ops/philox/philox.h"

namespace rlx {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void check(const SamplerOptions& o) {
  require(std::isfinite(o.temperature) && o.temperature >= 0, "temperature is {}, expected 0 or more", o.temperature);
  require(o.top_k >= 0, "top_k is {}, expected 0 for all or more", o.top_k);
  require(o.typical_p > 0 && o.typical_p <= 1, "typical_p is {}, expected 0 to 1, without 0", o.typical_p);
  require(o.top_p > 0 && o.top_p <= 1, "top_p is {}, expected 0 to 1, without 0", o.top_p);
  require(o.min_p >= 0 && o.min_p <= 1, "min_p is {}, expected 0 to 1", o.min_p);
  require(o.penalty_last >= -1, "penalty_last is {}, expected a number of tokens, or -1 for all", o.penalty_last);
  require(std::isfinite(o.repeat_penalty) && o.repeat_penalty > 0, "repeat_penalty is {}, expected a positive number",
          o.repeat_penalty);
  require(std::isfinite(o.frequency_penalty), "frequency_penalty is {}", o.frequency_penalty);
  require(std::isfinite(o.presence_penalty), "presence_penalty is {}", o.presence_penalty);
  for (const auto& [token, bias] : o.logit_bias) {
    require(token >= 0 && !std::isnan(bias) && bias != infinity, "the bias of token {} is {}", token, bias);
  }
}

// Position of the first of the largest logits. NaN and +infinity are errors.
std::size_t largest(std::span<const float> logits) {
  std::size_t best = 0;
  bool good = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    good = good && logits[i] < std::numeric_limits<float>::infinity();
    if (logits[i] > logits[best]) best = i;
  }
  if (!good) {
    const auto bad =
        std::ranges::find_if(logits, [](float x) { return !(x < std::numeric_limits<float>::infinity()); });
    fail("the logit of token {} is {}", bad - logits.begin(), *bad);
  }
  require(!logits.empty() && std::isfinite(logits[best]), "all {} logits are -inf", logits.size());
  return best;
}

// 32 random bits as a number in [0, 1).
double number_at(std::uint64_t seed, std::uint64_t position) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto words = philox_block({low(position), low(position >> 32), 0, 0}, {low(seed), low(seed >> 32)});
  return words[0] * 0x1p-32;
}

}  // namespace

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)) { check(options_); }

std::span<const float> Sampler::adjust(std::span<const float> logits, std::span<const std::int32_t> history) {
  const SamplerOptions& o = options_;
  const bool penalties =
      o.penalty_last != 0 && (o.repeat_penalty != 1 || o.frequency_penalty != 0 || o.presence_penalty != 0);
  if (!penalties && o.logit_bias.empty()) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  const auto vocabulary = static_cast<Index>(logits.size());
  for (const auto& [token, bias] : o.logit_bias) {
    require(token < vocabulary, "a bias is given for token {}, but the vocabulary has {}", token, vocabulary);
    float& x = adjusted_[static_cast<std::size_t>(token)];
    x = static_cast<float>(x + bias);
  }
  if (!penalties) return adjusted_;
  const std::size_t last = o.penalty_last < 0 ? history.size() : static_cast<std::size_t>(o.penalty_last);
  counts_.clear();
  for (const std::int32_t t : history.last(std::min(history.size(), last))) ++counts_[t];
  for (const auto& [token, count] : counts_) {
    if (token < 0 || token >= vocabulary) continue;
    float& x = adjusted_[static_cast<std::size_t>(token)];
    const double repeated = x > 0 ? x / o.repeat_penalty : x * o.repeat_penalty;
    x = static_cast<float>(repeated - static_cast<double>(count) * o.frequency_penalty - o.presence_penalty);
  }
  return adjusted_;
}

// The `top_k` candidates, in order.
void Sampler::select_top(std::span<const float> logits) {
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  };
  candidates_.clear();
  const bool all = options_.top_k == 0 || options_.top_k >= static_cast<Index>(logits.size());
  const std::size_t most = all ? logits.size() : static_cast<std::size_t>(options_.top_k);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const Candidate c{static_cast<std::int32_t>(i), static_cast<double>(logits[i]), 0};
    if (c.logit == -infinity) continue;
    if (candidates_.size() < most) {
      candidates_.push_back(c);
      if (!all) std::ranges::push_heap(candidates_, before);
    } else if (c.logit > candidates_.front().logit) {
      std::ranges::pop_heap(candidates_, before);
      candidates_.back() = c;
      std::ranges::push_heap(candidates_, before);
    }
  }
  std::ranges::sort(candidates_, before);
}

void Sampler::set_probabilities() {
  double sum = 0;
  for (Candidate& c : candidates_) sum += c.p = std::exp(c.logit - candidates_.front().logit);
  for (Candidate& c : candidates_) c.p /= sum;
}

void Sampler::keep_typical() {
  if (options_.typical_p >= 1) return;
  set_probabilities();
  double entropy = 0;
  for (const Candidate& c : candidates_) entropy -= c.p > 0 ? c.p * std::log(c.p) : 0;
  const auto distance = [&](const Candidate& c) { return c.p > 0 ? std::fabs(-std::log(c.p) - entropy) : infinity; };
  std::ranges::sort(candidates_, [&](const Candidate& a, const Candidate& b) {
    const double x = distance(a), y = distance(b);
    return x < y || (x == y && a.token < b.token);
  });
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && sum <= options_.typical_p) sum += candidates_[kept++].p;
  candidates_.resize(std::max<std::size_t>(kept, 1));
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  });
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  set_probabilities();
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates_.size() && sum < options_.top_p) sum += candidates_[kept++].p;
  candidates_.resize(std::max<std::size_t>(kept, 1));
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  const double least = candidates_.front().logit + std::log(options_.min_p);
  const auto end = std::ranges::find_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
  candidates_.erase(std::max(end, candidates_.begin() + 1), candidates_.end());
}

std::int32_t Sampler::draw(double number) const {
  const double top = candidates_.front().logit;
  double all = 0, sum = 0;
  for (const Candidate& c : candidates_) all += std::exp((c.logit - top) / options_.temperature);
  for (const Candidate& c : candidates_) {
    sum += std::exp((c.logit - top) / options_.temperature);
    if (sum > number * all) return c.token;
  }
  return candidates_.back().token;
}

std::int32_t Sampler::sample(std::span<const float> logits, std::span<const std::int32_t> history) {
  logits = adjust(logits, history);
  const std::size_t best = largest(logits);
  if (options_.temperature == 0 || options_.top_k == 1) return static_cast<std::int32_t>(best);
  select_top(logits);
  keep_typical();
  keep_top_p();
  keep_min_p();
  return draw(number_at(options_.seed, history.size()));
}

namespace {

double log_sum(std::span<const float> logits) {
  const double top = logits[largest(logits)];
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - top);
  return top + std::log(sum);
}

}  // namespace

double log_probability(std::span<const float> logits, std::int32_t token) {
  require(token >= 0 && token < static_cast<Index>(logits.size()), "token {} is outside the vocabulary of {}", token,
          logits.size());
  return logits[static_cast<std::size_t>(token)] - log_sum(logits);
}

std::vector<TokenProbability> most_probable(std::span<const float> logits, Index most) {
  if (most <= 0) return {};
  const double all = log_sum(logits);
  std::vector<TokenProbability> out(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) out[i] = {static_cast<std::int32_t>(i), logits[i] - all};
  const std::size_t kept = std::min(out.size(), static_cast<std::size_t>(most));
  std::ranges::partial_sort(out, out.begin() + static_cast<std::ptrdiff_t>(kept),
                            [](const TokenProbability& a, const TokenProbability& b) {
                              return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
                            });
  out.resize(kept);
  return out;
}

}  // namespace rlx
