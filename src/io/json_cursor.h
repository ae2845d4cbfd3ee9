// Reads JSON text token by token in constant memory, for readers that know what must come next. Positions and slices
// refer to the text, which stays where it is: a mapped file is never copied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/index.h"

namespace rlx {

/// A string token: the bytes between the quotes, validated. Without escapes they are the string itself.
struct JsonString {
  std::string_view raw;
  bool escaped = false;

  /// Writes the string's bytes (UTF-8, escapes resolved) to `out`, which has room for raw.size(); returns how many.
  std::size_t decode(char* out) const;
  std::string text() const;
};

/// A position in a JSON text. Each function skips white space, takes what its name says, and throws Error otherwise;
/// the message starts with the name of the text and the position in bytes from its start.
class JsonCursor {
 public:
  /// `what` names the text in messages, for instance `header of 'a.safetensors'`. `text` must outlive the cursor.
  JsonCursor(std::string_view text, std::string what);

  std::size_t position() const { return at_; }
  /// The next character that is no white space; 0 at the end. (A zero byte in the text is an error wherever it stands.)
  char peek();
  /// Takes `c`.
  void expect(char c);
  /// Takes `c` if it comes next.
  bool accept(char c);
  /// Takes `null` if it comes next.
  bool accept_null();
  /// A string: valid UTF-8, no control characters, escapes well-formed, no lone surrogates.
  JsonString string();
  /// An integer from 0 to 2^63-1 without sign, fraction and exponent; `what` says what it is for.
  Index natural(std::string_view what);
  /// Any value, nested at most `depth` arrays and objects deep. Uses one bit of memory a level.
  void skip_value(int depth);
  /// The text ends here, but for white space.
  void finish();
  /// Throws Error: WHAT: byte POSITION: message.
  [[noreturn]] void fail_at(std::size_t position, const std::string& message) const;

 private:
  void skip_scalar();
  void skip_number();
  void escape();
  unsigned hex4();
  void utf8();
  std::string next_text() const;

  std::string_view text_;
  std::string what_;
  std::size_t at_ = 0;
};

}  // namespace rlx
