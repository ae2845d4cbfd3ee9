// A language model with all that belongs to it: file, tokenizer, cache, generation of text.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "generate/generator.h"
#include "io/gguf/gguf.h"
#include "models/decoder.h"
#include "text/tokenizer.h"

namespace rlx {

struct LanguageModelOptions {
  /// Most positions of a sequence; 0: those that the model was made for, but at most 4096.
  Index context = 0;
  /// The cache holds so many sequences of the longest context.
  Index sequences = 1;
  /// Positions of a page of the cache, and its element type: f32, f16 or bf16.
  Index page = 64;
  DType cache = DType::f16;
  /// Most tokens of prompts in one run.
  Index chunk = 512;
  /// Threads of one run; 0: as many as the process may use.
  int threads = 0;
  /// Keep the cache of texts that are done, for prompts that begin as they did.
  bool reuse = true;
  /// Products with encoded weights take activations as they are, in f32; else in 8-bit blocks, which is faster.
  bool exact = false;
  /// A smaller model with the same tokens, whose guesses save runs; none when empty.
  std::string draft;
  /// Guess that a text goes on as it did before.
  bool prompt_lookup = false;
  CompileOptions compile = {};
};

/// Why a text has ended.
enum class TextFinish : std::uint8_t {
  end,        // the model has ended it
  stop,       // a stop string
  length,     // as many tokens as were asked for
  context,    // the context is full
  cancelled,  // the caller did not want more
};
std::string_view finish_name(TextFinish finish);

struct TextOptions {
  SamplerOptions sampling;
  Index max_tokens = -1;          // -1: until the end or a full context
  std::vector<std::string> stop;  // texts that end the answer; they are not part of it
  Index logprobs = 0;             // most probable tokens to be reported with each
  bool want_logprob = false;
  bool ignore_end = false;  // tokens that end a text do not
};

/// A text that was generated.
struct Completion {
  std::string text;
  TextFinish finish = TextFinish::end;
  std::vector<GeneratedToken> tokens;  // the one that ended the text included
  Index prompt_tokens = 0, reused_tokens = 0;
  std::chrono::duration<double> to_first_token{}, total{};

  /// Tokens a second behind the first.
  double rate() const;
};

/// Hears the text as it comes, in whole characters, and an empty piece after each run of the model that gave no text;
/// false ends it.
using OnText = std::function<bool(std::string_view piece)>;

/// What the metadata of a GGUF file says about its tokenizer.
VocabularyData gguf_vocabulary(const GgufFile& file);
/// The tokenizer of a GGUF file, or of a folder with tokenizer.json.
Tokenizer load_tokenizer(const std::string& path);

/// A decoder that was loaded, compiled and given a cache. For one caller at a time.
class LanguageModel {
 public:
  /// Loads a GGUF file, or a folder with config.json, model.safetensors (or its index) and tokenizer.json. Throws Error
  /// as the readers do, for a draft model of another vocabulary, and for a context beyond the model's.
  static LanguageModel load(const std::string& path, const LanguageModelOptions& options = {});

  const DecoderConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  Generator& generator() { return *generator_; }
  PagedDecoder& decoder() { return generator_->decoder(); }
  Index context() const { return generator_->decoder().context(); }
  /// The text of the chat template that the model carries; empty for none.
  const std::string& chat_template() const { return chat_template_; }
  /// Bytes of the model's tensors as they are stored, and how many elements they have.
  Index weight_bytes() const { return weight_bytes_; }
  Index weight_count() const { return weight_count_; }

  /// Tokens that end a text.
  std::vector<std::int32_t> end_tokens() const;
  /// What follows a text; the special tokens that the model wants around a text are put there, and special tokens that
  /// are spelt in it are read. Throws Error as Generator does.
  Completion complete(std::string_view prompt, const TextOptions& options = {}, const OnText& on_text = {});
  /// The same for a prompt in tokens.
  Completion complete(std::vector<std::int32_t> prompt, const TextOptions& options = {}, const OnText& on_text = {});

 private:
  LanguageModel(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  DecoderConfig config_;
  Tokenizer tokenizer_;
  std::string chat_template_;
  Index weight_bytes_ = 0, weight_count_ = 0;
  std::unique_ptr<Generator> generator_;
};

/// How well a model expects a text.
struct Perplexity {
  double value = 0;  // e to the mean of -log p
  double error = 0;  // standard error of it
  Index tokens = 0;  // that were counted
};
struct PerplexityOptions {
  Index chunk = 512;      // tokens that are run together
  Index most_chunks = 0;  // 0: all
};
/// The text's tokens are cut into chunks, each run on its own with the model's first token in front, and of each the
/// second half counts, as in llama.cpp. `progress`, if given, hears how many are done, how many there are, and the
/// value so far. Throws Error for a text shorter than two chunks.
Perplexity perplexity(LanguageModel& model, std::string_view text, const PerplexityOptions& options = {},
                      const std::function<void(Index done, Index chunks, const Perplexity&)>& progress = {});

}  // namespace rlx
