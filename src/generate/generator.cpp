// Continuous batching: which tokens of which requests the next run holds, and what its logits mean.
#include "generate/generator.h"

#include <algorithm>

#include "core/error.h"

namespace rlx {

std::string_view finish_name(Finish finish) {
  constexpr std::string_view names[] = {"none", "end", "length", "context"};
  return names[static_cast<std::size_t>(finish)];
}

Generator::Generator(std::shared_ptr<PagedDecoder> decoder, GeneratorOptions options)
    : decoder_(std::move(decoder)), options_(std::move(options)) {
  require(decoder_ != nullptr, "there is no model to generate with");
  require(options_.chunk >= 1, "chunk is {}, expected 1 token or more", options_.chunk);
}

Generator::~Generator() {
  for (Task& t : active_) end(t);
}

Generator::Request Generator::add(std::vector<std::int32_t> prompt, GenerateOptions options) {
  const auto length = static_cast<Index>(prompt.size()), context = decoder_->context();
  require(length > 0, "the prompt is empty, expected 1 token or more");
  require(length < context,
          "the prompt has {} tokens, which leaves none of the {} positions of the context for an answer", length,
          context);
  require(options.max_tokens == -1 || options.max_tokens >= 1, "max_tokens is {}, expected 1 or more, or -1",
          options.max_tokens);
  require(options.logprobs >= 0, "logprobs is {}, expected 0 or more", options.logprobs);
  for (const std::int32_t t : prompt) {
    require(t >= 0 && t < decoder_->vocabulary(), "token {} of the prompt is outside the vocabulary of {}", t,
            decoder_->vocabulary());
  }
  Sampler sampler(options.sampling);
  const Index most = options.max_tokens < 0 ? context : std::min(context, length + options.max_tokens);
  const Index pages = (most + decoder_->page() - 1) / decoder_->page();
  require(pages <= decoder_->pages().size(), "a request of up to {} tokens needs {} pages, but the cache has {}", most,
          pages, decoder_->pages().size());
  options.want_logprob = options.want_logprob || options.logprobs > 0;
  Task t{.id = ++last_,
         .tokens = std::move(prompt),
         .prompt = static_cast<std::size_t>(length),
         .most = most,
         .options = std::move(options),
         .sampler = std::move(sampler)};
  if (options_.speculate) t.speculator = options_.speculate();
  waiting_.push_back(std::move(t));
  return last_;
}

void Generator::end(Task& task) {
  if (task.sequence != 0) decoder_->close(task.sequence);
  task.sequence = 0;
}

void Generator::cancel(Request request) {
  std::erase_if(waiting_, [&](const Task& t) { return t.id == request; });
  std::erase_if(active_, [&](Task& t) {
    if (t.id != request) return false;
    end(t);
    return true;
  });
}

// Pages that active requests may still take.
Index Generator::promised_pages() const {
  Index pages = 0;
  for (const Task& t : active_) pages += decoder_->pages_for(t.sequence, t.most - decoder_->length(t.sequence));
  return pages;
}

void Generator::admit() {
  while (!waiting_.empty()) {
    Task& t = waiting_.front();
    const Index pages = (t.most + decoder_->page() - 1) / decoder_->page();
    if (promised_pages() + pages > decoder_->pages().available()) return;
    t.sequence = decoder_->open();
    counts_.prompt += static_cast<Index>(t.prompt);
    counts_.reused += decoder_->reuse(t.sequence, t.tokens);
    active_.push_back(std::move(t));
    waiting_.pop_front();
  }
}

// What the next run holds of a task: the rest of its prompt, or its last token and guesses. False: nothing, as other
// prompts have used the budget.
bool Generator::plan(Task& t, Index& budget) {
  // After an Error the cache may hold more than the request.
  decoder_->truncate(t.sequence, std::min(decoder_->length(t.sequence), static_cast<Index>(t.tokens.size()) - 1));
  const auto cached = static_cast<std::size_t>(decoder_->length(t.sequence));
  const std::size_t left = t.tokens.size() - cached;
  t.guessed = 0;
  t.input.clear();
  const bool writes = t.tokens.size() > t.prompt;
  const auto count = writes ? left : std::min(left, static_cast<std::size_t>(std::max<Index>(budget, 0)));
  if (count == 0) return false;
  budget -= static_cast<Index>(count);
  t.input.assign(t.tokens.begin() + static_cast<std::ptrdiff_t>(cached),
                 t.tokens.begin() + static_cast<std::ptrdiff_t>(cached + count));
  if (!t.speculator || !writes) return true;
  const Index room = t.most - static_cast<Index>(t.tokens.size()) - 1;  // the run gives one token beside the guesses
  if (room <= 0) return true;
  std::vector<std::int32_t> guess = t.speculator->guess(t.tokens, room);
  if (static_cast<Index>(guess.size()) > room) guess.resize(static_cast<std::size_t>(room));
  const auto outside = std::ranges::find_if(guess, [&](auto g) { return g < 0 || g >= decoder_->vocabulary(); });
  guess.erase(outside, guess.end());
  t.guessed = guess.size();
  t.input.insert(t.input.end(), guess.begin(), guess.end());
  return true;
}

Finish Generator::finish_of(const Task& t) const {
  if (std::ranges::find(t.options.end_tokens, t.tokens.back()) != t.options.end_tokens.end()) return Finish::end;
  const auto size = static_cast<Index>(t.tokens.size());
  const auto written = static_cast<Index>(t.tokens.size() - t.prompt);
  if (t.options.max_tokens >= 0 && written >= t.options.max_tokens) return Finish::length;
  return size >= decoder_->context() ? Finish::context : Finish::none;
}

// Samples where each guess stood: as long as guesses are right, their logits are those of the true sequence. The token
// that follows the last right guess costs nothing.
void Generator::take(Task& t, std::span<const float> logits, std::vector<GeneratedToken>& out) {
  const auto vocabulary = static_cast<std::size_t>(decoder_->vocabulary());
  const std::span guesses = std::span(t.input).last(t.guessed);
  counts_.guessed += static_cast<Index>(t.guessed);
  for (std::size_t i = 0; i <= t.guessed; ++i) {
    const std::span<const float> row = logits.subspan(i * vocabulary, vocabulary);
    GeneratedToken g{.request = t.id, .token = t.sampler.sample(row, t.tokens)};
    if (t.options.want_logprob) g.logprob = log_probability(row, g.token);
    g.most_probable = most_probable(row, t.options.logprobs);
    t.tokens.push_back(g.token);
    ++counts_.generated;
    g.finish = finish_of(t);
    t.done = g.finish != Finish::none;
    const bool right = i < t.guessed && guesses[i] == g.token;
    out.push_back(std::move(g));
    if (t.done || !right) break;
    ++counts_.accepted;
  }
  // The last token is not in the cache yet; wrong guesses leave it.
  decoder_->truncate(t.sequence, std::min(decoder_->length(t.sequence), static_cast<Index>(t.tokens.size()) - 1));
}

std::vector<GeneratedToken> Generator::step() {
  admit();
  std::vector<GeneratedToken> out;
  std::vector<Task*> running;
  std::vector<RunPart> parts;
  Index budget = options_.chunk;
  for (const bool writing : {true, false}) {
    for (Task& t : active_) {
      if ((t.tokens.size() > t.prompt) != writing || !plan(t, budget)) continue;
      const bool whole = static_cast<std::size_t>(decoder_->length(t.sequence)) + t.input.size() >= t.tokens.size();
      running.push_back(&t);
      parts.push_back({t.sequence, t.input, whole ? static_cast<Index>(t.guessed) + 1 : 0});
    }
  }
  if (parts.empty()) return out;
  std::span<const float> logits = decoder_->run(parts);
  ++counts_.runs;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].logits == 0) continue;
    take(*running[i], logits, out);
    logits = logits.subspan(static_cast<std::size_t>(parts[i].logits * decoder_->vocabulary()));
  }
  std::erase_if(active_, [&](Task& t) {
    if (t.done) end(t);
    return t.done;
  });
  return out;
}

std::vector<std::int32_t> Generator::generate(std::vector<std::int32_t> prompt, const GenerateOptions& options) {
  const Request request = add(std::move(prompt), options);
  std::vector<std::int32_t> tokens;
  for (bool done = false; !done;) {
    for (const GeneratedToken& t : step()) {
      if (t.request != request) continue;
      tokens.push_back(t.token);
      done = t.finish != Finish::none;
    }
  }
  return tokens;
}

}  // namespace rlx
