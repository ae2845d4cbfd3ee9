// The stages that change a text before it is cut: what tokenizer files call normalizers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/bert_text.h"
#include "text/pattern.h"

namespace rlx {

/// One stage. Immutable.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// The changed text; valid UTF-8 in, valid UTF-8 out.
  virtual std::string apply(std::string text) const = 0;
};

/// Puts `prefix` before a text that is not empty.
std::unique_ptr<Normalizer> prepend_text(std::string prefix);
std::unique_ptr<Normalizer> replace_text(std::string from, std::string to);

}  // namespace rlx
