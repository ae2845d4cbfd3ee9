// Decoders of tokenizer.json as a text for each token and a rule for the first.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "text/byte_spelling.h"
#include "text/json_fields.h"
#include "text/tokenizer_stages.h"
#include "text/unicode.h"

namespace rlx {

namespace {

// What the stages do, collected.
struct Decoding {
  enum class Kind : std::uint8_t { words, spelt, bytes, wordpiece, marks } kind = Kind::words;
  std::vector<std::pair<std::string, std::string>> replacements;
  bool byte_fallback = false, fused = false, tidy = false;
  std::string prefix, mark;
  bool first_loses_marks = false;
  int strip = 0;
};

void read_stage(const JsonValue& value, Decoding& d) {
  const JsonValue type = value.at("type");
  const std::string_view name = type.as_string();
  const auto only = [&](Decoding::Kind kind) {
    if (d.kind != Decoding::Kind::spelt) type.fail_expected("no second stage that joins tokens");
    d.kind = kind;
  };
  if (d.strip > 0) type.fail_expected("nothing behind Strip");
  if (name == "ByteLevel") {
    require_known(value, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    only(Decoding::Kind::bytes);
  } else if (name == "WordPiece") {
    require_known(value, {"type", "prefix", "cleanup"});
    only(Decoding::Kind::wordpiece);
    d.prefix = value.at("prefix").as_string();
    d.tidy = value.at("cleanup").as_bool();
  } else if (name == "Metaspace") {
    require_known(value, {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"});
    only(Decoding::Kind::marks);
    d.mark = value.at("replacement").as_string();
    if (d.mark.empty()) value.at("replacement").fail_expected("a character");
    const std::optional<JsonValue> scheme = value.find("prepend_scheme");
    d.first_loses_marks = scheme ? scheme->as_string() != "never" : value.get_or("add_prefix_space", true);
  } else if (name == "Replace") {
    require_known(value, {"type", "pattern", "content"});
    const JsonValue from = value.at("pattern").at("String");
    if (d.fused) type.fail_expected("no Replace behind Fuse");
    if (from.as_string().empty()) from.fail_expected("some text");
    d.replacements.emplace_back(from.as_string(), value.at("content").as_string());
  } else if (name == "Strip") {
    require_known(value, {"type", "content", "start", "stop"});
    if (!d.fused) type.fail_expected("Strip behind Fuse");
    if (value.at("content").as_string() != " ") value.at("content").fail_expected("\" \"");
    value.at("stop").as_index(0, 0);
    d.strip = static_cast<int>(value.at("start").as_index(0, 1000));
  } else if (name == "ByteFallback") {
    require_known(value, {"type"});
    d.byte_fallback = true;
  } else if (name == "Fuse") {
    require_known(value, {"type"});
    d.fused = true;
  } else {
    type.fail_expected("ByteFallback, ByteLevel, Fuse, Metaspace, Replace, Sequence, Strip or WordPiece");
  }
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  return replace_text(std::string(from), std::string(to))->apply(std::move(text));
}

std::string tidied(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : rules) text = replaced(std::move(text), from, to);
  return text;
}

std::string text_of(std::string_view token, const Decoding& d) {
  std::string text(token);
  for (const auto& [from, to] : d.replacements) text = replaced(std::move(text), from, to);
  switch (d.kind) {
    case Decoding::Kind::words:
      return " " + text;
    case Decoding::Kind::spelt:
      return text;
    case Decoding::Kind::bytes: {
      std::optional<std::string> bytes = spelt_bytes(text);
      return bytes ? std::move(*bytes) : text;
    }
    case Decoding::Kind::wordpiece:
      text = text.starts_with(d.prefix) ? text.substr(d.prefix.size()) : " " + text;
      return d.tidy ? tidied(std::move(text)) : text;
    case Decoding::Kind::marks:
      return replaced(std::move(text), d.mark, " ");
  }
  return text;
}

}  // namespace

void read_decoder(const JsonValue& value, const std::vector<std::uint8_t>& verbatim, TokenizerParts& p) {
  Decoding d;
  if (!value.is_null()) {
    d.kind = Decoding::Kind::spelt;
    if (value.at("type").as_string() == "Sequence") {
      require_known(value, {"type", "decoders"});
      if (value.at("decoders").size() > 16) value.at("decoders").fail_expected("at most 16 stages");
      for (const JsonValue& stage : value.at("decoders").elements()) read_stage(stage, d);
    } else {
      read_stage(value, d);
    }
  }
  const bool separates = d.kind == Decoding::Kind::words || d.kind == Decoding::Kind::wordpiece;
  for (std::size_t i = 0; i < p.tokens.size(); ++i) {
    const std::optional<std::uint8_t> byte = d.byte_fallback ? byte_token(p.tokens[i]) : std::nullopt;
    if (byte) {
      const char c = static_cast<char>(*byte);
      p.texts.add(std::string_view(&c, 1));
      if (p.kinds[i] == TokenKind::normal) p.kinds[i] = TokenKind::byte;
    } else {
      // Added tokens stand for themselves where bytes are spelt; elsewhere they are decoded as all others.
      p.texts.add(verbatim[i] != 0 && d.kind == Decoding::Kind::bytes ? std::string(p.tokens[i])
                                                                      : text_of(p.tokens[i], d));
    }
  }
  if (separates) {
    p.first = FirstToken::spelt;
  } else if (d.kind == Decoding::Kind::marks && d.first_loses_marks) {
    p.first = FirstToken::no_marks;
    p.mark = d.mark;
  } else if (d.strip > 0) {
    p.first = FirstToken::strip;
    p.strip = d.strip;
  }
}

}  // namespace rlx
