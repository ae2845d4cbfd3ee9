// The stages that cut a text into the pieces that a model sees: what tokenizer files call pre-tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.h"
#include "text/pattern.h"

namespace rlx {

/// One stage. Immutable; what a call needs beside it is in its state, of which each thread has its own.
class Splitter {
 public:
  struct State {
    virtual ~State() = default;
  };
  /// Gets a piece, which lives during the call only, and whether the whole text starts with it.
  using Sink = FunctionRef<void(std::string_view piece, bool first)>;

  virtual ~Splitter() = default;
  virtual std::unique_ptr<State> state() const { return std::make_unique<State>(); }
  /// Hands the parts of a piece to `sink`, in order; none of them is empty.
  virtual void split(std::string_view piece, bool first, State& state, Sink sink) const = 0;
};

/// What becomes of the stretches that a pattern finds.
enum class SplitBehavior : std::uint8_t { removed, isolated, merged_with_previous, merged_with_next, contiguous };

/// Cuts at the matches of a pattern; with `invert` at what lies between them.
std::unique_ptr<Splitter> split_at_pattern(const Pattern& pattern, SplitBehavior behavior, bool invert);

/// Cuts at each occurrence of a text.
std::unique_ptr<Splitter> split_at_text(std::string text, SplitBehavior behavior, bool invert);

/// Cuts at the code points for which the predicate holds.
std::unique_ptr<Splitter> split_at_characters(bool (*predicate)(char32_t), SplitBehavior behavior);

/// Runs of word characters, and runs of what is neither that nor blank; blanks are dropped.
std::unique_ptr<Splitter> split_words();

/// The words of BERT: runs between blanks, each punctuation character by itself.
std::unique_ptr<Splitter> split_bert();

/// Puts a blank before a piece that does not start with one.
std::unique_ptr<Splitter> add_leading_space();

/// Writes each byte as the character that byte-level vocabularies spell it with.
std::unique_ptr<Splitter> spell_bytes();

enum class PrependScheme : std::uint8_t { never, first, always };

/// Replaces blanks (U+0020) by `mark`, puts one in front by the scheme, and cuts before each if `split`.
std::unique_ptr<Splitter> metaspace(std::string mark, PrependScheme scheme, bool split);

/// The pattern of GPT-2, which byte-level stages use where a file names none.
extern const char* const gpt2_pattern;

/// A chain of stages with their states; made for one call of one thread.
class SplitterChain {
 public:
  explicit SplitterChain(const std::vector<std::unique_ptr<Splitter>>& stages);
  /// Hands the final parts of `text` to `sink`.
  void run(std::string_view text, bool first, FunctionRef<void(std::string_view)> sink);

 private:
  void run_from(std::size_t stage, std::string_view piece, bool first, FunctionRef<void(std::string_view)> sink);

  const std::vector<std::unique_ptr<Splitter>>& stages_;
  std::vector<std::unique_ptr<Splitter::State>> states_;
};

}  // namespace rlx
