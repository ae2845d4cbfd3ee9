// The table of byte-level vocabularies, computed from its rule.
#include "text/byte_spelling.h"

#include <array>

#include "text/unicode.h"

namespace rlx {

namespace {

constexpr char32_t table_size = 256 + 68;  // 68 bytes have no printable Latin-1 character

struct Spelling {
  std::array<char32_t, 256> character{};
  std::array<std::int16_t, table_size> byte{};
};

constexpr bool is_printed(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Spelling make() {
  Spelling out;
  for (std::int16_t& b : out.byte) b = -1;
  char32_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const char32_t c = is_printed(b) ? static_cast<char32_t>(b) : next++;
    out.character[static_cast<std::size_t>(b)] = c;
    out.byte[c] = static_cast<std::int16_t>(b);
  }
  return out;
}

constexpr Spelling spelling = make();

}  // namespace

char32_t byte_character(std::uint8_t byte) { return spelling.character[byte]; }

int character_byte(char32_t c) { return c < table_size ? spelling.byte[c] : -1; }

std::optional<std::string> spelt_bytes(std::string_view token) {
  std::string out;
  for (std::size_t at = 0; at < token.size();) {
    const int byte = character_byte(next_code_point(token, at));
    if (byte < 0) return std::nullopt;
    out += static_cast<char>(static_cast<unsigned char>(byte));
  }
  return out;
}

std::optional<std::uint8_t> byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  int value = 0;
  for (const char c : token.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                             : -1;
    if (digit < 0) return std::nullopt;
    value = 16 * value + digit;
  }
  return static_cast<std::uint8_t>(value);
}

}  // namespace rlx
