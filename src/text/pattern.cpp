// Patterns on PCRE2: classes are rewritten for the reference's Unicode version; JIT where it works, else the
// interpreter.
#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "text/pattern_tables.h"
#include "text/unicode.h"

namespace rlx {

namespace {

constexpr std::string_view blanks =
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view no_blanks =
    "\\x00-\\x08\\x0e-\\x1f\\x21-\\x84\\x86-\\x9f\\xa1-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{"
    "202e}"
    "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}";
constexpr std::string_view word =
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{"
    "1f189}";

std::string added(std::string_view name) {
  std::string out;
  for (const PatternAddition& row : pattern_additions()) {
    if (row.name != name) continue;
    for (const CodeRange& r : row.ranges) out += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", r.first, r.last);
  }
  return out;
}

// The inside of a class for the property `name`.
std::string property(std::string_view name) { return fmt::format("\\p{{{}}}{}", name, added(name)); }

class Translation {
 public:
  Translation(std::string_view regex, std::string_view what) : in_(regex), what_(what) {}

  std::string operator()() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\') {
        escape();
      } else if (depth_ > 0 && in_.substr(at_).starts_with("[:")) {
        posix();
      } else if (c == '[') {
        ++depth_;
        out_ += c;
        ++at_;
        require(depth_ == 1, "{}: byte {} of the pattern opens a class inside a class, which is not supported", what_,
                at_ - 1);
        if (at_ < in_.size() && in_[at_] == '^') out_ += in_[at_++];
        if (at_ < in_.size() && in_[at_] == ']') out_ += in_[at_++];
      } else {
        if (c == ']' && depth_ > 0) --depth_;
        require(!(depth_ > 0 && in_.substr(at_).starts_with("&&")),
                "{}: byte {} of the pattern intersects classes, which is not supported", what_, at_);
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  // Writes a class, or its inside where one is open already.
  void put(std::string_view inside, bool negated) {
    if (depth_ == 0) {
      out_ += fmt::format("[{}{}]", negated ? "^" : "", inside);
    } else {
      require(!negated, "{}: byte {} of the pattern negates a class inside a class, which is not supported", what_,
              at_);
      out_ += inside;
    }
  }

  void escape() {
    require(at_ + 1 < in_.size(), "{}: the pattern ends with a backslash", what_);
    const char c = in_[at_ + 1];
    if (c == 's' || c == 'S') {
      if (depth_ > 0) {
        out_ += c == 's' ? blanks : no_blanks;
      } else {
        put(blanks, c == 'S');
      }
    } else if (c == 'd' || c == 'D') {
      put(property("Nd"), c == 'D');
    } else if (c == 'w' || c == 'W') {
      put(std::string(word) + added("w"), c == 'W');
    } else if ((c == 'b' || c == 'B') && depth_ == 0) {
      const std::string inside = std::string(word) + added("w");
      out_ += c == 'b' ? fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", inside)
                       : fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", inside);
    } else if (c == 'h' || c == 'H') {
      put("0-9a-fA-F", c == 'H');
    } else if (c == 'p' || c == 'P') {
      return named(c == 'P');
    } else if (c == 'C' || c == 'Q' || c == 'E') {
      fail("{}: byte {} of the pattern is \\{}, which is not supported", what_, at_, c);
    } else {
      out_ += in_.substr(at_, 2);
    }
    at_ += 2;
  }

  void named(bool negated) {
    std::string_view name = in_.substr(at_ + 2, 1);
    std::size_t end = at_ + 3;
    if (name == "{") {
      const std::size_t close = in_.find('}', at_);
      require(close != std::string_view::npos, "{}: byte {} of the pattern opens a property without closing it", what_,
              at_);
      name = in_.substr(at_ + 3, close - at_ - 3);
      end = close + 1;
    }
    if (name.starts_with('^')) {
      name.remove_prefix(1);
      negated = !negated;
    }
    static constexpr std::pair<std::string_view, std::string_view> long_names[] = {{"Letter", "L"},
                                                                                   {"Number", "N"},
                                                                                   {"Punctuation", "P"},
                                                                                   {"Symbol", "S"},
                                                                                   {"Mark", "M"},
                                                                                   {"Separator", "Z"},
                                                                                   {"Other", "C"},
                                                                                   {"Alpha", "L"},
                                                                                   {"Uppercase_Letter", "Lu"},
                                                                                   {"Lowercase_Letter", "Ll"},
                                                                                   {"Decimal_Number", "Nd"}};
    for (const auto& [spelt, brief] : long_names) {
      if (name == spelt) name = brief;
    }
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char x) {
      return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z') || x == '_' || x == '&';
    });
    require(plain, "{}: byte {} of the pattern names the property \"{}\", expected letters", what_, at_, name);
    const std::string more = added(name);
    if (negated && more.empty()) {
      out_ += fmt::format("\\P{{{}}}", name);
    } else {
      put(property(name), negated);
    }
    at_ = end;
  }

  void posix() {
    const std::size_t close = in_.find(":]", at_);
    require(close != std::string_view::npos, "{}: byte {} of the pattern opens [: without closing it", what_, at_);
    const std::string_view name = in_.substr(at_ + 2, close - at_ - 2);
    if (name == "punct") {
      out_ += property("P") + property("S");
    } else if (name == "alpha") {
      out_ += property("L");
    } else if (name == "digit") {
      out_ += property("Nd");
    } else if (name == "space") {
      out_ += blanks;
    } else {
      fail("{}: byte {} of the pattern is [:{}:], expected alpha, digit, punct or space", what_, at_, name);
    }
    at_ = close + 2;
  }

  std::string_view in_, what_;
  std::string out_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

std::string error_text(int code) {
  PCRE2_UCHAR buffer[160];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Pattern::Code {
  pcre2_code* code = nullptr;
  bool jit = false;
  std::string what;

  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
};

std::string Pattern::translate(std::string_view regex, std::string_view what) { return Translation(regex, what)(); }

Pattern::Pattern(std::string_view regex, std::string_view what) : what_(what) {
  constexpr std::size_t most_bytes = 20'000;
  require(regex.size() <= most_bytes, "{}: a pattern of {} bytes, at most {} are supported", what, regex.size(),
          most_bytes);
  require(is_valid_utf8(regex), "{}: the pattern is not UTF-8", what);
  const std::string text = translate(regex, what);
  auto code = std::make_shared<Code>();
  code->what = what;
  int error = 0;
  PCRE2_SIZE place = 0;
  const std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 100);
  code->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &place, context.get());
  require(code->code != nullptr, "{}: the pattern \"{}\" does not compile: {} at byte {}", what, regex.substr(0, 200),
          error_text(error), place);
  code->jit = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
  code_ = std::move(code);
}

struct Pattern::Matcher::State {
  std::shared_ptr<const Code> code;
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
};

Pattern::Matcher::Matcher(const Pattern& pattern) : state_(std::make_unique<State>()) {
  state_->code = pattern.code_;
  state_->data = pcre2_match_data_create_from_pattern(pattern.code_->code, nullptr);
  state_->context = pcre2_match_context_create(nullptr);
  if (state_->data == nullptr || state_->context == nullptr) throw std::bad_alloc();
  pcre2_set_heap_limit(state_->context, 64 * 1024);  // in KiB
}

Pattern::Matcher::Matcher(Matcher&&) noexcept = default;
Pattern::Matcher& Pattern::Matcher::operator=(Matcher&&) noexcept = default;
Pattern::Matcher::~Matcher() = default;

std::optional<PatternMatch> Pattern::Matcher::next(std::string_view text, std::size_t from) {
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto steps = static_cast<std::uint32_t>(std::min<std::size_t>(1'000'000 + 16 * text.size(), 1u << 30));
  pcre2_set_match_limit(state_->context, steps);
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (state_->code->jit) {
    found = pcre2_jit_match(state_->code->code, subject, text.size(), from, 0, state_->data, state_->context);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    found = pcre2_match(state_->code->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state_->data,
                        state_->context);
  }
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  require(found >= 0, "{}: the pattern gives up at byte {} of a text of {} bytes: {}", state_->code->what, from,
          text.size(), error_text(found));
  const PCRE2_SIZE* place = pcre2_get_ovector_pointer(state_->data);
  require(place[0] <= place[1], "{}: the pattern matches backwards at byte {}, expected a plain match",
          state_->code->what, from);
  return PatternMatch{place[0], place[1]};
}

}  // namespace rlx
