// Choosing the next token from logits: the chain of filters and the draw.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/index.h"

namespace rlx {

/// What happens to logits, in this order, which is that of llama.cpp's chain: `logit_bias` is added; the penalties act
/// on tokens among the last `penalty_last` of the sequence, its prompt included; `top_k`, `typical_p`, `top_p` and
/// `min_p` each leave some tokens, one at least; logits are divided by `temperature`; one token is drawn. The defaults
/// are llama.cpp's as well.
struct SamplerOptions {
  double temperature = 0.8;      // 0: the largest logit, the first of equal ones
  Index top_k = 40;              // the most probable; 0: all
  double typical_p = 1;          // those whose surprise is nearest to the entropy, of this probability together; 1: all
  double top_p = 0.95;           // the most probable of this probability together; 1: all
  double min_p = 0.05;           // those of at least this share of the largest probability; 0: all
  Index penalty_last = 64;       // 0: no penalties; -1: the whole sequence
  double repeat_penalty = 1;     // positive logits of tokens that were there are divided by it, others multiplied
  double frequency_penalty = 0;  // taken off a token's logit for each time it was there
  double presence_penalty = 0;   // taken off a token's logit if it was there
  std::map<std::int32_t, double> logit_bias = {};
  std::uint64_t seed = 0;  // with the position of the token it gives the number that draws it

  static SamplerOptions greedy() { return {.temperature = 0}; }
};

struct TokenProbability {
  std::int32_t token = 0;
  double logprob = 0;
};

/// A function of logits, tokens so far and position, with work space: equal arguments give equal tokens, whatever was
/// sampled before.
class Sampler {
 public:
  /// Throws Error for a number out of its range.
  explicit Sampler(SamplerOptions options);

  const SamplerOptions& options() const { return options_; }
  /// The token at place `history.size()` of a sequence. Throws Error for a logit that is NaN or +infinity, for logits
  /// of which all are -infinity, and for a biased token outside the vocabulary.
  std::int32_t sample(std::span<const float> logits, std::span<const std::int32_t> history);

 private:
  struct Candidate {
    std::int32_t token;
    double logit, p;
  };
  std::span<const float> adjust(std::span<const float> logits, std::span<const std::int32_t> history);
  void select_top(std::span<const float> logits);
  void set_probabilities();
  void keep_typical();
  void keep_top_p();
  void keep_min_p();
  std::int32_t draw(double number) const;

  SamplerOptions options_;
  std::vector<float> adjusted_;
  std::vector<Candidate> candidates_;  // by logit, the largest first; equal ones by token
  std::map<std::int32_t, Index> counts_;
};

/// log softmax of the logits at `token`, and of the `most` most probable tokens, the most probable first.
double log_probability(std::span<const float> logits, std::int32_t token);
std::vector<TokenProbability> most_probable(std::span<const float> logits, Index most);

}  // namespace rlx
