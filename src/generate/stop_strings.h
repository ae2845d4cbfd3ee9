// Texts at which an answer ends, found while it comes piece by piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// Lets text through up to the first stop string. What may be the beginning of one is held back until it is known.
class StopStrings {
 public:
  /// Throws Error for an empty string.
  explicit StopStrings(std::vector<std::string> stops);

  /// Takes the next piece; gives what is certain not to belong to a stop string. When one is complete, of two that
  /// begin at different places the first, the text before it comes and `stopped` is set; from then on nothing comes.
  std::string push(std::string_view piece);
  /// What was held back, at the end of the text.
  std::string flush();
  bool stopped() const { return stopped_; }
  /// The string that was found; empty before.
  const std::string& found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_, found_;
  bool stopped_ = false;
};

}  // namespace rlx
