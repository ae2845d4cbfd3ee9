// Generation: prompts in, tokens out, for any number of requests that are run together.
#pragma once

#include <deque>
#include <string_view>

#include "generate/sampler.h"
#include "generate/speculation.h"

namespace rlx {

/// Why a request has ended.
enum class Finish : std::uint8_t {
  none,     // it goes on
  end,      // a token that ends the text
  length,   // as many tokens as were asked for
  context,  // the context is full
};
std::string_view finish_name(Finish finish);

struct GenerateOptions {
  SamplerOptions sampling;
  Index max_tokens = -1;                 // -1: until the end or a full context
  std::vector<std::int32_t> end_tokens;  // tokens that end the text
  Index logprobs = 0;                    // the most probable tokens that are reported with each
  bool want_logprob = false;             // report the log-probability of each token; follows from logprobs > 0
};

struct GeneratorOptions {
  /// Most tokens of prompts in one run; a longer prompt takes several.
  Index chunk = 512;
  /// How tokens are guessed; null: not at all.
  MakeSpeculator speculate;
};

/// One token of a request.
struct GeneratedToken {
  Index request = 0;
  std::int32_t token = 0;
  Finish finish = Finish::none;  // of the request, with its last token
  /// Log-probability under the logits of the model, before the sampler's chain, and the most probable tokens, if asked
  /// for.
  double logprob = 0;
  std::vector<TokenProbability> most_probable;
};

/// What was done so far.
struct GeneratorCounts {
  Index runs = 0;                   // of the model
  Index prompt = 0;                 // tokens of prompts
  Index reused = 0;                 // of those, found in the cache
  Index generated = 0;              // tokens
  Index guessed = 0, accepted = 0;  // tokens of speculators, and those that were right
};

/// Runs requests on a decoder. A request's tokens depend on its prompt and options alone: not on other requests,
/// chunks, threads, speculation or what the cache holds. For one caller at a time; requests may be added and cancelled
/// between steps.
class Generator {
 public:
  using Request = Index;

  /// Throws Error for a chunk below 1.
  explicit Generator(std::shared_ptr<PagedDecoder> decoder, GeneratorOptions options = {});
  ~Generator();
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  PagedDecoder& decoder() const { return *decoder_; }
  const GeneratorCounts& counts() const { return counts_; }

  /// Adds a request; it waits until the cache has pages for all tokens it may come to. Throws Error for an empty
  /// prompt, one that leaves no place in the context, tokens outside the vocabulary, and a request for which the cache
  /// is too small.
  Request add(std::vector<std::int32_t> prompt, GenerateOptions options = {});
  /// Ends a request that has not finished; others are ignored.
  void cancel(Request request);
  bool idle() const { return waiting_.empty() && active_.empty(); }

  /// One run of the model: the next tokens of requests that write, and the next part of prompts. Gives the new tokens,
  /// in order for each request. Throws Error when the model does; requests are then as before.
  std::vector<GeneratedToken> step();

  /// All tokens that follow a prompt, the one that ends the text included.
  std::vector<std::int32_t> generate(std::vector<std::int32_t> prompt, const GenerateOptions& options = {});

 private:
  struct Task {
    Request id = 0;
    std::vector<std::int32_t> tokens;  // prompt and what was generated
    std::size_t prompt = 0;
    Index most = 0;  // tokens that it may come to
    GenerateOptions options;
    Sampler sampler;
    std::unique_ptr<Speculator> speculator;
    PagedDecoder::Sequence sequence = 0;
    std::vector<std::int32_t> input;  // of the next run
    std::size_t guessed = 0;          // of those at its end
    bool done = false;
  };
  void admit();
  Index promised_pages() const;
  bool plan(Task& task, Index& budget);
  void take(Task& task, std::span<const float> logits, std::vector<GeneratedToken>& out);
  Finish finish_of(const Task& task) const;
  void end(Task& task);

  std::shared_ptr<PagedDecoder> decoder_;
  GeneratorOptions options_;
  std::deque<Task> waiting_, active_;
  GeneratorCounts counts_;
  Request last_ = 0;
};

}  // namespace rlx
