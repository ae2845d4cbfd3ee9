// Guesses of the tokens to come, which one run of the model then checks together.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "generate/paged_decoder.h"

namespace rlx {

/// Guesses for one sequence. What it guesses changes how many runs a text takes, never the text.
class Speculator {
 public:
  virtual ~Speculator() = default;
  /// At most `most` tokens that may follow `tokens`.
  virtual std::vector<std::int32_t> guess(std::span<const std::int32_t> tokens, Index most) = 0;
};

/// Makes the speculator of one sequence.
using MakeSpeculator = std::function<std::unique_ptr<Speculator>()>;

struct PromptLookupOptions {
  Index longest = 3, shortest = 1;  // tokens that must be equal
  Index most = 8;                   // tokens of a guess
};

/// Guesses that the sequence goes on as it did where its last tokens stood before, at the last such place.
MakeSpeculator prompt_lookup(const PromptLookupOptions& options = {});

/// Guesses what a smaller model with the same vocabulary takes for most probable, up to `most` tokens. The decoder is
/// shared by all sequences and must have pages for them; a sequence that finds none is not guessed for.
MakeSpeculator draft_model(std::shared_ptr<PagedDecoder> decoder, Index most = 5);

}  // namespace rlx
