// Prompt lookup and draft models.
#include "generate/speculation.h"

#include <algorithm>

#include "core/error.h"
#include "generate/sampler.h"

namespace rlx {

namespace {

class PromptLookup final : public Speculator {
 public:
  explicit PromptLookup(const PromptLookupOptions& o) : o_(o) {}

  std::vector<std::int32_t> guess(std::span<const std::int32_t> tokens, Index most) override {
    const auto size = static_cast<Index>(tokens.size());
    for (Index n = std::min(o_.longest, size - 1); n >= o_.shortest; --n) {
      const auto last = tokens.last(static_cast<std::size_t>(n));
      for (Index at = size - n - 1; at >= 0; --at) {
        if (!std::ranges::equal(tokens.subspan(static_cast<std::size_t>(at), last.size()), last)) continue;
        const Index count = std::min({o_.most, most, size - n - at});
        const auto next = tokens.subspan(static_cast<std::size_t>(at + n), static_cast<std::size_t>(count));
        return {next.begin(), next.end()};
      }
    }
    return {};
  }

 private:
  PromptLookupOptions o_;
};

class DraftModel final : public Speculator {
 public:
  DraftModel(std::shared_ptr<PagedDecoder> decoder, Index most)
      : decoder_(std::move(decoder)), most_(most), sequence_(decoder_->open()) {}
  ~DraftModel() override { decoder_->close(sequence_); }
  DraftModel(const DraftModel&) = delete;
  DraftModel& operator=(const DraftModel&) = delete;

  std::vector<std::int32_t> guess(std::span<const std::int32_t> tokens, Index most) override {
    const auto size = static_cast<Index>(tokens.size());
    most = std::min({most, most_, decoder_->context() - size});
    if (most <= 0) return {};
    std::vector<std::int32_t> guessed;
    const std::span<const float> first = catch_up(tokens);
    if (first.empty()) return {};
    guessed.push_back(best_.sample(first, {}));
    while (static_cast<Index>(guessed.size()) < most && room(1)) {
      const RunPart part{sequence_, std::span(guessed).last(1), 1};
      guessed.push_back(best_.sample(decoder_->run(std::span(&part, 1)), {}));
    }
    return guessed;
  }

 private:
  bool room(Index count) const { return decoder_->pages_for(sequence_, count) < decoder_->pages().available(); }

  // Runs what the draft has not seen, and gives the logits behind it; nothing when there is no room.
  std::span<const float> catch_up(std::span<const std::int32_t> tokens) {
    if (decoder_->length(sequence_) == 0) decoder_->reuse(sequence_, tokens);
    const auto known = decoder_->tokens(sequence_);
    const auto same = std::ranges::mismatch(known, tokens).in2 - tokens.begin();
    // The last token is run in any case: its logits are wanted.
    decoder_->truncate(sequence_, std::min<Index>(same, static_cast<Index>(tokens.size()) - 1));
    constexpr std::size_t chunk = 512;
    std::span<const float> logits;
    for (auto left = tokens.subspan(static_cast<std::size_t>(decoder_->length(sequence_))); !left.empty();) {
      const auto now = left.first(std::min(left.size(), chunk));
      if (!room(static_cast<Index>(now.size()))) return {};
      left = left.subspan(now.size());
      const RunPart part{sequence_, now, left.empty() ? 1 : 0};
      logits = decoder_->run(std::span(&part, 1));
    }
    return logits;
  }

  std::shared_ptr<PagedDecoder> decoder_;
  Index most_;
  PagedDecoder::Sequence sequence_;
  Sampler best_{SamplerOptions::greedy()};
};

}  // namespace

MakeSpeculator prompt_lookup(const PromptLookupOptions& o) {
  require(o.shortest >= 1 && o.longest >= o.shortest, "prompt lookup compares {} to {} tokens, expected 1 or more",
          o.shortest, o.longest);
  require(o.most >= 1, "prompt lookup guesses {} tokens, expected 1 or more", o.most);
  return [o] { return std::make_unique<PromptLookup>(o); };
}

MakeSpeculator draft_model(std::shared_ptr<PagedDecoder> decoder, Index most) {
  require(decoder != nullptr, "there is no draft model");
  require(most >= 1, "the draft model guesses {} tokens, expected 1 or more", most);
  return [decoder = std::move(decoder), most] { return std::make_unique<DraftModel>(decoder, most); };
}

}  // namespace rlx
