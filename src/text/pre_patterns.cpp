// Which patterns belong to which name. The patterns are those of the tokenizers that the names were given for.
#include "text/pre_patterns.h"

#include <algorithm>
#include <map>
#include <span>

#include "core/error.h"

namespace rlx {

namespace {

// The contractions of English, at the head of most patterns.
#define RLX_CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
// Words, with one character before them that is neither letter, number nor line end.
#define RLX_WORD R"([^\r\n\p{L}\p{N}]?\p{L}+)"
#define RLX_SIGNS R"( ?[^\s\p{L}\p{N}]+[\r\n]*)"
#define RLX_BLANKS R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
// Words whose upper case comes first, and those all in upper case.
#define RLX_CASED R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define RLX_UPPER R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
#define RLX_SIGNS_SLASH R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)"

constexpr std::string_view gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";
constexpr std::string_view llama3 = RLX_CONTRACTIONS "|" RLX_WORD R"(|\p{N}{1,3}|)" RLX_SIGNS "|" RLX_BLANKS;
constexpr std::string_view qwen2 = RLX_CONTRACTIONS "|" RLX_WORD R"(|\p{N}|)" RLX_SIGNS "|" RLX_BLANKS;
constexpr std::string_view qwen35 =
    RLX_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" RLX_BLANKS;
constexpr std::string_view gpt4o =
    RLX_CASED RLX_CONTRACTIONS "?|" RLX_UPPER RLX_CONTRACTIONS R"(?|\p{N}{1,3}|)" RLX_SIGNS_SLASH "|" RLX_BLANKS;
constexpr std::string_view tekken = RLX_CASED "|" RLX_UPPER R"(|\p{N}|)" RLX_SIGNS_SLASH "|" RLX_BLANKS;
constexpr std::string_view deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|)" RLX_BLANKS;
constexpr std::string_view deepseek_letters =
    R"(\s?[A-Za-z)"
    R"(\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1})"
    R"(\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5})"
    R"(\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77})"
    R"(\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d})"
    R"(\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc})"
    R"(\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec})"
    R"(\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d})"
    R"(\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee})"
    R"(\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787})"
    R"(\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a})"
    R"(\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2})"
    R"(\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)";
constexpr std::string_view deepseek_east = R"([一-龥ࠀ-一가-퟿]+)";
constexpr std::string_view bloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";

using Patterns = std::vector<std::string_view>;

struct Family {
  std::vector<std::string_view> names;
  PreTokenizer what;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat",
        "a.x-4.0", "mellum", "modern-bert", "exaone4", "trillion", "granite-docling"},
       {Patterns{gpt2}}},
      {{"roberta-bpe", "jina-v1-en", "jina-v2-code"}, {Patterns{gpt2}, false, false, true}},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       {Patterns{R"(\p{N})", gpt2}}},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
       {Patterns{llama3}, true, true}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, {Patterns{llama3}}},
      {{"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open", "grok-2"},
       {Patterns{qwen2}}},
      {{"qwen35"}, {Patterns{qwen35}}},
      {{"minicpm5"},
       {Patterns{R"(\p{N}{1,3})", RLX_CONTRACTIONS "|" RLX_WORD R"(|\p{N}+|)" RLX_SIGNS "|" RLX_BLANKS}, true}},
      {{"deepseek-llm"},
       {Patterns{R"([\r\n])", deepseek_letters, R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)", R"(\s+$)", deepseek_east,
                 R"(\p{N})"}}},
      {{"deepseek-coder"}, {Patterns{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", deepseek_east, R"(\p{N})"}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       {Patterns{R"(\p{N}{1,3})", R"([一-龥぀-ゟ゠-ヿ]+)", deepseek3}}},
      {{"youtu"},
       {Patterns{
            R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)",
            RLX_CASED RLX_CONTRACTIONS "?|" RLX_UPPER RLX_CONTRACTIONS R"(?|\p{N}|)" RLX_SIGNS_SLASH "|" RLX_BLANKS},
        true}},
      {{"falcon"}, {Patterns{R"([\p{P}\$\+<=>\^~\|`]+)", gpt2, R"([0-9][0-9][0-9])"}}},
      {{"bloom", "poro-chat", "gpt3-finnish"}, {Patterns{bloom}}},
      {{"viking"}, {Patterns{bloom, R"(\p{N})"}}},
      {{"tekken"}, {Patterns{tekken}, true, true}},
      {{"chameleon"},
       {Patterns{R"(<sentinel:[0-9]+>)", R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)", R"(([\t\n]|    |  ))", R"(\p{N})",
                 R"([\p{P}!-/:-@\[-`{-~])", gpt2},
        false, true}},
      {{"gpt-4o", "llama4", "kanana2", "minimax-m2"}, {Patterns{gpt4o}}},
      {{"granite-embed-multi-97m"}, {Patterns{gpt4o}, true}},
      {{"tiny_aya", "cohere2moe"}, {Patterns{R"(\d{1,3}(?=(?:\d{3})*\b))", gpt4o}}},
      {{"superbpe"}, {Patterns{R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"},
       {Patterns{R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|)"
                 R"(\s+(?!\S)|\s+)"}}},
      {{"seed-coder"}, {Patterns{RLX_CONTRACTIONS "|" RLX_WORD R"(|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" RLX_BLANKS}}},
      {{"exaone-moe"},
       {Patterns{RLX_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|)"
                                  R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"}}},
      {{"default"}, {Patterns{R"([\p{P}\$\+<=>\^~\|]+)", gpt2, R"(\p{N}+)", R"([0-9][0-9][0-9])"}}},
  };
  return all;
}

}  // namespace

std::vector<std::string_view> pre_tokenizer_names() {
  std::vector<std::string_view> out;
  for (const Family& f : families()) out.insert(out.end(), f.names.begin(), f.names.end());
  std::sort(out.begin(), out.end());
  return out;
}

PreTokenizer pre_tokenizer_by_name(std::string_view name) {
  for (const Family& f : families()) {
    if (std::find(f.names.begin(), f.names.end(), name) != f.names.end()) return f.what;
  }
  std::string known;
  for (const std::string_view n : pre_tokenizer_names())
    known += known.empty() ? std::string(n) : ", " + std::string(n);
  fail("pre-tokenizer \"{}\" is not known, expected one of {}", name, known);
}

}  // namespace rlx
