// Tokens that are found in a text before it is split into words.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/index.h"
#include "text/piece_table.h"

namespace rlx {

/// A token that is found in the text before words are split.
struct AddedToken {
  std::string content;
  Index id = 0;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the blanks before it
  bool rstrip = false;       // takes the blanks behind it
  bool normalized = false;   // its normalised content is looked for in the normalised text
  bool special = false;      // steers a model, as opposed to text that has a token of its own
};

/// Cuts texts at added tokens. Of the tokens that start at one place the longest counts; one that fails its single_word
/// rule, or is special where those are not wanted, still hides what lies inside it.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// Contents must differ and not be empty; an Error names `what` and the token otherwise.
  AddedTokens(std::vector<AddedToken> tokens, std::string_view what);

  bool empty() const { return tokens_.empty(); }

  /// Calls `on_text(stretch)` for what lies between the tokens and `on_token(token)` for these, in order, while they
  /// return true. `text` must be valid UTF-8. Linear in the text.
  template <class OnText, class OnToken>
  void split(std::string_view text, bool special_too, const OnText& on_text, const OnToken& on_token) const {
    std::size_t done = 0, at = 0;
    while (const std::optional<Found> found = next(text, done, at, special_too)) {
      if (found->begin > done && !on_text(text.substr(done, found->begin - done))) return;
      if (!on_token(*found->token)) return;
      done = found->end;
    }
    if (done < text.size()) on_text(text.substr(done));
  }

 private:
  struct Found {
    const AddedToken* token;
    std::size_t begin, end;
  };
  // The first token at `at` or later, which moves behind it; blanks before `done` are taken already.
  std::optional<Found> next(std::string_view text, std::size_t done, std::size_t& at, bool special_too) const;

  std::vector<AddedToken> tokens_;
  PieceTable table_;                // ids are positions in `tokens_`
  std::array<bool, 256> starts_{};  // the first bytes of tokens
};

}  // namespace rlx
