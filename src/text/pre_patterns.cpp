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
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" RLX_BLANKS;
constexpr std::string_view deepseek_letters =
    R"(\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴ)"
    R"(ᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+)";
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
                 R"(\p{N}+)"}}},
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
