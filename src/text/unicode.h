// UTF-8 in and out, and the few properties of code points that tokenizers ask for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rlx {

/// U+FFFD, which stands for bytes that are not UTF-8.
constexpr char32_t replacement_character = 0xFFFD;

/// The code point at byte `at` (which must be inside `text`), and moves `at` behind it. Bytes that start no valid
/// character give U+FFFD: one for each longest run that could still have become valid, as Python's errors="replace"
/// counts them.
char32_t next_code_point(std::string_view text, std::size_t& at);

/// The code point that ends just before byte `at` (which must not be 0) of valid UTF-8.
char32_t previous_code_point(std::string_view text, std::size_t at);

/// Appends a code point, which must not be a surrogate or above U+10FFFF.
void append_utf8(std::string& out, char32_t c);

/// Whether all bytes are UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF.
bool is_valid_utf8(std::string_view text);

/// Whether these bytes, which are no whole character, are the start of one.
bool may_become_character(std::string_view bytes);

/// The text with bytes that are not UTF-8 replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

/// Unicode's property White_Space.
bool is_white_space(char32_t c);

/// What \w matches: letters, marks, letter numbers, decimal digits, connector punctuation, joiners, circled letters.
bool is_word_character(char32_t c);

}  // namespace rlx
