// UTF-8 decoding by the well-formedness table of the Unicode standard; categories from utf8proc.
#include "text/unicode.h"

#include <utf8proc.h>

#include "core/error.h"

namespace rlx {

namespace {

unsigned char byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

}  // namespace

char32_t next_code_point(std::string_view text, std::size_t& at) {
  const unsigned char lead = byte_at(text, at++);
  if (lead < 0x80) return lead;
  int more = 0;
  char32_t c = 0;
  unsigned char low = 0x80, high = 0xBF;  // what the second byte may be
  if (lead >= 0xC2 && lead <= 0xDF) {
    more = 1;
    c = lead & 0x1Fu;
  } else if ((lead & 0xF0) == 0xE0) {
    more = 2;
    c = lead & 0x0Fu;
    if (lead == 0xE0) low = 0xA0;   // overlong
    if (lead == 0xED) high = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    more = 3;
    c = lead & 0x07u;
    if (lead == 0xF0) low = 0x90;   // overlong
    if (lead == 0xF4) high = 0x8F;  // above U+10FFFF
  } else {
    return replacement_character;
  }
  for (; more > 0; --more) {
    if (at == text.size() || byte_at(text, at) < low || byte_at(text, at) > high) return replacement_character;
    c = (c << 6) | (byte_at(text, at++) & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return c;
}

char32_t previous_code_point(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (byte_at(text, at) & 0xC0) == 0x80);
  return next_code_point(text, at);
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    // A replacement character that was written as such has its three bytes.
    if (next_code_point(text, at) == replacement_character && text.substr(start, at - start) != "\xEF\xBF\xBD")
      return false;
  }
  return true;
}

bool may_become_character(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > 3) return false;
  const unsigned char lead = byte_at(bytes, 0);
  if (lead < 0xC2 || lead > 0xF4) return false;
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (bytes.size() >= size) return false;
  std::size_t at = 0;
  next_code_point(bytes, at);
  return at == bytes.size();
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) append_utf8(out, next_code_point(text, at));
  return out;
}

bool is_white_space(char32_t c) {
  if (c <= 0x20) return c == 0x20 || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(char32_t c) {
  if (c == 0x200C || c == 0x200D) return true;
  if (c >= 0x24B6 && c <= 0x24E9) return true;  // circled Latin letters
  if ((c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189)) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

}  // namespace rlx
