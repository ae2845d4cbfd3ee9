// BERT normalisation as one pass over code points; only runs of combining characters wait to be sorted.
#include "text/bert_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "text/bert_tables.h"
#include "text/unicode.h"

namespace rlx {

namespace {

template <class Range>
const Range* find_range(std::span<const Range> ranges, char32_t c) {
  const auto it = std::partition_point(ranges.begin(), ranges.end(), [&](const Range& r) { return r.last < c; });
  return it != ranges.end() && it->first <= c ? &*it : nullptr;
}

bool is_chinese(char32_t c) {
  static constexpr CodeRange ranges[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},  {0x20000, 0x2A6DF},
                                         {0x2A700, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return c >= 0x3400 && find_range(std::span<const CodeRange>(ranges), c) != nullptr;
}

bool is_punctuation(char32_t c) { return find_range(bert_tables.punctuation, c) != nullptr; }

class Normalization {
 public:
  explicit Normalization(const BertNormalizer& options) : options_(options) {}

  std::string operator()(std::string_view text) {
    out_.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) clean(next_code_point(text, at));
    flush();
    return std::move(out_);
  }

 private:
  void clean(char32_t c) {
    if (options_.clean_text) {
      if (is_white_space(c) && (c == '\t' || c == '\n' || c == '\r' || !find_range(bert_tables.removed, c))) {
        c = ' ';
      } else if (find_range(bert_tables.removed, c)) {
        return;
      }
    }
    if (options_.handle_chinese_chars && is_chinese(c)) {
      decompose(' ');
      decompose(c);
      decompose(' ');
    } else {
      decompose(c);
    }
  }

  void decompose(char32_t c) {
    if (!options_.strip_accents) return lower(c);
    if (c < 0x80 || find_range(bert_tables.inert, c)) return order(c, 0);
    utf8proc_int32_t parts[8];
    int boundary = UTF8PROC_BOUNDCLASS_START;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 8, UTF8PROC_DECOMPOSE, &boundary);
    ensure(count > 0 && count <= 8, "a code point decomposes into one to eight");
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      order(static_cast<char32_t>(parts[i]), utf8proc_get_property(parts[i])->combining_class);
    }
  }

  // Marks are dropped in the end, so only other combining characters need their place in the canonical order.
  void order(char32_t c, int combining_class) {
    if (combining_class == 0) flush();
    if (c >= 0x80 && find_range(bert_tables.mark, c)) return;
    if (combining_class == 0) return lower(c);
    run_.push_back({combining_class, run_.size(), c});
  }

  void flush() {
    if (run_.empty()) return;
    std::sort(run_.begin(), run_.end(), [](const Combining& a, const Combining& b) {
      return std::tie(a.combining_class, a.place) < std::tie(b.combining_class, b.place);
    });
    for (const Combining& waiting : run_) lower(waiting.character);
    run_.clear();
  }

  void lower(char32_t c) {
    if (!options_.lowercase) return append_utf8(out_, c);
    if (c < 0x80) {
      out_ += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    } else if (c == 0x130) {  // the only one that becomes two: i with dot above
      out_ += "i\u0307";
    } else if (const CodeShift* shift = find_range(bert_tables.lower, c)) {
      append_utf8(out_, static_cast<char32_t>(static_cast<std::int32_t>(c) + shift->distance));
    } else {
      append_utf8(out_, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  }

  BertNormalizer options_;
  std::string out_;
  struct Combining {
    int combining_class;
    std::size_t place;
    char32_t character;
  };
  std::vector<Combining> run_;
};

}  // namespace

std::string bert_normalize(std::string_view text, const BertNormalizer& options) {
  return Normalization(options)(text);
}

std::optional<std::string_view> BertWords::next() {
  for (std::size_t start = at_; at_ < text_.size();) {
    const std::size_t here = at_;
    const char32_t c = next_code_point(text_, at_);
    const bool blank = is_white_space(c), alone = is_punctuation(c);
    if (!blank && !alone) {
      if (at_ == text_.size()) return text_.substr(start);
      continue;
    }
    if (here > start) {  // the word ends before this character
      if (alone) at_ = here;
      return text_.substr(start, here - start);
    }
    if (alone) return text_.substr(here, at_ - here);
    start = at_;
  }
  return std::nullopt;
}

}  // namespace rlx
