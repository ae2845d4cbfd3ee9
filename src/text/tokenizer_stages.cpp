// Reading stages: each type with exactly the fields that it may have.
#include "text/tokenizer_stages.h"

#include <array>
#include <utility>

#include "core/error.h"
#include "text/bert_tables.h"
#include "text/json_fields.h"
#include "text/unicode.h"

namespace rlx {

namespace {

constexpr std::size_t most_stages = 64;

std::string_view type_of(const JsonValue& value) { return value.at("type").as_string(); }

std::string read_base64(const JsonValue& value) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : value.as_string()) {
    const int digit = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (c == '=') break;
    if (digit < 0) value.fail_expected("base64");
    bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xFFFFFF;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(static_cast<unsigned char>(bits >> count & 0xFF));
  }
  return out;
}

// {"String": "x"} or {"Regex": "x"}
std::pair<std::string, bool> read_pattern(const JsonValue& value) {
  if (value.is_string()) return {std::string(value.as_string()), false};
  require_known(value, {"String", "Regex"});
  if (value.size() != 1) value.fail_expected("one of String or Regex");
  const bool regex = value.find("Regex").has_value();
  return {std::string(value.at(regex ? "Regex" : "String").as_string()), regex};
}

BertNormalizer read_bert(const JsonValue& value) {
  require_known(value, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  BertNormalizer out;
  out.clean_text = value.get_or("clean_text", true);
  out.handle_chinese_chars = value.get_or("handle_chinese_chars", true);
  out.lowercase = value.get_or("lowercase", true);
  const std::optional<JsonValue> strip = find_value(value, "strip_accents");
  out.strip_accents = strip ? strip->as_bool() : out.lowercase;
  return out;
}

// Calls `read` for each stage, those of sequences too.
template <class Read>
void each_stage(const JsonValue& value, const char* list, std::size_t& count, const Read& read) {
  if (value.is_null()) return;
  if (++count > most_stages) value.fail_expected(fmt::format("at most {} stages", most_stages));
  if (type_of(value) != "Sequence") return read(value);
  require_known(value, {"type", list});
  for (const JsonValue& stage : value.at(list).elements()) each_stage(stage, list, count, read);
}

std::unique_ptr<Normalizer> read_normalizer(const JsonValue& value) {
  const std::string_view type = type_of(value);
  if (type == "BertNormalizer") return bert_normalizer(read_bert(value));
  if (type == "Prepend") {
    require_known(value, {"type", "prepend"});
    return prepend_text(std::string(value.at("prepend").as_string()));
  }
  if (type == "Replace") {
    require_known(value, {"type", "pattern", "content"});
    const auto [pattern, regex] = read_pattern(value.at("pattern"));
    std::string content(value.at("content").as_string());
    if (regex) return replace_pattern(Pattern(pattern, value.path()), std::move(content));
    return replace_text(pattern, std::move(content));
  }
  if (type == "Strip") {
    require_known(value, {"type", "strip_left", "strip_right"});
    return strip_blanks(value.at("strip_left").as_bool(), value.at("strip_right").as_bool());
  }
  if (type == "Precompiled") {
    require_known(value, {"type", "precompiled_charsmap"});
    return map_graphemes(CharacterMap(read_base64(value.at("precompiled_charsmap")), value.path()));
  }
  require_known(value, {"type"});
  if (type == "NFC") return unicode_form(UnicodeForm::nfc);
  if (type == "NFD") return unicode_form(UnicodeForm::nfd);
  if (type == "NFKC") return unicode_form(UnicodeForm::nfkc);
  if (type == "NFKD") return unicode_form(UnicodeForm::nfkd);
  if (type == "Lowercase") return lowercase();
  if (type == "StripAccents") return strip_accents();
  if (type == "Nmt") return nmt_blanks();
  value.at("type").fail_expected(
      "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Nmt, Precompiled, Prepend, Replace, Sequence, Strip or "
      "StripAccents");
}

SplitBehavior read_behavior(const JsonValue& value) {
  return static_cast<SplitBehavior>(
      read_choice(value, {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"}));
}

PrependScheme read_prepend(const JsonValue& value) {
  if (const std::optional<JsonValue> scheme = value.find("prepend_scheme"))
    return static_cast<PrependScheme>(read_choice(*scheme, {"never", "first", "always"}));
  return value.get_or("add_prefix_space", true) ? PrependScheme::always : PrependScheme::never;
}

std::string read_mark(const JsonValue& value) {
  const JsonValue mark = value.at("replacement");
  std::size_t at = 0;
  const std::string_view text = mark.as_string();
  if (!text.empty()) next_code_point(text, at);
  if (text.empty() || at != text.size()) mark.fail_expected("one character");
  return std::string(text);
}

bool is_punctuation(char32_t c) {
  const auto ranges = bert_tables.punctuation;
  const auto it = std::partition_point(ranges.begin(), ranges.end(), [&](const CodeRange& r) { return r.last < c; });
  return it != ranges.end() && it->first <= c;
}

void read_byte_level(const JsonValue& value, PreTokenizers& out) {
  require_known(value, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (value.get_or("add_prefix_space", true)) out.stages.push_back(add_leading_space());
  if (value.get_or("use_regex", true))
    out.stages.push_back(split_at_pattern(Pattern(gpt2_pattern, value.path()), SplitBehavior::isolated, false));
}

void read_pre_tokenizer(const JsonValue& value, PreTokenizers& out) {
  const std::string_view type = type_of(value);
  if (out.on_bytes) out.stages.push_back(spell_bytes());  // this stage sees the spelling
  out.on_bytes = false;
  const auto characters = [&](bool (*predicate)(char32_t), SplitBehavior behavior) {
    out.stages.push_back(split_at_characters(predicate, behavior));
  };
  if (type == "ByteLevel") {
    read_byte_level(value, out);
    out.on_bytes = true;
  } else if (type == "Split") {
    require_known(value, {"type", "pattern", "behavior", "invert"});
    const auto [pattern, regex] = read_pattern(value.at("pattern"));
    const SplitBehavior behavior = read_behavior(value.at("behavior"));
    const bool invert = value.get_or("invert", false);
    out.stages.push_back(regex ? split_at_pattern(Pattern(pattern, value.path()), behavior, invert)
                               : split_at_text(pattern, behavior, invert));
  } else if (type == "Digits") {
    require_known(value, {"type", "individual_digits"});
    const bool each = value.get_or("individual_digits", false);
    out.stages.push_back(split_at_pattern(Pattern(R"(\p{N})", value.path()),
                                          each ? SplitBehavior::isolated : SplitBehavior::contiguous, false));
  } else if (type == "Metaspace") {
    require_known(value, {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
    out.stages.push_back(metaspace(read_mark(value), read_prepend(value), value.get_or("split", true)));
  } else if (type == "Punctuation") {
    require_known(value, {"type", "behavior"});
    const std::optional<JsonValue> behavior = value.find("behavior");
    characters(is_punctuation, behavior ? read_behavior(*behavior) : SplitBehavior::isolated);
  } else if (type == "CharDelimiterSplit") {
    require_known(value, {"type", "delimiter"});
    out.stages.push_back(split_at_text(std::string(value.at("delimiter").as_string()), SplitBehavior::removed, false));
  } else {
    require_known(value, {"type"});
    if (type == "Whitespace") {
      out.stages.push_back(split_words());
    } else if (type == "WhitespaceSplit") {
      characters(is_white_space, SplitBehavior::removed);
    } else if (type == "BertPreTokenizer") {
      out.stages.push_back(split_bert());
    } else {
      value.at("type").fail_expected(
          "BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, Metaspace, Punctuation, Sequence, Split, "
          "Whitespace "
          "or WhitespaceSplit");
    }
  }
}

}  // namespace

std::vector<std::unique_ptr<Normalizer>> read_normalizers(const JsonValue& value) {
  std::vector<std::unique_ptr<Normalizer>> out;
  std::size_t count = 0;
  each_stage(value, "normalizers", count, [&](const JsonValue& stage) { out.push_back(read_normalizer(stage)); });
  return out;
}

PreTokenizers read_pre_tokenizers(const JsonValue& value, bool bytes_allowed) {
  PreTokenizers out;
  std::size_t count = 0;
  each_stage(value, "pretokenizers", count, [&](const JsonValue& stage) { read_pre_tokenizer(stage, out); });
  if (out.on_bytes && !bytes_allowed) {
    out.stages.push_back(spell_bytes());
    out.on_bytes = false;
  }
  return out;
}

namespace {

void read_template(const JsonValue& value, TokenizerParts& p) {
  require_known(value, {"type", "single", "pair", "special_tokens"});
  const JsonValue special_tokens = value.at("special_tokens");
  bool seen_text = false;
  for (const JsonValue& item : value.at("single").elements()) {
    if (!item.is_object() || item.size() != 1) item.fail_expected("one of SpecialToken or Sequence");
    const JsonMember part = *item.members().begin();
    if (part.key != "SpecialToken" && part.key != "Sequence") part.value.fail_expected("SpecialToken or Sequence");
    const JsonValue id = part.value.at("id");
    if (part.key == "Sequence") {
      if (seen_text || id.as_string() != "A") id.fail_expected("\"A\", once");
      seen_text = true;
      continue;
    }
    for (const JsonValue& number : special_tokens.at(id.as_string()).at("ids").elements()) {
      (seen_text ? p.after : p.before).push_back(static_cast<std::int32_t>(number.as_index(0, most_token_id)));
    }
  }
  if (!seen_text) value.at("single").fail_expected("a Sequence \"A\"");
}

}  // namespace

void read_post_processor(const JsonValue& value, TokenizerParts& p) {
  std::size_t count = 0;
  bool done = false;
  each_stage(value, "processors", count, [&](const JsonValue& stage) {
    const std::string_view type = type_of(stage);
    if (type == "ByteLevel") return;  // changes offsets only
    if (done) stage.fail_expected("only one stage that adds tokens");
    done = true;
    if (type == "TemplateProcessing") {
      read_template(stage, p);
    } else if (type == "BertProcessing" || type == "RobertaProcessing") {
      require_known(stage, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
      p.before = {static_cast<std::int32_t>(read_token_id(stage.at("cls")))};
      p.after = {static_cast<std::int32_t>(read_token_id(stage.at("sep")))};
    } else {
      stage.at("type").fail_expected("BertProcessing, ByteLevel, RobertaProcessing, Sequence or TemplateProcessing");
    }
  });
  for (const auto* ids : {&p.before, &p.after}) {
    for (const std::int32_t id : *ids) p.check(id);
  }
}

}  // namespace rlx
