// Jinja's lexer, for the settings that chat templates are written for.
#include "text/template_lexer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "text/unicode.h"

namespace rlx::chat {

namespace {

// A byte for messages.
std::string quoted(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F ? std::string{c} : fmt::format("0x{:02x}", byte);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
// What \s matches.
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F); }

std::string with_line_feeds(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();  // one line end at the end is not part of a template
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view name) : in_(with_line_feeds(source)), name_(name) {}

  std::vector<Token> operator()() {
    while (at_ < in_.size()) {
      const std::size_t tag = next_tag();
      if (tag == std::string::npos) {
        put_text(in_.substr(at_));
        advance(in_.size());
        break;
      }
      const char kind = in_[tag + 1];
      const char sign = tag + 2 < in_.size() ? in_[tag + 2] : ' ';
      std::string text = in_.substr(at_, tag - at_);
      if (sign == '-') {
        while (!text.empty() && is_blank(text.back())) text.pop_back();
      } else if (sign != '+' && kind != '{') {
        drop_indent(text);
      }
      put_text(std::move(text));
      advance(tag + (sign == '-' || sign == '+' ? 3 : 2));
      kind == '#' ? comment() : code(kind);
    }
    out_.push_back({TokenType::end, "", line_});
    return std::move(out_);
  }

 private:
  [[noreturn]] void problem(const std::string& what) const { fail("{}: line {}: {}", name_, line_, what); }

  std::size_t next_tag() const {
    for (std::size_t i = in_.find('{', at_); i != std::string::npos && i + 1 < in_.size(); i = in_.find('{', i + 1)) {
      if (in_[i + 1] == '{' || in_[i + 1] == '%' || in_[i + 1] == '#') return i;
    }
    return std::string::npos;
  }

  void drop_indent(std::string& text) const {
    const std::size_t line_end = text.rfind('\n');
    const std::size_t start = line_end == std::string::npos ? 0 : line_end + 1;
    if (start == 0 && !line_starts_) return;
    if (std::all_of(text.begin() + static_cast<std::ptrdiff_t>(start), text.end(), is_blank)) text.resize(start);
  }

  void put_text(std::string text) {
    if (!text.empty()) out_.push_back({TokenType::text, std::move(text), line_});
  }

  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(in_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         in_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    line_starts_ = to > at_ && in_[to - 1] == '\n';
    at_ = to;
  }

  // After an end tag: `dashed` drops all blanks, otherwise a block drops one line end.
  void after_end(std::size_t to, char sign, bool block) {
    if (sign == '-') {
      while (to < in_.size() && is_blank(in_[to])) ++to;
    } else if (block && sign != '+' && to < in_.size() && in_[to] == '\n') {
      ++to;
    }
    advance(to);
  }

  void comment() {
    const std::size_t end = in_.find("#}", at_);
    if (end == std::string::npos) problem("a comment does not end");
    const char sign = end > at_ ? in_[end - 1] : ' ';
    after_end(end + 2, sign, true);
  }

  // The end tag that stands here, if one does: its length, else 0.
  std::size_t end_here(char kind) const {
    const std::string_view rest = std::string_view(in_).substr(at_);
    const std::string_view plain = kind == '{' ? "}}" : "%}";
    if (rest.starts_with(plain)) return 2;
    if (rest.size() > 2 && (rest[0] == '-' || (rest[0] == '+' && kind == '%')) && rest.substr(1).starts_with(plain))
      return 3;
    return 0;
  }

  void code(char kind) {
    const bool block = kind == '%';
    const std::size_t first = out_.size();
    out_.push_back({block ? TokenType::block_begin : TokenType::output_begin, "", line_});
    open_.clear();
    while (true) {
      while (at_ < in_.size() && is_blank(in_[at_])) advance(at_ + 1);
      if (at_ == in_.size())
        problem(block ? "a block does not end, expected %}" : "an output does not end, expected }}");
      if (const std::size_t size = open_.empty() ? end_here(kind) : 0; size > 0) {
        out_.push_back({block ? TokenType::block_end : TokenType::output_end, "", line_});
        after_end(at_ + size, size == 3 ? in_[at_] : ' ', block);
        if (block && first + 3 == out_.size() && out_[first + 1].text == "raw") raw(first);
        return;
      }
      token();
    }
  }

  // Everything up to {% endraw %} is text.
  void raw(std::size_t first) {
    out_.resize(first);
    for (std::size_t i = in_.find("{%", at_); i != std::string::npos; i = in_.find("{%", i + 2)) {
      std::size_t j = i + 2;
      const char sign = j < in_.size() && (in_[j] == '-' || in_[j] == '+') ? in_[j++] : ' ';
      while (j < in_.size() && is_blank(in_[j])) ++j;
      if (in_.compare(j, 6, "endraw") != 0) continue;
      j += 6;
      while (j < in_.size() && is_blank(in_[j])) ++j;
      const char end_sign = j < in_.size() && (in_[j] == '-' || in_[j] == '+') ? in_[j++] : ' ';
      if (in_.compare(j, 2, "%}") != 0) continue;
      std::string text = in_.substr(at_, i - at_);
      if (sign == '-') {
        while (!text.empty() && is_blank(text.back())) text.pop_back();
      } else if (sign != '+') {
        drop_indent(text);
      }
      put_text(std::move(text));
      return after_end(j + 2, end_sign, true);
    }
    problem("a raw block does not end, expected {% endraw %}");
  }

  void token() {
    const char c = in_[at_];
    if (is_name_start(c)) {
      std::size_t end = at_ + 1;
      while (end < in_.size() && (is_name_start(in_[end]) || is_digit(in_[end]))) ++end;
      put(TokenType::name, end);
    } else if (is_digit(c)) {
      number();
    } else if (c == '"' || c == '\'') {
      string(c);
    } else {
      sign();
    }
  }

  void put(TokenType type, std::size_t end) {
    out_.push_back({type, in_.substr(at_, end - at_), line_});
    advance(end);
  }

  void number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < in_.size() &&
             (is_digit(in_[end]) || (in_[end] == '_' && end + 1 < in_.size() && is_digit(in_[end + 1]))))
        ++end;
    };
    if (in_[at_] == '0' && at_ + 1 < in_.size() &&
        std::string_view("xXoObB").find(in_[at_ + 1]) != std::string_view::npos)
      problem("a number that is not decimal is not supported");
    digits();
    bool real = false;
    if (end + 1 < in_.size() && in_[end] == '.' && is_digit(in_[end + 1])) {
      real = true;
      ++end;
      digits();
    }
    if (end < in_.size() && (in_[end] == 'e' || in_[end] == 'E')) {
      const std::size_t before = end++;
      if (end < in_.size() && (in_[end] == '+' || in_[end] == '-')) ++end;
      if (end < in_.size() && is_digit(in_[end])) {
        real = true;
        digits();
      } else {
        end = before;
      }
    }
    if (!real && in_[at_] == '0' && in_.find_first_not_of("0_", at_) < end) problem("a number starts with 0");
    put(real ? TokenType::real : TokenType::integer, end);
    std::erase(out_.back().text, '_');
  }

  void string(char quote) {
    std::size_t end = at_ + 1;
    while (end < in_.size() && in_[end] != quote) end += in_[end] == '\\' ? 2 : 1;
    if (end >= in_.size()) problem("a string does not end");
    const std::string_view inside = std::string_view(in_).substr(at_ + 1, end - at_ - 1);
    out_.push_back({TokenType::string, unescaped(inside), line_});
    advance(end + 1);
  }

  std::string unescaped(std::string_view text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '\\') {
        out += text[i];
        continue;
      }
      const char c = text[++i];
      static constexpr std::string_view names = "ntrabfv0\\'\"", values = std::string_view("\n\t\r\a\b\f\v\0\\'\"", 11);
      if (const std::size_t k = names.find(c); k != std::string_view::npos) {
        if (c == '0' && i + 1 < text.size() && is_digit(text[i + 1])) problem("an octal escape is not supported");
        out += values[k];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        i = code_escape(text, i, c == 'x' ? 2 : c == 'u' ? 4 : 8, out);
      } else if (c == '\n') {
      } else if (is_digit(c) || c == 'N') {
        problem(fmt::format("the escape \\{} is not supported", c));
      } else {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::size_t code_escape(std::string_view text, std::size_t at, std::size_t digits, std::string& out) const {
    char32_t code = 0;
    for (std::size_t k = 1; k <= digits; ++k) {
      const char c = at + k < text.size() ? text[at + k] : ' ';
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) problem(fmt::format("\\{} is not followed by {} hexadecimal digits", text[at], digits));
      code = code * 16 + static_cast<char32_t>(digit);
      if (code > 0x10FFFF) problem("an escape is above U+10FFFF");
    }
    if (code >= 0xD800 && code < 0xE000) problem("an escape is a surrogate");
    append_utf8(out, code);
    return at + digits;
  }

  void sign() {
    static constexpr std::string_view doubles[] = {"==", "!=", ">=", "<=", "//", "**"};
    const std::string_view rest = std::string_view(in_).substr(at_);
    for (const std::string_view d : doubles) {
      if (rest.starts_with(d)) return put(TokenType::sign, at_ + 2);
    }
    const char c = in_[at_];
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == std::string_view::npos)
      problem(fmt::format("the character {} has no meaning here", quoted(c)));
    if (c == '(' || c == '[' || c == '{') open_ += c;
    if (c == ')' || c == ']' || c == '}') {
      const char partner = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_.empty() || open_.back() != partner) problem(fmt::format("{} closes nothing", c));
      open_.pop_back();
    }
    put(TokenType::sign, at_ + 1);
  }

  std::string in_;
  std::string_view name_;
  std::vector<Token> out_;
  std::string open_;  // brackets that have not closed
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;
};

}  // namespace

std::vector<Token> template_tokens(std::string_view source, std::string_view name) { return Lexer(source, name)(); }

}  // namespace rlx::chat
