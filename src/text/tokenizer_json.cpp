// A Tokenizer from tokenizer.json and tokenizer_config.json.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "text/bpe.h"
#include "text/byte_spelling.h"
#include "text/json_fields.h"
#include "text/tokenizer_parts.h"
#include "text/tokenizer_stages.h"
#include "text/unicode.h"
#include "text/unigram.h"

namespace rlx {

namespace {

constexpr std::size_t most_tokens = 4'000'000;

// One reading of a file.
class Reader {
 public:
  Reader(const JsonValue& root, const JsonValue& config, std::string_view name)
      : root_(root), config_(config), model_(root.at("model")), p_(std::make_shared<TokenizerParts>()) {
    p_->name = name;
  }

  std::shared_ptr<const TokenizerParts> operator()() {
    require_known(root_, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                          "post_processor", "decoder", "model"});
    if (const std::optional<JsonValue> version = find_value(root_, "version"); version && version->as_string() != "1.0")
      version->fail_expected("\"1.0\"");
    type_ = model_type();
    read_tokens();
    read_added();
    p_->normalizers = read_normalizers(optional(root_, "normalizer"));
    const bool decorated = find_text(model_, "continuing_subword_prefix") || find_text(model_, "end_of_word_suffix");
    PreTokenizers pre = read_pre_tokenizers(optional(root_, "pre_tokenizer"), type_ == "BPE" && !decorated);
    p_->splitters = std::move(pre.stages);
    read_model(pre.on_bytes);
    fill_added();
    read_post_processor(optional(root_, "post_processor"), *p_);
    read_decoder(optional(root_, "decoder"), verbatim_, *p_);
    read_config();
    p_->find_ends();
    return p_;
  }

 private:
  // A member, or null.
  JsonValue optional(const JsonValue& object, std::string_view key) {
    static const JsonDocument null = JsonDocument::parse("null");
    const std::optional<JsonValue> value = object.find(key);
    return value ? *value : null.root();
  }

  static bool find_text(const JsonValue& object, std::string_view key) {
    const std::optional<JsonValue> value = find_value(object, key);
    return value && !value->as_string().empty();
  }
  static std::string text_or(const JsonValue& object, std::string_view key, const char* fallback) {
    const std::optional<JsonValue> value = find_value(object, key);
    return std::string(value ? value->as_string() : fallback);
  }

  // Old files leave the type out.
  std::string model_type() {
    if (const std::optional<JsonValue> type = model_.find("type")) {
      const std::string_view text = type->as_string();
      if (text != "BPE" && text != "Unigram" && text != "WordPiece" && text != "WordLevel")
        type->fail_expected("BPE, Unigram, WordLevel or WordPiece");
      return std::string(text);
    }
    if (model_.find("merges")) return "BPE";
    if (model_.at("vocab").is_array()) return "Unigram";
    return model_.find("max_input_chars_per_word") ? "WordPiece" : "WordLevel";
  }

  void put_token(Index id, std::string_view text, const JsonValue& where) {
    const auto i = static_cast<std::size_t>(id);
    if (i >= by_id_.size()) by_id_.resize(i + 1);
    if (has_.size() < by_id_.size()) has_.resize(by_id_.size());
    if (has_[i] != 0) where.fail_expected("an id that no other token has");
    if (text.size() > 65535) where.fail_expected("a token of at most 65535 bytes");
    by_id_[i] = text;
    has_[i] = 1;
  }

  void read_tokens() {
    const JsonValue vocab = model_.at("vocab");
    const auto most = static_cast<Index>(most_tokens);
    if (vocab.size() > most) vocab.fail_expected(fmt::format("at most {} tokens", most));
    if (type_ != "Unigram") {
      for (const JsonMember& m : vocab.members()) put_token(m.value.as_index(0, most), m.key, m.value);
    } else {
      Index id = 0;
      for (const JsonValue& row : vocab.elements()) {
        if (!row.is_array() || row.size() != 2) row.fail_expected("a token and its score");
        put_token(id++, row.at(Index{0}).as_string(), row);
        const JsonValue score = row.at(Index{1});
        scores_.push_back(score.as_double());
        if (!std::isfinite(scores_.back())) score.fail_expected("a finite number");
      }
    }
    model_count_ = by_id_.size();
    vocab_ = TokenMap(by_id_.size());
    for (std::size_t i = 0; i < by_id_.size(); ++i) {
      if (has_[i] != 0) vocab_.set(by_id_[i], static_cast<std::int32_t>(i));
    }
  }

  void read_added() {
    verbatim_.assign(by_id_.size(), 0);
    special_.assign(by_id_.size(), 0);
    const std::optional<JsonValue> list = find_value(root_, "added_tokens");
    if (!list) return;
    for (const JsonValue& value : list->elements()) {
      require_known(value, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
      AddedToken token;
      token.content = value.at("content").as_string();
      token.id = value.at("id").as_index(0, static_cast<Index>(most_tokens) + 100'000);
      token.single_word = value.get_or("single_word", false);
      token.lstrip = value.get_or("lstrip", false);
      token.rstrip = value.get_or("rstrip", false);
      token.normalized = value.get_or("normalized", true);
      token.special = value.get_or("special", false);
      const std::int32_t known = vocab_.find(token.content);
      if (known >= 0 && known != token.id) value.at("id").fail_expected(fmt::format("{} as in the vocab", known));
      if (known < 0) put_token(token.id, value.at("content").as_string(), value.at("id"));
      const auto i = static_cast<std::size_t>(token.id);
      verbatim_.resize(by_id_.size());
      special_.resize(by_id_.size());
      verbatim_[i] = 1;
      special_[i] = token.special ? 1 : 0;
      added_.push_back(std::move(token));
    }
  }

  // The lists that all models share, once all tokens are known.
  void finish_tokens() {
    std::size_t bytes = 0;
    for (const std::string_view t : by_id_) bytes += t.size();
    p_->tokens.reserve(by_id_.size(), bytes);
    for (const std::string_view t : by_id_) p_->tokens.add(t);
    p_->by_text = TokenMap(by_id_.size());
    p_->kinds.assign(by_id_.size(), TokenKind::normal);
    has_.resize(by_id_.size());
    for (std::size_t i = 0; i < by_id_.size(); ++i) {
      if (has_[i] == 0) {
        p_->kinds[i] = TokenKind::unused;
      } else {
        p_->by_text.set(p_->tokens[i], static_cast<std::int32_t>(i));
        if (verbatim_[i] != 0) p_->kinds[i] = special_[i] != 0 ? TokenKind::control : TokenKind::user_defined;
      }
    }
  }

  std::optional<std::int32_t> find_token(const JsonValue& value) const {
    const std::int32_t id = p_->by_text.find(value.as_string());
    if (id < 0) value.fail_expected("a token of the vocab");
    return id;
  }

  void fill_byte_tokens(ByteIds& bytes) const {
    bytes.fill(-1);
    for (int b = 0; b < 256; ++b) bytes[static_cast<std::size_t>(b)] = vocab_.find(fmt::format("<0x{:02X}>", b));
  }

  void read_model(bool on_bytes) {
    finish_tokens();
    if (type_ == "BPE") return read_bpe(on_bytes);
    if (type_ == "Unigram") return read_unigram();
    if (type_ == "WordPiece") return read_wordpiece();
    require_known(model_, {"type", "vocab", "unk_token"});
    const std::optional<JsonValue> unk = find_value(model_, "unk_token");
    const std::int32_t id = unk ? vocab_.find(unk->as_string()) : -1;
    p_->unk = id < 0 ? std::nullopt : std::optional(id);
    keep_model_tokens();
    p_->model = make_word_level(p_->model_tokens, p_->unk);
  }

  // What the model may look up: not the tokens that were only added.
  void keep_model_tokens() {
    p_->model_tokens = TokenMap(model_count_);
    for (std::size_t i = 0; i < model_count_; ++i) {
      if (has_[i] != 0 && vocab_.find(p_->tokens[i]) == static_cast<std::int32_t>(i))
        p_->model_tokens.set(p_->tokens[i], static_cast<std::int32_t>(i));
    }
  }

  void read_bpe(bool on_bytes) {
    require_known(model_, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                           "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
    if (const std::optional<JsonValue> dropout = find_value(model_, "dropout"); dropout && dropout->as_double() != 0)
      dropout->fail_expected("null or 0");
    BpeSpec spec;
    spec.on_bytes = on_bytes;
    if (const std::optional<JsonValue> unk = find_value(model_, "unk_token")) spec.unk = find_token(*unk);
    p_->unk = spec.unk;
    spec.fuse_unk = model_.get_or("fuse_unk", false);
    spec.ignore_merges = model_.get_or("ignore_merges", false);
    spec.byte_fallback = model_.get_or("byte_fallback", false);
    spec.continuing_prefix = text_or(model_, "continuing_subword_prefix", "");
    spec.end_suffix = text_or(model_, "end_of_word_suffix", "");
    if (on_bytes) {
      // Byte-level pieces have no characters that could fall back.
      spec.bytes.fill(-1);
      spelt_.reserve(model_count_);
      for (std::size_t i = 0; i < model_count_; ++i) spelt_.push_back(spelt_bytes(p_->tokens[i]).value_or(""));
      for (const std::string& s : spelt_) spelt_texts_.add(s);
      p_->spelt = std::move(spelt_texts_);
      p_->model_tokens = TokenMap(model_count_);
      for (std::size_t i = 0; i < model_count_; ++i) {
        const std::string_view bytes = p_->spelt[i];
        if (has_[i] == 0 || bytes.empty()) continue;
        p_->model_tokens.set(bytes, static_cast<std::int32_t>(i));
        if (bytes.size() == 1) spec.bytes[static_cast<unsigned char>(bytes[0])] = static_cast<std::int32_t>(i);
      }
    } else {
      keep_model_tokens();
      fill_byte_tokens(spec.bytes);
    }
    spec.tokens = &p_->model_tokens;
    read_merges(spec);
    p_->model = make_bpe(std::move(spec));
  }

  void read_merges(BpeSpec& spec) {
    const JsonValue list = model_.at("merges");
    spec.merges = MergeMap(static_cast<std::size_t>(list.size()));
    std::uint32_t rank = 0;
    std::string joined;
    for (const JsonValue& row : list.elements()) {
      std::string_view left, right;
      if (row.is_array()) {
        if (row.size() != 2) row.fail_expected("two tokens");
        auto it = row.elements().begin();
        left = (*it).as_string();
        ++it;
        right = (*it).as_string();
      } else {
        const std::string_view text = row.as_string();
        const std::size_t space = text.find(' ');
        if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
          row.fail_expected("two tokens with a space between");
        left = text.substr(0, space);
        right = text.substr(space + 1);
      }
      joined = left;
      const bool prefixed = !spec.continuing_prefix.empty() && right.starts_with(spec.continuing_prefix);
      joined += prefixed ? right.substr(spec.continuing_prefix.size()) : right;
      const std::int32_t ids[] = {vocab_.find(left), vocab_.find(right), vocab_.find(joined)};
      if (ids[0] < 0 || ids[1] < 0 || ids[2] < 0) row.fail_expected("two tokens of the vocab that join to a third");
      // A pair that is there twice has the last of its ranks.
      spec.merges.set(ids[0], ids[1], {rank++, ids[2]});
    }
  }

  void read_unigram() {
    require_known(model_, {"type", "unk_id", "vocab", "byte_fallback"});
    UnigramSpec spec;
    if (const std::optional<JsonValue> unk = find_value(model_, "unk_id"))
      spec.unk = static_cast<std::int32_t>(unk->as_index(0, static_cast<Index>(scores_.size()) - 1));
    p_->unk = spec.unk;
    spec.byte_fallback = model_.get_or("byte_fallback", false);
    fill_byte_tokens(spec.bytes);
    std::vector<PieceTable::Piece> pieces;
    for (std::size_t i = 0; i < model_count_; ++i) {
      if (!p_->tokens[i].empty() && vocab_.find(p_->tokens[i]) == static_cast<std::int32_t>(i))
        pieces.push_back({p_->tokens[i], static_cast<Index>(i)});
    }
    spec.pieces = PieceTable(std::move(pieces), p_->name + ": vocab");
    spec.scores = std::move(scores_);
    p_->model = make_unigram(std::move(spec));
  }

  void read_wordpiece() {
    require_known(model_, {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
    const std::string prefix = text_or(model_, "continuing_subword_prefix", "##");
    WordPieceModelSpec spec;
    spec.unk = *find_token(model_.at("unk_token"));
    p_->unk = spec.unk;
    spec.max_word_characters = model_.get_or("max_input_chars_per_word", Index{100});
    std::vector<PieceTable::Piece> heads, tails;
    for (std::size_t i = 0; i < model_count_; ++i) {
      const std::string_view text = p_->tokens[i];
      if (text.empty()) continue;
      heads.push_back({text, static_cast<Index>(i)});
      if (text.starts_with(prefix) && text.size() > prefix.size())
        tails.push_back({text.substr(prefix.size()), static_cast<Index>(i)});
    }
    spec.heads = PieceTable(std::move(heads), p_->name + ": vocab");
    spec.tails = PieceTable(std::move(tails), p_->name + ": vocab");
    p_->model = make_wordpiece(std::move(spec));
  }

  void fill_added() {
    std::vector<AddedToken> raw, normalized;
    TokenMap seen_raw, seen_normalized;
    for (AddedToken& token : added_) {
      if (token.normalized) {
        for (const auto& stage : p_->normalizers) token.content = stage->apply(std::move(token.content));
      }
      TokenMap& seen = token.normalized ? seen_normalized : seen_raw;
      if (token.content.empty() || seen.find(token.content) >= 0) continue;  // the first of a spelling counts
      seen.set(token.content, 0);
      (token.normalized ? normalized : raw).push_back(token);
    }
    p_->raw = AddedTokens(std::move(raw), p_->name + ": added tokens");
    p_->normalized = AddedTokens(std::move(normalized), p_->name + ": added tokens");
  }

  void read_config() {
    const auto special = [&](std::string_view key) -> std::optional<std::int32_t> {
      const std::optional<JsonValue> value = find_value(config_, key);
      if (!value) return std::nullopt;
      const JsonValue content = value->is_object() ? value->at("content") : *value;
      return find_token(content);
    };
    p_->bos = special("bos_token");
    p_->eos = special("eos_token");
    p_->eot = special("eot_token");
    if (const std::optional<std::int32_t> unk = special("unk_token")) p_->unk = unk;
    p_->sep = special("sep_token");
    p_->pad = special("pad_token");
  }

  JsonValue root_, config_, model_;
  std::shared_ptr<TokenizerParts> p_;
  std::string type_;
  std::vector<std::string_view> by_id_;  // views into the document
  std::vector<std::uint8_t> has_, verbatim_, special_;
  std::vector<double> scores_;
  std::vector<std::string> spelt_;
  TextList spelt_texts_;
  std::size_t model_count_ = 0;  // tokens of the model; added ones may follow
  TokenMap vocab_;
  std::vector<AddedToken> added_;
};

}  // namespace

Tokenizer Tokenizer::from_json(std::string_view text, std::string_view config, std::string_view name) {
  const JsonDocument document = JsonDocument::parse(text, name);
  const JsonDocument more = JsonDocument::parse(config, "tokenizer_config.json");
  return Tokenizer(Reader(document.root(), more.root(), name)());
}

Tokenizer Tokenizer::load(const std::filesystem::path& folder) {
  std::error_code none;
  const std::filesystem::path json = folder / "tokenizer.json", config = folder / "tokenizer_config.json";
  require(std::filesystem::exists(json, none), "{} holds no tokenizer.json", folder.string());
  return from_json(read_bounded_file(json), std::filesystem::exists(config, none) ? read_bounded_file(config) : "{}",
                   json.string());
}

}  // namespace rlx
