// Encoding: added tokens are cut out, the rest is normalised, cut into pieces, and given to the model.
#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

namespace rlx {

namespace {

// One call of encode.
class Encoding {
 public:
  Encoding(const TokenizerParts& parts, bool parse_special, std::vector<std::int32_t>& out)
      : p_(parts),
        parse_special_(parse_special),
        out_(out),
        chain_(parts.splitters),
        scratch_(parts.model->scratch()) {}

  void run(std::string_view text) {
    const auto on_stretch = [&](std::string_view stretch) {
      const bool first = stretch.data() == text.data();
      if (p_.normalizers.empty() && p_.normalized.empty()) {
        pieces(stretch, first);
        return true;
      }
      std::string changed(stretch);
      for (const auto& normalizer : p_.normalizers) changed = normalizer->apply(std::move(changed));
      const std::string_view normal = changed;
      p_.normalized.split(
          normal, parse_special_,
          [&](std::string_view part) {
            pieces(part, first && part.data() == normal.data());
            return true;
          },
          [&](const AddedToken& token) { return put(token); });
      return true;
    };
    p_.raw.split(text, parse_special_, on_stretch, [&](const AddedToken& token) { return put(token); });
  }

 private:
  bool put(const AddedToken& token) {
    out_.push_back(static_cast<std::int32_t>(token.id));
    return true;
  }
  void pieces(std::string_view text, bool first) {
    chain_.run(text, first, [&](std::string_view piece) { p_.model->encode(piece, *scratch_, out_); });
  }

  const TokenizerParts& p_;
  bool parse_special_;
  std::vector<std::int32_t>& out_;
  SplitterChain chain_;
  std::unique_ptr<TokenModel::Scratch> scratch_;
};

// Names that models in use give to the token that ends an answer or a turn.
constexpr std::string_view end_names[] = {"<|eot_id|>",
                                          "<|im_end|>",
                                          "<|end|>",
                                          "<end_of_turn>",
                                          "<|endoftext|>",
                                          "<|eom_id|>",
                                          "<EOT>",
                                          "_<EOT>",
                                          "<turn|>",
                                          "<|end_of_text|>",
                                          "<|return|>",
                                          "<|call|>",
                                          "<|calls|>",
                                          "<|user|>",
                                          "<end_of_utterance>",
                                          "<|END_OF_TURN_TOKEN|>",
                                          "<|endofprompt|>",
                                          "<｜end▁of▁sentence｜>"};

}  // namespace

void TokenizerParts::find_ends() {
  ends.assign(tokens.size(), 0);
  for (const std::optional<std::int32_t>& id : {eos, eot}) {
    if (id) ends[static_cast<std::size_t>(*id)] = 1;
  }
  for (const std::string_view end : end_names) {
    const std::int32_t id = by_text.find(end);
    if (id >= 0 && kinds[static_cast<std::size_t>(id)] != TokenKind::normal) ends[static_cast<std::size_t>(id)] = 1;
  }
}

void TokenizerParts::check(std::int32_t id) const {
  require(id >= 0 && static_cast<std::size_t>(id) < tokens.size(), "{}: no token has id {}, expected 0 to {}", name, id,
          static_cast<Index>(tokens.size()) - 1);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view utf8, const TokenizeOptions& options) const {
  constexpr std::size_t most_bytes = std::size_t{1} << 30;
  const TokenizerParts& p = *parts_;
  require(utf8.size() <= most_bytes, "{}: a text of {} bytes, at most {} are encoded at once", p.name, utf8.size(),
          most_bytes);
  std::vector<std::int32_t> out;
  out.reserve(utf8.size() / 4 + 8);
  if (options.add_special) out = p.before;
  std::string repaired;
  if (!is_valid_utf8(utf8)) utf8 = repaired = replace_invalid_utf8(utf8);
  Encoding(p, options.parse_special, out).run(utf8);
  if (options.add_special) out.insert(out.end(), p.after.begin(), p.after.end());
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, const DetokenizeOptions& options) const {
  Detokenizer text(*this, options);
  std::string out;
  for (const std::int32_t id : ids) out += text.push(id);
  return out + text.flush();
}

Index Tokenizer::vocab_size() const { return static_cast<Index>(parts_->tokens.size()); }

std::string_view Tokenizer::token(std::int32_t id) const {
  parts_->check(id);
  return parts_->tokens[static_cast<std::size_t>(id)];
}

std::optional<std::int32_t> Tokenizer::find(std::string_view token) const {
  const std::int32_t id = parts_->by_text.find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

TokenKind Tokenizer::kind(std::int32_t id) const {
  parts_->check(id);
  return parts_->kinds[static_cast<std::size_t>(id)];
}

std::optional<std::int32_t> Tokenizer::bos() const { return parts_->bos; }
std::optional<std::int32_t> Tokenizer::eos() const { return parts_->eos; }
std::optional<std::int32_t> Tokenizer::eot() const { return parts_->eot; }
std::optional<std::int32_t> Tokenizer::unk() const { return parts_->unk; }
std::optional<std::int32_t> Tokenizer::sep() const { return parts_->sep; }
std::optional<std::int32_t> Tokenizer::pad() const { return parts_->pad; }

bool Tokenizer::ends_generation(std::int32_t id) const {
  parts_->check(id);
  return parts_->ends[static_cast<std::size_t>(id)] != 0;
}

bool Tokenizer::adds_bos() const {
  return parts_->bos && !parts_->before.empty() && parts_->before.front() == *parts_->bos;
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, const DetokenizeOptions& options)
    : parts_(tokenizer.parts_), options_(options) {
  flush();
}

std::string Detokenizer::push(std::int32_t id) {
  const TokenizerParts& p = *parts_;
  p.check(id);
  const auto i = static_cast<std::size_t>(id);
  const TokenKind kind = p.kinds[i];
  if (options_.skip_special && (kind == TokenKind::control || kind == TokenKind::unknown || kind == TokenKind::unused))
    return "";
  std::string_view text = p.texts[i];
  const bool first = !started_ && !options_.continues;
  started_ = true;
  if (first && p.first == FirstToken::no_marks && kind != TokenKind::byte) {
    std::string_view spelt = p.tokens[i];
    for (std::size_t at = 0; at < spelt.size();) {
      if (spelt.substr(at).starts_with(p.mark)) {
        at += p.mark.size();
      } else {
        pending_ += spelt[at++];
      }
    }
    return take_complete();
  }
  if (first && p.first == FirstToken::spelt) text = p.tokens[i];
  while (strip_left_ > 0 && text.starts_with(' ')) {
    text.remove_prefix(1);
    --strip_left_;
  }
  if (!text.empty()) strip_left_ = 0;
  pending_ += text;
  return take_complete();
}

std::string Detokenizer::take_complete() {
  std::string out;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const std::size_t begin = at;
    const char32_t c = next_code_point(pending_, at);
    // A character that the end of the bytes cuts off may still become whole.
    if (c == replacement_character && at == pending_.size() &&
        may_become_character(std::string_view(pending_).substr(begin))) {
      at = begin;
      break;
    }
    append_utf8(out, c);
  }
  pending_.erase(0, at);
  return out;
}

std::string Detokenizer::flush() {
  std::string out = replace_invalid_utf8(pending_);
  pending_.clear();
  started_ = false;
  strip_left_ = parts_->first == FirstToken::strip && !options_.continues ? parts_->strip : 0;
  return out;
}

}  // namespace rlx
