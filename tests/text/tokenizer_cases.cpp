// Reading and checking files of tokenizer cases.
#include "tokenizer_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.h"
#include "text/unicode.h"

namespace rlx::test {

namespace {

using Json = nlohmann::json;

template <class T>
void read(const Json& from, const char* key, T& to) {
  if (from.contains(key)) to = from.at(key).get<T>();
}

void read(const Json& from, const char* key, std::optional<std::int32_t>& to) {
  if (from.contains(key)) to = from.at(key).get<std::int32_t>();
}

void read(const Json& from, const char* key, std::optional<bool>& to) {
  if (from.contains(key)) to = from.at(key).get<bool>();
}

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

VocabularyData vocabulary(const Json& j) {
  VocabularyData out;
  read(j, "model", out.model);
  read(j, "pre", out.pre);
  read(j, "tokens", out.tokens);
  read(j, "scores", out.scores);
  read(j, "token_types", out.token_types);
  read(j, "merges", out.merges);
  read(j, "bos", out.bos);
  read(j, "eos", out.eos);
  read(j, "eot", out.eot);
  read(j, "unk", out.unk);
  read(j, "sep", out.sep);
  read(j, "pad", out.pad);
  read(j, "mask", out.mask);
  read(j, "cls", out.cls);
  read(j, "add_bos", out.add_bos);
  read(j, "add_eos", out.add_eos);
  read(j, "add_sep", out.add_sep);
  read(j, "add_space_prefix", out.add_space_prefix);
  read(j, "remove_extra_whitespaces", out.remove_extra_whitespaces);
  if (j.contains("precompiled_charsmap")) out.precompiled_charsmap = from_hex(j.at("precompiled_charsmap"));
  return out;
}

Tokenizer build(const Json& file, double& seconds) {
  const bool json = file.contains("tokenizer");
  const std::string text = json ? file.at("tokenizer").dump() : "";
  const std::string config = file.contains("config") ? file.at("config").dump() : "{}";
  const VocabularyData data = json ? VocabularyData{} : vocabulary(file.at("vocabulary"));
  const auto start = std::chrono::steady_clock::now();
  Tokenizer out = json ? Tokenizer::from_json(text, config) : Tokenizer(data);
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

}  // namespace

VocabularyData read_vocabulary(const std::string& json) { return vocabulary(Json::parse(json)); }

TokenizerCases read_tokenizer_cases(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  const Json file = Json::parse(in);
  double seconds = 0;
  Tokenizer tokenizer = build(file, seconds);
  TokenizerCases out{file.at("source"), std::move(tokenizer), {}, seconds};
  for (const Json& j : file.at("cases")) {
    TokenizerCase c;
    c.text = j.contains("hex") ? from_hex(j.at("hex")) : j.at("text").get<std::string>();
    read(j, "add_special", c.options.add_special);
    read(j, "parse_special", c.options.parse_special);
    read(j, "ids", c.ids);
    c.has_decoded = j.contains("decoded");
    read(j, "decoded", c.decoded);
    out.cases.push_back(std::move(c));
  }
  return out;
}

std::string check_case(const Tokenizer& tokenizer, const TokenizerCase& c) {
  const std::vector<std::int32_t> ids = tokenizer.encode(c.text, c.options);
  if (ids != c.ids) return fmt::format("ids {} expected {}", ids, c.ids);
  const std::string decoded = tokenizer.decode(ids);
  if (c.has_decoded && decoded != c.decoded) return fmt::format("decoded \"{}\" expected \"{}\"", decoded, c.decoded);
  Detokenizer stream(tokenizer);
  std::string joined;
  for (const std::int32_t id : ids) {
    const std::string part = stream.push(id);
    if (!is_valid_utf8(part)) return fmt::format("token {} gives half a character", id);
    joined += part;
  }
  joined += stream.flush();
  if (joined != decoded) return fmt::format("streamed \"{}\" expected \"{}\"", joined, decoded);
  return "";
}

}  // namespace rlx::test
