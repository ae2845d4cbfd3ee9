// Pre-tokenizers: what finds the cuts, and what is done with the stretches between them.
#include "text/splitters.h"

#include <utility>

#include "core/error.h"
#include "text/bert_text.h"
#include "text/byte_spelling.h"
#include "text/unicode.h"

namespace rlx {

const char* const gpt2_pattern = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

// Turns found stretches, in order, into pieces by a behavior. Empty pieces are dropped.
class Cutter {
 public:
  Cutter(std::string_view text, bool first, SplitBehavior behavior, bool invert, const Splitter::Sink& sink)
      : text_(text), first_(first), behavior_(behavior), invert_(invert), sink_(sink) {}

  /// The next stretch that the pattern matches, and what lies before it.
  void found(std::size_t begin, std::size_t end) {
    if (begin > done_) part(done_, begin, invert_);
    if (end > begin) part(begin, end, !invert_);
    done_ = end;
  }
  void finish() {
    if (done_ < text_.size()) part(done_, text_.size(), invert_);
    if (waiting_) emit(from_, to_);
  }

 private:
  void emit(std::size_t begin, std::size_t end) {
    if (end > begin) sink_(text_.substr(begin, end - begin), first_ && begin == 0);
  }
  void part(std::size_t begin, std::size_t end, bool match) {
    switch (behavior_) {
      case SplitBehavior::removed:
        if (!match) emit(begin, end);
        return;
      case SplitBehavior::isolated:
        return emit(begin, end);
      case SplitBehavior::contiguous:  // neighbours of one kind stay together
        return join(begin, end, match, waiting_ && match == kind_);
      case SplitBehavior::merged_with_previous:  // a match goes to the stretch before it, unless that is a match too
        return join(begin, end, match, waiting_ && match && !kind_);
      case SplitBehavior::merged_with_next:  // a stretch takes the match before it
        return join(begin, end, match, waiting_ && !match && kind_);
    }
  }
  void join(std::size_t begin, std::size_t end, bool match, bool together) {
    if (together) {
      to_ = end;
    } else {
      if (waiting_) emit(from_, to_);
      from_ = begin;
      to_ = end;
    }
    waiting_ = true;
    kind_ = match;
  }

  std::string_view text_;
  bool first_;
  SplitBehavior behavior_;
  bool invert_;
  const Splitter::Sink& sink_;
  std::size_t done_ = 0, from_ = 0, to_ = 0;
  bool waiting_ = false, kind_ = false;
};

class PatternSplitter : public Splitter {
 public:
  PatternSplitter(Pattern pattern, SplitBehavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  std::unique_ptr<State> state() const override { return std::make_unique<Own>(pattern_); }

  void split(std::string_view piece, bool first, State& state, Sink sink) const override {
    auto& matcher = static_cast<Own&>(state).matcher;
    Cutter cut(piece, first, behavior_, invert_, sink);
    for (std::size_t at = 0; at < piece.size();) {
      const std::optional<PatternMatch> match = matcher.next(piece, at);
      if (!match) break;
      cut.found(match->begin, match->end);
      at = match->end;
      if (match->end == match->begin && at < piece.size()) next_code_point(piece, at);
    }
    cut.finish();
  }

 private:
  struct Own : State {
    explicit Own(const Pattern& pattern) : matcher(pattern) {}
    Pattern::Matcher matcher;
  };
  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class TextSplitter : public Splitter {
 public:
  TextSplitter(std::string text, SplitBehavior behavior, bool invert)
      : text_(std::move(text)), behavior_(behavior), invert_(invert) {}

  void split(std::string_view piece, bool first, State&, Sink sink) const override {
    Cutter cut(piece, first, behavior_, invert_, sink);
    for (std::size_t at = 0; !text_.empty() && (at = piece.find(text_, at)) != std::string_view::npos;) {
      cut.found(at, at + text_.size());
      at += text_.size();
    }
    cut.finish();
  }

 private:
  std::string text_;
  SplitBehavior behavior_;
  bool invert_;
};

class CharacterSplitter : public Splitter {
 public:
  CharacterSplitter(bool (*predicate)(char32_t), SplitBehavior behavior) : predicate_(predicate), behavior_(behavior) {}

  void split(std::string_view piece, bool first, State&, Sink sink) const override {
    Cutter cut(piece, first, behavior_, false, sink);
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t begin = at;
      if (predicate_(next_code_point(piece, at))) cut.found(begin, at);
    }
    cut.finish();
  }

 private:
  bool (*predicate_)(char32_t);
  SplitBehavior behavior_;
};

class WordSplitter : public Splitter {
 public:
  void split(std::string_view piece, bool first, State&, Sink sink) const override {
    enum class Kind : std::uint8_t { blank, word, other };
    Kind last = Kind::blank;
    std::size_t begin = 0;
    const auto emit = [&](std::size_t end) {
      if (last != Kind::blank && end > begin) sink(piece.substr(begin, end - begin), first && begin == 0);
    };
    for (std::size_t at = 0; at < piece.size();) {
      const std::size_t here = at;
      const char32_t c = next_code_point(piece, at);
      const Kind kind = is_word_character(c) ? Kind::word : is_white_space(c) ? Kind::blank : Kind::other;
      if (kind == last) continue;
      emit(here);
      begin = here;
      last = kind;
    }
    emit(piece.size());
  }
};

class BertSplitter : public Splitter {
 public:
  void split(std::string_view piece, bool first, State&, Sink sink) const override {
    BertWords words(piece);
    while (const std::optional<std::string_view> word = words.next())
      sink(*word, first && word->data() == piece.data());
  }
};

class LeadingSpace : public Splitter {
 public:
  void split(std::string_view piece, bool first, State&, Sink sink) const override {
    std::size_t at = 0;
    if (is_white_space(next_code_point(piece, at))) return sink(piece, first);
    const std::string longer = " " + std::string(piece);
    sink(longer, first);
  }
};

class ByteSpeller : public Splitter {
 public:
  void split(std::string_view piece, bool first, State&, Sink sink) const override {
    std::string out;
    for (const char c : piece) append_utf8(out, byte_character(static_cast<std::uint8_t>(c)));
    sink(out, first);
  }
};

class Metaspace : public Splitter {
 public:
  Metaspace(std::string mark, PrependScheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  void split(std::string_view piece, bool first, State&, Sink sink) const override {
    std::string text;
    for (const char c : piece) c == ' ' ? text += mark_ : text += c;
    const bool prepend = scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && first);
    if (prepend && !text.starts_with(mark_)) text.insert(0, mark_);
    if (!split_) return sink(text, first);
    Cutter cut(text, first, SplitBehavior::merged_with_next, false, sink);
    for (std::size_t at = 0; (at = text.find(mark_, at)) != std::string::npos; at += mark_.size()) {
      cut.found(at, at + mark_.size());
    }
    cut.finish();
  }

 private:
  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

}  // namespace

std::unique_ptr<Splitter> split_at_pattern(const Pattern& pattern, SplitBehavior behavior, bool invert) {
  return std::make_unique<PatternSplitter>(pattern, behavior, invert);
}
std::unique_ptr<Splitter> split_at_text(std::string text, SplitBehavior behavior, bool invert) {
  return std::make_unique<TextSplitter>(std::move(text), behavior, invert);
}
std::unique_ptr<Splitter> split_at_characters(bool (*predicate)(char32_t), SplitBehavior behavior) {
  return std::make_unique<CharacterSplitter>(predicate, behavior);
}
std::unique_ptr<Splitter> split_words() { return std::make_unique<WordSplitter>(); }
std::unique_ptr<Splitter> split_bert() { return std::make_unique<BertSplitter>(); }
std::unique_ptr<Splitter> add_leading_space() { return std::make_unique<LeadingSpace>(); }
std::unique_ptr<Splitter> spell_bytes() { return std::make_unique<ByteSpeller>(); }
std::unique_ptr<Splitter> metaspace(std::string mark, PrependScheme scheme, bool split) {
  require(!mark.empty(), "the mark for blanks is empty, expected a character");
  return std::make_unique<Metaspace>(std::move(mark), scheme, split);
}

SplitterChain::SplitterChain(const std::vector<std::unique_ptr<Splitter>>& stages) : stages_(stages) {
  for (const auto& stage : stages_) states_.push_back(stage->state());
}

void SplitterChain::run(std::string_view text, bool first, FunctionRef<void(std::string_view)> sink) {
  if (!text.empty()) run_from(0, text, first, sink);
}

void SplitterChain::run_from(std::size_t stage, std::string_view piece, bool first,
                             FunctionRef<void(std::string_view)> sink) {
  if (stage == stages_.size()) return sink(piece);
  stages_[stage]->split(piece, first, *states_[stage],
                        [&](std::string_view part, bool part_first) { run_from(stage + 1, part, part_first, sink); });
}

}  // namespace rlx
