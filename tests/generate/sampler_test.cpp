// The sampler's chain, filter by filter, on logits whose probabilities are known.
#include "generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"

namespace rlx::test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
using Tokens = std::vector<std::int32_t>;

std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

SamplerOptions plain() { return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}; }

// How often each token comes in `n` places of a sequence.
std::map<std::int32_t, int> draws(SamplerOptions o, const std::vector<float>& logits, int n = 4000,
                                  const Tokens& history = {}) {
  std::map<std::int32_t, int> out;
  for (int i = 0; i < n; ++i) {
    o.seed = static_cast<std::uint64_t>(i);
    ++out[Sampler(o).sample(logits, history)];
  }
  return out;
}

std::set<std::int32_t> seen(const SamplerOptions& o, const std::vector<float>& logits, const Tokens& history = {}) {
  std::set<std::int32_t> out;
  for (const auto& [token, count] : draws(o, logits, 1000, history)) out.insert(token);
  return out;
}

using Set = std::set<std::int32_t>;

TEST(Sampler, DrawsByProbability) {
  const auto counts = draws(plain(), logits_of({0.5, 0.1, 0.3, 0.1}));
  EXPECT_NEAR(counts.at(0) / 4000.0, 0.5, 0.03);
  EXPECT_NEAR(counts.at(1) / 4000.0, 0.1, 0.02);
  EXPECT_NEAR(counts.at(2) / 4000.0, 0.3, 0.03);
}

TEST(Sampler, NumbersComeFromSeedAndPosition) {
  SamplerOptions o = plain();
  o.seed = 7;
  const std::vector<float> logits(1000, 0.0f);
  Sampler a(o), b(o);
  Set tokens;
  Tokens history;
  for (int i = 0; i < 50; ++i) {
    const std::int32_t t = a.sample(logits, history);
    EXPECT_EQ(b.sample(logits, history), t);
    tokens.insert(t);
    history.push_back(0);
  }
  EXPECT_GT(tokens.size(), 40u);
  EXPECT_EQ(Sampler(o).sample(logits, {}), a.sample(logits, {})) << "earlier draws leave no trace";
}

TEST(Sampler, Greedy) {
  Sampler g(SamplerOptions::greedy());
  EXPECT_EQ(g.sample(std::vector<float>{1, 3, 2, 3}, {}), 1);
  EXPECT_EQ(g.sample(std::vector<float>{-inf, -inf, -5}, {}), 2);
  EXPECT_EQ(seen({.temperature = 5, .top_k = 1}, logits_of({0.3, 0.4, 0.3})), Set{1});
}

TEST(Sampler, Temperature) {
  SamplerOptions o = plain();
  o.temperature = 0.5;
  const auto counts = draws(o, logits_of({0.2, 0.8}));
  EXPECT_NEAR(counts.at(0) / 4000.0, 0.04 / 0.68, 0.02);
}

TEST(Sampler, TopK) {
  SamplerOptions o = plain();
  o.top_k = 2;
  EXPECT_EQ(seen(o, logits_of({0.1, 0.4, 0.2, 0.3})), (Set{1, 3}));
  o.top_k = 3;
  EXPECT_EQ(seen(o, logits_of({0.25, 0.25, 0.25, 0.25})), (Set{0, 1, 2})) << "the first of equal ones";
  o.top_k = 9;
  EXPECT_EQ(seen(o, logits_of({0.5, 0.5})), (Set{0, 1}));
}

TEST(Sampler, TopP) {
  SamplerOptions o = plain();
  const std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
  o.top_p = 0.69;
  EXPECT_EQ(seen(o, logits), (Set{1, 3}));
  o.top_p = 0.71;
  EXPECT_EQ(seen(o, logits), (Set{1, 2, 3}));
  o.top_p = 0.01;
  EXPECT_EQ(seen(o, logits), Set{1});
}

TEST(Sampler, MinP) {
  SamplerOptions o = plain();
  const std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
  o.min_p = 0.45;
  EXPECT_EQ(seen(o, logits), (Set{1, 2, 3}));
  o.min_p = 0.55;
  EXPECT_EQ(seen(o, logits), (Set{1, 3}));
  o.min_p = 1;
  EXPECT_EQ(seen(o, logits), Set{1});
}

// Entropy of 0.5, 0.25, 0.125, 0.125 is 1.75 bits; surprises are 1, 2, 3, 3: the second token is the most typical.
TEST(Sampler, Typical) {
  SamplerOptions o = plain();
  const std::vector<float> logits = logits_of({0.5, 0.25, 0.125, 0.125});
  o.typical_p = 0.2;
  EXPECT_EQ(seen(o, logits), Set{1});
  o.typical_p = 0.7;
  EXPECT_EQ(seen(o, logits), (Set{0, 1}));
}

// top_k comes before top_p, which then sees the probabilities of what is left; temperature comes last.
TEST(Sampler, Order) {
  SamplerOptions o = plain();
  const std::vector<float> logits = logits_of({0.4, 0.3, 0.2, 0.1});
  o.top_k = 2;
  o.top_p = 0.56;  // 0.4 / 0.7 = 0.571 is enough
  EXPECT_EQ(seen(o, logits), Set{0});
  o = plain();
  o.top_p = 0.45;
  o.temperature = 100;
  EXPECT_EQ(seen(o, logits), (Set{0, 1})) << "a high temperature does not let more through";
}

TEST(Sampler, Penalties) {
  SamplerOptions o = SamplerOptions::greedy();
  const std::vector<float> logits{2.0f, 1.5f, -0.5f};
  const auto best = [&](const Tokens& history) { return Sampler(o).sample(logits, history); };
  o.repeat_penalty = 1.3f;
  EXPECT_EQ(best({1}), 0);
  EXPECT_EQ(best({0}), 0) << "2 / 1.3 is 1.54";
  o.repeat_penalty = 1.4f;
  EXPECT_EQ(best({0}), 1);
  o = SamplerOptions::greedy();
  o.frequency_penalty = 0.3;
  EXPECT_EQ(best({0}), 0);
  EXPECT_EQ(best({0, 0}), 1);
  o.penalty_last = 1;
  EXPECT_EQ(best({0, 0}), 0);
  EXPECT_EQ(best({0, 0, 2}), 0);
  o.penalty_last = 0;
  EXPECT_EQ(best({0, 0, 0, 0, 0}), 0);
  o.penalty_last = -1;
  EXPECT_EQ(best(Tokens(300, 0)), 1);
  o = SamplerOptions::greedy();
  o.presence_penalty = 0.6;
  EXPECT_EQ(best({0, 0}), 1);
  EXPECT_EQ(best({0, 1}), 0);
  // A negative logit is multiplied: -0.5 * 8 is below -1.
  EXPECT_EQ(Sampler({.temperature = 0, .repeat_penalty = 8}).sample(std::vector<float>{-0.5f, -1.0f}, Tokens{0}), 1);
}

TEST(Sampler, Bias) {
  SamplerOptions o = SamplerOptions::greedy();
  o.logit_bias = {{0, -std::numeric_limits<double>::infinity()}, {2, 5}};
  EXPECT_EQ(Sampler(o).sample(std::vector<float>{9, 1, 0}, {}), 2);
  o.logit_bias = {{3, 1}};
  EXPECT_THROW(Sampler(o).sample(std::vector<float>{9, 1, 0}, {}), Error);
}

TEST(Sampler, LogProbabilities) {
  const std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
  EXPECT_NEAR(log_probability(logits, 2), std::log(0.2), 1e-6);
  const auto top = most_probable(logits, 2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_EQ(top[1].token, 3);
  EXPECT_NEAR(top[1].logprob, std::log(0.3), 1e-6);
  EXPECT_EQ(most_probable(logits, 9).size(), 4u);
  EXPECT_THROW(log_probability(logits, 4), Error);
}

TEST(Sampler, WrongLogitsAreErrors) {
  Sampler s(plain());
  EXPECT_THROW(s.sample(std::vector<float>{1, std::nanf(""), 2}, {}), Error);
  EXPECT_THROW(s.sample(std::vector<float>{1, inf}, {}), Error);
  EXPECT_THROW(s.sample(std::vector<float>{-inf, -inf}, {}), Error);
  EXPECT_THROW(s.sample(std::vector<float>{}, {}), Error);
}

TEST(Sampler, WrongOptionsAreErrors) {
  const auto wrong = [](auto set) {
    SamplerOptions o;
    set(o);
    EXPECT_THROW(Sampler{o}, Error);
  };
  wrong([](SamplerOptions& o) { o.temperature = -0.1; });
  wrong([](SamplerOptions& o) { o.top_k = -1; });
  wrong([](SamplerOptions& o) { o.top_p = 0; });
  wrong([](SamplerOptions& o) { o.top_p = 1.1; });
  wrong([](SamplerOptions& o) { o.min_p = -0.1; });
  wrong([](SamplerOptions& o) { o.typical_p = 2; });
  wrong([](SamplerOptions& o) { o.penalty_last = -2; });
  wrong([](SamplerOptions& o) { o.repeat_penalty = 0; });
  wrong([](SamplerOptions& o) { o.frequency_penalty = std::nan(""); });
  wrong([](SamplerOptions& o) { o.presence_penalty = std::nan(""); });
  wrong([](SamplerOptions& o) { o.logit_bias = {{-1, 0}}; });
}

}  // namespace
}  // namespace rlx::test
