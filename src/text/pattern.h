// Regular expressions of tokenizers, matched with bounds on time and memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace rlx {

/// A compiled pattern in the syntax that tokenizers share (Oniguruma, Rust, PCRE): alternatives, classes with
/// properties, look-around, possessive repeats. Its classes hold what the reference's Unicode version says, whatever
/// version PCRE2 has. Immutable; safe to use from several threads at once.
class Pattern {
 public:
  /// An Error for a pattern that does not compile, with the place; `what` heads the message.
  Pattern(std::string_view regex, std::string_view what);

  /// What a walk over texts needs besides the pattern; each thread has its own.
  class Matcher;

  /// The pattern as PCRE2 gets it: \s, \d, \w, \p{..} and their negations spelt out where the tables differ.
  static std::string translate(std::string_view regex, std::string_view what);

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string what_;
};

struct PatternMatch {
  std::size_t begin, end;
};

class Pattern::Matcher {
 public:
  explicit Matcher(const Pattern& pattern);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  /// The first match in `text` (valid UTF-8) that begins at byte `from` or later; look-behind sees all of `text`. An
  /// Error if finding it takes more steps than a fixed number and a multiple of the text's size.
  std::optional<PatternMatch> next(std::string_view text, std::size_t from);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rlx
