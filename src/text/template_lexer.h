// The words of a chat template: text, and what stands between {{ }} and {% %}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::chat {

enum class TokenType : std::uint8_t {
  text,
  output_begin,
  output_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  sign,
  end
};

struct Token {
  TokenType type;
  std::string text;  // decoded, for strings
  int line;
};

/// Cuts a template as Jinja does with trim_blocks and lstrip_blocks: the line end behind a block and the blanks before
/// one that starts a line are dropped, `-` drops all blanks on its side, comments vanish. Errors name the line.
std::vector<Token> template_tokens(std::string_view source, std::string_view name);

}  // namespace rlx::chat
