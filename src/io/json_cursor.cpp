// The tokens of JSON (RFC 8259), validated in place.
#include "io/json_cursor.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "core/error.h"
#include "core/quote.h"

namespace rlx {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Four validated hexadecimal digits.
std::uint32_t hex_unit(std::string_view digits) {
  std::uint32_t unit = 0;
  for (const char c : digits) unit = unit * 16 + static_cast<std::uint32_t>(hex_value(c));
  return unit;
}

/// Returns the end of what it wrote, at most four bytes.
char* write_utf8(char* out, std::uint32_t point) {
  const auto put = [&](std::uint32_t b) { *out++ = static_cast<char>(b); };
  if (point < 0x80) {
    put(point);
    return out;
  }
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 63));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 63));
    put(0x80 | (point >> 6 & 63));
  }
  put(0x80 | (point & 63));
  return out;
}

}  // namespace

std::size_t JsonString::decode(char* out) const {
  char* const begin = out;
  std::size_t i = 0;
  while (i < raw.size()) {
    const std::size_t stop = std::min(escaped ? raw.find('\\', i) : raw.size(), raw.size());
    out = std::copy(raw.begin() + static_cast<std::ptrdiff_t>(i), raw.begin() + static_cast<std::ptrdiff_t>(stop), out);
    if (stop == raw.size()) break;
    const char c = raw[stop + 1];
    i = stop + 2;
    if (c != 'u') {
      constexpr std::string_view from = "bfnrt", to = "\b\f\n\r\t";
      const std::size_t k = from.find(c);
      *out++ = k == std::string_view::npos ? c : to[k];
      continue;
    }
    std::uint32_t point = hex_unit(raw.substr(i, 4));
    i += 4;
    if (point >= 0xd800 && point < 0xdc00) {  // the cursor has checked that the other half follows
      point = 0x10000 + ((point - 0xd800) << 10) + (hex_unit(raw.substr(i + 2, 4)) - 0xdc00);
      i += 6;
    }
    out = write_utf8(out, point);
  }
  return static_cast<std::size_t>(out - begin);
}

std::string JsonString::text() const {
  std::string out(raw.size(), '\0');
  out.resize(decode(out.data()));
  return out;
}

JsonCursor::JsonCursor(std::string_view text, std::string what) : text_(text), what_(std::move(what)) {}

void JsonCursor::fail_at(std::size_t position, const std::string& message) const {
  fail("{}: byte {}: {}", what_, position, message);
}

std::string JsonCursor::next_text() const {
  return at_ < text_.size() ? quote(text_.substr(at_, 16)) : "the end of the text";
}

char JsonCursor::peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonCursor::accept(char c) {
  if (peek() != c) return false;
  ++at_;
  return true;
}

void JsonCursor::expect(char c) {
  if (!accept(c)) fail_at(at_, fmt::format("expected '{}', found {}", c, next_text()));
}

bool JsonCursor::accept_null() {
  peek();
  if (text_.substr(at_, 4) != "null") return false;
  at_ += 4;
  return true;
}

JsonString JsonCursor::string() {
  if (peek() != '"') fail_at(at_, fmt::format("expected a string, found {}", next_text()));
  const std::size_t start = ++at_;
  bool escaped = false;
  while (at_ < text_.size()) {
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') return {text_.substr(start, at_++ - start), escaped};
    if (c == '\\') {
      escaped = true;
      escape();
    } else if (c < 0x20) {
      fail_at(at_, fmt::format("control character {} in a string", static_cast<int>(c)));
    } else if (c < 0x80) {
      ++at_;
    } else {
      utf8();
    }
  }
  fail_at(start - 1, "the string that starts here is not closed");
}

unsigned JsonCursor::hex4() {
  const std::string_view digits = text_.substr(at_, 4);
  bool ok = digits.size() == 4;
  for (const char c : digits) ok = ok && hex_value(c) >= 0;
  if (!ok) fail_at(at_, fmt::format("expected four hexadecimal digits, found {}", next_text()));
  at_ += 4;
  return hex_unit(digits);
}

void JsonCursor::escape() {
  const std::size_t start = at_;
  const char kind = ++at_ < text_.size() ? text_[at_] : '\0';
  if (kind == '\0' || std::string_view("\"\\/bfnrtu").find(kind) == std::string_view::npos) {
    fail_at(start, fmt::format("unknown escape {}", quote(text_.substr(start, 2))));
  }
  ++at_;
  if (kind != 'u') return;
  const unsigned first = hex4();
  if (first < 0xd800 || first >= 0xe000) return;
  bool pair = first < 0xdc00 && text_.substr(at_, 2) == "\\u";
  if (pair) {
    at_ += 2;
    const unsigned second = hex4();
    pair = second >= 0xdc00 && second < 0xe000;
  }
  if (!pair) fail_at(start, fmt::format("lone surrogate {}", quote(text_.substr(start, 6))));
}

void JsonCursor::utf8() {
  const auto byte = [this](std::size_t i) {
    return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0u;
  };
  const unsigned a = byte(0), b = byte(1);
  const std::size_t length = a >= 0xc2 && a <= 0xdf ? 2 : a >= 0xe0 && a <= 0xef ? 3 : a >= 0xf0 && a <= 0xf4 ? 4 : 0;
  // The second byte has a narrower range after these: overlong forms, surrogates, points beyond 0x10ffff.
  const unsigned low = a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80;
  const unsigned high = a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf;
  bool ok = length != 0 && b >= low && b <= high;
  for (std::size_t i = 2; i < length; ++i) ok = ok && byte(i) >= 0x80 && byte(i) <= 0xbf;
  if (!ok) fail_at(at_, fmt::format("invalid UTF-8 {}", quote(text_.substr(at_, 4))));
  at_ += length;
}

Index JsonCursor::natural(std::string_view what) {
  peek();
  const std::size_t start = at_;
  Checked value(0);
  while (at_ < text_.size() && is_digit(text_[at_])) value = value * Checked(10) + Checked(text_[at_++] - '0');
  const std::string_view digits = text_.substr(start, at_ - start);
  const char next = at_ < text_.size() ? text_[at_] : '\0';
  if (digits.empty() || next == '.' || next == 'e' || next == 'E' || (digits.size() > 1 && digits[0] == '0')) {
    fail_at(start, fmt::format("{} must be a whole number of at least 0, found {}", what,
                               start < text_.size() ? quote(text_.substr(start, 24)) : "the end of the text"));
  }
  if (value.overflowed()) fail_at(start, fmt::format("{} {} is above 2^63-1", what, quote(digits, 24)));
  return value.value(what);
}

void JsonCursor::skip_number() {
  const std::size_t start = at_;
  const auto digits = [this] {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ - from;
  };
  const auto next = [this] { return at_ < text_.size() ? text_[at_] : '\0'; };
  if (next() == '-') ++at_;
  const bool zero = next() == '0';
  const std::size_t whole = digits();
  bool ok = whole > 0 && !(zero && whole > 1);
  if (ok && next() == '.') ok = (++at_, digits() > 0);
  if (ok && (next() == 'e' || next() == 'E')) {
    ++at_;
    if (next() == '+' || next() == '-') ++at_;
    ok = digits() > 0;
  }
  if (!ok) fail_at(start, fmt::format("expected a value, found {}", quote(text_.substr(start, 16))));
}

void JsonCursor::skip_scalar() {
  if (peek() == '"') {
    string();
    return;
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (text_.substr(at_, word.size()) == word) {
      at_ += word.size();
      return;
    }
  }
  if (at_ >= text_.size()) fail_at(at_, "expected a value, found the end of the text");
  skip_number();
}

void JsonCursor::skip_value(int depth) {
  std::vector<bool> objects;  // one entry for each open array or object
  for (;;) {
    const char c = peek();
    if (c == '[' || c == '{') {
      if (objects.size() >= static_cast<std::size_t>(depth)) {
        fail_at(at_, fmt::format("nested more than {} levels deep", depth));
      }
      ++at_;
      objects.push_back(c == '{');
      if (!accept(c == '{' ? '}' : ']')) {
        if (c == '{') string(), expect(':');
        continue;
      }
      objects.pop_back();
    } else {
      skip_scalar();
    }
    for (; !objects.empty(); objects.pop_back()) {
      if (accept(',')) break;
      expect(objects.back() ? '}' : ']');
    }
    if (objects.empty()) return;
    if (objects.back()) string(), expect(':');
  }
}

void JsonCursor::finish() {
  peek();
  if (at_ < text_.size()) fail_at(at_, fmt::format("expected the end, found {}", next_text()));
}

}  // namespace rlx
