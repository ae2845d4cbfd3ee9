// WordPieceTokenizer from files: tokenizer.json, or vocab.txt with tokenizer_config.json.
#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "core/error.h"
#include "text/json_fields.h"
#include "text/unicode.h"
#include "text/wordpiece.h"

namespace rlx {

namespace {

constexpr Index most_id = 2147483647;

void require_type(const JsonValue& object, std::string_view type) {
  const JsonValue value = object.at("type");
  if (value.as_string() != type) value.fail_expected(fmt::format("\"{}\"", type));
}

std::optional<BertNormalizer> read_normalizer(const JsonValue& value) {
  if (value.is_null()) return std::nullopt;
  require_type(value, "BertNormalizer");
  require_known(value, {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"});
  BertNormalizer out;
  out.clean_text = value.at("clean_text").as_bool();
  out.handle_chinese_chars = value.at("handle_chinese_chars").as_bool();
  out.lowercase = value.at("lowercase").as_bool();
  const std::optional<JsonValue> strip = value.find("strip_accents");
  out.strip_accents = strip && !strip->is_null() ? strip->as_bool() : out.lowercase;
  return out;
}

void read_model(const JsonValue& model, WordPieceSpec& spec) {
  require_type(model, "WordPiece");
  require_known(model, {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  spec.unk_token = model.at("unk_token").as_string();
  spec.continuing_prefix = model.at("continuing_subword_prefix").as_string();
  spec.max_word_characters = model.at("max_input_chars_per_word").as_index(0, most_id);
  const JsonValue vocab = model.at("vocab");
  spec.vocab.reserve(static_cast<std::size_t>(vocab.size()));
  for (const JsonMember& m : vocab.members()) spec.vocab.emplace_back(m.key, m.value.as_index(0, most_id));
}

AddedToken read_added(const JsonValue& value) {
  require_known(value, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken out;
  out.content = value.at("content").as_string();
  out.single_word = value.at("single_word").as_bool();
  out.lstrip = value.at("lstrip").as_bool();
  out.rstrip = value.at("rstrip").as_bool();
  out.normalized = value.at("normalized").as_bool();
  value.at("special").as_bool();
  return out;
}

void read_template(const JsonValue& value, WordPieceSpec& spec) {
  require_known(value, {"type", "single", "pair", "special_tokens"});
  const JsonValue special_tokens = value.at("special_tokens");
  bool seen_text = false;
  for (const JsonValue& item : value.at("single").elements()) {
    if (!item.is_object() || item.size() != 1) item.fail_expected("one of SpecialToken or Sequence");
    const JsonMember part = *item.members().begin();
    if (part.key != "SpecialToken" && part.key != "Sequence") part.value.fail_expected("SpecialToken or Sequence");
    require_known(part.value, {"id", "type_id"});
    part.value.at("type_id").as_index(0, 0);
    const JsonValue id = part.value.at("id");
    if (part.key == "Sequence") {
      if (seen_text || id.as_string() != "A") id.fail_expected("\"A\", once");
      seen_text = true;
      continue;
    }
    const JsonValue special = special_tokens.at(id.as_string());
    for (const JsonValue& number : special.at("ids").elements()) {
      (seen_text ? spec.after : spec.before).push_back(number.as_index(0, most_id));
    }
  }
  if (!seen_text) value.at("single").fail_expected("a Sequence \"A\"");
}

void read_post_processor(const JsonValue& value, WordPieceSpec& spec) {
  if (value.is_null()) return;
  const JsonValue type = value.at("type");
  if (type.as_string() == "TemplateProcessing") {
    read_template(value, spec);
  } else if (type.as_string() == "BertProcessing") {
    require_known(value, {"type", "sep", "cls"});
    spec.before = {read_token_id(value.at("cls"), most_id)};
    spec.after = {read_token_id(value.at("sep"), most_id)};
  } else {
    type.fail_expected("\"TemplateProcessing\" or \"BertProcessing\"");
  }
}

std::optional<Index> find_id(const WordPieceSpec& spec, std::string_view token) {
  for (const auto& [text, id] : spec.vocab) {
    if (text == token) return id;
  }
  for (const AddedToken& added : spec.added) {
    if (added.content == token) return added.id;
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, Index>> read_lines(std::string_view text) {
  std::vector<std::pair<std::string, Index>> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto id = static_cast<Index>(out.size());
    require(is_valid_utf8(line), "vocab.txt: line {} is not UTF-8", id + 1);
    require(id < 4'000'000, "vocab.txt: more than 4000000 lines, the most that are read");
    out.emplace_back(line, id);
    at = end + 1;
  }
  return out;
}

// A special token of tokenizer_config.json: a string, or an object with the string as its content.
std::optional<std::string> read_special(const JsonValue& config, std::string_view key) {
  const std::optional<JsonValue> value = config.find(key);
  if (!value || value->is_null()) return std::nullopt;
  return std::string((value->is_object() ? value->at("content") : *value).as_string());
}

// The tokens that tokenizer_config.json spells out, in the order of their ids.
void read_added_decoder(const JsonValue& table, WordPieceSpec& spec) {
  std::map<Index, AddedToken> ordered;
  for (const JsonMember& m : table.members()) {
    Index id = 0;
    for (const char c : m.key) {
      if (c < '0' || c > '9' || id > most_id / 10) m.value.fail_expected("a whole number as its name");
      id = id * 10 + (c - '0');
    }
    AddedToken token = read_added(m.value);
    token.id = id;
    if (m.key.empty() || !ordered.emplace(id, std::move(token)).second)
      m.value.fail_expected("a number of its own as its name");
  }
  for (auto& [id, token] : ordered) spec.added.push_back(std::move(token));
}

void read_config(const JsonValue& config, WordPieceSpec& spec) {
  const std::string type = config.get_or("tokenizer_class", "BertTokenizer");
  static const std::set<std::string_view> known_types = {
      "BertTokenizer",    "BertTokenizerFast",    "DistilBertTokenizer", "DistilBertTokenizerFast",
      "ElectraTokenizer", "ElectraTokenizerFast", "MobileBertTokenizer", "MobileBertTokenizerFast"};
  if (!known_types.contains(type)) config.at("tokenizer_class").fail_expected("BertTokenizer or a relative of it");
  if (!config.get_or("do_basic_tokenize", true)) config.at("do_basic_tokenize").fail_expected("true");
  const std::optional<JsonValue> never = config.find("never_split");
  if (never && !never->is_null() && never->size() > 0) never->fail_expected("null or []");
  const std::optional<JsonValue> side = config.find("truncation_side");
  if (side && side->as_string() != "right") side->fail_expected("\"right\"");

  BertNormalizer normalizer;
  normalizer.lowercase = config.get_or("do_lower_case", true);
  normalizer.handle_chinese_chars = config.get_or("tokenize_chinese_chars", true);
  const std::optional<JsonValue> strip = config.find("strip_accents");
  normalizer.strip_accents = strip && !strip->is_null() ? strip->as_bool() : normalizer.lowercase;
  spec.normalizer = normalizer;

  const std::optional<JsonValue> decoder = config.find("added_tokens_decoder");
  if (decoder) read_added_decoder(*decoder, spec);
  const auto special = [&](std::string_view key, std::string fallback, bool needed) -> std::optional<Index> {
    const std::optional<std::string> named = read_special(config, key);
    const std::string content = named.value_or(std::move(fallback));
    const std::optional<Index> id = find_id(spec, content);
    require(id || !(needed || named), "{}: {} \"{}\" is not in the vocab, expected one of its tokens", spec.name, key,
            content);
    if (id && !decoder) {
      const auto same = [&](const AddedToken& t) { return t.content == content; };
      if (std::none_of(spec.added.begin(), spec.added.end(), same)) spec.added.push_back({content, *id});
    }
    return id;
  };
  spec.unk_token = read_special(config, "unk_token").value_or(spec.unk_token);
  special("unk_token", "[UNK]", true);
  spec.after = {*special("sep_token", "[SEP]", true)};
  spec.pad = special("pad_token", "[PAD]", false);
  spec.before = {*special("cls_token", "[CLS]", true)};
  special("mask_token", "[MASK]", false);
}

}  // namespace

WordPieceTokenizer WordPieceTokenizer::from_json(std::string_view text, std::string_view name) {
  const JsonDocument doc = JsonDocument::parse(text, name);
  const JsonValue root = doc.root();
  require_known(root, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                       "post_processor", "decoder", "model"});
  WordPieceSpec spec;
  spec.name = name;
  const JsonValue version = root.at("version");
  if (version.as_string() != "1.0") version.fail_expected("\"1.0\"");
  spec.normalizer = read_normalizer(root.at("normalizer"));
  const JsonValue pre_tokenizer = root.at("pre_tokenizer");
  require_type(pre_tokenizer, "BertPreTokenizer");
  require_known(pre_tokenizer, {"type"});
  read_model(root.at("model"), spec);
  for (const JsonValue& value : root.at("added_tokens").elements()) {
    AddedToken token = read_added(value);
    token.id = value.at("id").as_index(0, most_id);
    spec.added.push_back(std::move(token));
  }
  read_post_processor(root.at("post_processor"), spec);
  const std::optional<JsonValue> padding = root.find("padding");
  if (padding && !padding->is_null()) {
    spec.pad = padding->at("pad_id").as_index(0, most_id);
  } else {
    spec.pad = find_id(spec, "[PAD]");
  }
  return WordPieceTokenizer(spec);
}

WordPieceTokenizer WordPieceTokenizer::from_vocab(std::string_view vocab, std::string_view config) {
  WordPieceSpec spec;
  spec.name = "vocab.txt";
  spec.vocab = read_lines(vocab);
  const JsonDocument doc = JsonDocument::parse(config, "tokenizer_config.json");
  read_config(doc.root(), spec);
  return WordPieceTokenizer(spec);
}

WordPieceTokenizer WordPieceTokenizer::load(const std::filesystem::path& folder) {
  std::error_code none;
  const std::filesystem::path json = folder / "tokenizer.json", config = folder / "tokenizer_config.json";
  if (std::filesystem::exists(json, none)) return from_json(read_bounded_file(json), json.string());
  require(std::filesystem::exists(folder / "vocab.txt", none), "{} holds neither tokenizer.json nor vocab.txt",
          folder.string());
  return from_vocab(read_bounded_file(folder / "vocab.txt"),
                    std::filesystem::exists(config, none) ? read_bounded_file(config) : "{}");
}

}  // namespace rlx
