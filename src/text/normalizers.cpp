// Normalizers on strings and patterns, and those of Unicode.
#include "text/normalizers.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "text/bert_tables.h"
#include "text/unicode.h"

namespace rlx {

namespace {

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string apply(std::string text) const override {
    if (!text.empty()) text.insert(0, prefix_);
    return text;
  }

 private:
  std::string prefix_;
};

class ReplaceText : public Normalizer {
 public:
  ReplaceText(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {}
  std::string apply(std::string text) const override {
    if (from_.empty()) return text;
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = 0; (at = text.find(from_, done)) != std::string::npos; done = at + from_.size()) {
      out.append(text, done, at - done);
      out += to_;
    }
    if (done == 0) return text;
    out.append(text, done);
    return out;
  }

 private:
  std::string from_, to_;
};

class ReplacePattern : public Normalizer {
 public:
  ReplacePattern(Pattern pattern, std::string to) : pattern_(std::move(pattern)), to_(std::move(to)) {}
  std::string apply(std::string text) const override {
    Pattern::Matcher matcher(pattern_);
    std::string out;
    std::size_t done = 0;
    for (std::size_t at = 0; at <= text.size();) {
      const std::optional<PatternMatch> match = matcher.next(text, at);
      if (!match) break;
      out.append(text, done, match->begin - done);
      out += to_;
      done = at = match->end;
      if (match->end > match->begin) continue;
      if (at == text.size()) break;
      next_code_point(text, at);
    }
    return out.append(text, done);
  }

 private:
  Pattern pattern_;
  std::string to_;
};

bool is_inert(char32_t c) {
  const auto ranges = bert_tables.inert;
  const auto it = std::partition_point(ranges.begin(), ranges.end(), [&](const CodeRange& r) { return r.last < c; });
  return it != ranges.end() && it->first <= c;
}

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}

  std::string apply(std::string text) const override {
    const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
    if (std::all_of(text.begin(), text.end(), ascii)) return text;
    std::string out;
    out.reserve(text.size());
    std::vector<utf8proc_int32_t> run;  // up to a character that the reference leaves alone
    for (std::size_t at = 0; at < text.size();) {
      const char32_t c = next_code_point(text, at);
      if (c >= 0x80 && is_inert(c)) {
        flush(run, out);
        append_utf8(out, c);
      } else {
        decompose(c, run);
      }
    }
    flush(run, out);
    return out;
  }

 private:
  bool compatible() const { return form_ == UnicodeForm::nfkc || form_ == UnicodeForm::nfkd; }

  void decompose(char32_t c, std::vector<utf8proc_int32_t>& run) const {
    if (c < 0x80) return run.push_back(static_cast<utf8proc_int32_t>(c));
    utf8proc_int32_t parts[24];
    int boundary = UTF8PROC_BOUNDCLASS_START;
    const int options = UTF8PROC_DECOMPOSE | (compatible() ? UTF8PROC_COMPAT : 0);
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 24,
                                                           static_cast<utf8proc_option_t>(options), &boundary);
    ensure(count > 0 && count <= 24, "a code point decomposes into one to 24");
    run.insert(run.end(), parts, parts + count);
  }

  static int combining_class(utf8proc_int32_t c) { return c < 0x80 ? 0 : utf8proc_get_property(c)->combining_class; }

  // By class; those of one class stay in their order.
  static void order_marks(std::span<utf8proc_int32_t> marks) {
    std::vector<std::tuple<int, std::size_t, utf8proc_int32_t>> order;
    for (std::size_t i = 0; i < marks.size(); ++i) order.emplace_back(combining_class(marks[i]), i, marks[i]);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < marks.size(); ++i) marks[i] = std::get<2>(order[i]);
  }

  void flush(std::vector<utf8proc_int32_t>& run, std::string& out) const {
    for (std::size_t i = 0; i < run.size();) {  // marks in their canonical order
      if (combining_class(run[i]) == 0) {
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < run.size() && combining_class(run[end]) != 0) ++end;
      order_marks(std::span(run).subspan(i, end - i));
      i = end;
    }
    auto size = static_cast<utf8proc_ssize_t>(run.size());
    if (size > 0 && (form_ == UnicodeForm::nfc || form_ == UnicodeForm::nfkc)) {
      size = utf8proc_normalize_utf32(run.data(), size,
                                      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
      ensure(size > 0, "characters compose");
    }
    for (utf8proc_ssize_t i = 0; i < size; ++i)
      append_utf8(out, static_cast<char32_t>(run[static_cast<std::size_t>(i)]));
    run.clear();
  }

  UnicodeForm form_;
};

class Bert : public Normalizer {
 public:
  explicit Bert(const BertNormalizer& options) : options_(options) {}
  std::string apply(std::string text) const override { return bert_normalize(text, options_); }

 private:
  BertNormalizer options_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string apply(std::string text) const override {
    std::string_view rest = text;
    for (std::size_t at = 0; left_ && !rest.empty() && is_white_space(next_code_point(rest, at)); at = 0)
      rest.remove_prefix(at);
    while (right_ && !rest.empty() && is_white_space(previous_code_point(rest, rest.size()))) {
      std::size_t size = 1;
      while ((static_cast<unsigned char>(rest[rest.size() - size]) & 0xC0) == 0x80) ++size;
      rest.remove_suffix(size);
    }
    return std::string(rest);
  }

 private:
  bool left_, right_;
};

// Keeps or changes characters one by one.
template <class Change>
class Characters : public Normalizer {
 public:
  explicit Characters(Change change) : change_(change) {}
  std::string apply(std::string text) const override {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      if (const char32_t c = change_(next_code_point(text, at)); c != dropped) append_utf8(out, c);
    }
    return out;
  }
  static constexpr char32_t dropped = 0xFFFFFFFF;

 private:
  Change change_;
};

bool is_mark(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
}

char32_t without_mark(char32_t c) { return is_mark(c) ? 0xFFFFFFFF : c; }

char32_t nmt_character(char32_t c) {
  if ((c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
    return 0xFFFFFFFF;
  if (c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
      c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD)
    return ' ';
  return c;
}

}  // namespace

std::unique_ptr<Normalizer> prepend_text(std::string prefix) { return std::make_unique<Prepend>(std::move(prefix)); }
std::unique_ptr<Normalizer> replace_text(std::string from, std::string to) {
  return std::make_unique<ReplaceText>(std::move(from), std::move(to));
}
std::unique_ptr<Normalizer> replace_pattern(const Pattern& pattern, std::string to) {
  return std::make_unique<ReplacePattern>(pattern, std::move(to));
}
std::unique_ptr<Normalizer> unicode_form(UnicodeForm form) { return std::make_unique<UnicodeNormalizer>(form); }
std::unique_ptr<Normalizer> lowercase() {
  return bert_normalizer({.clean_text = false, .handle_chinese_chars = false, .strip_accents = false});
}
std::unique_ptr<Normalizer> strip_blanks(bool left, bool right) { return std::make_unique<Strip>(left, right); }
std::unique_ptr<Normalizer> strip_accents() {
  return std::make_unique<Characters<char32_t (*)(char32_t)>>(&without_mark);
}
std::unique_ptr<Normalizer> nmt_blanks() {
  return std::make_unique<Characters<char32_t (*)(char32_t)>>(&nmt_character);
}
std::unique_ptr<Normalizer> bert_normalizer(const BertNormalizer& options) { return std::make_unique<Bert>(options); }

}  // namespace rlx
