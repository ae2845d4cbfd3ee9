// Options of the commands that run language models.
#include "cli/language.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <csignal>

#include "cli/cli.h"
#include "core/error.h"

namespace rlx::cli {

void ModelArguments::add(CLI::App& c) {
  c.add_option("model", path, "GGUF file, or folder with config.json, model.safetensors and tokenizer.json")
      ->required();
  c.add_option("-c,--context", context, "Positions of the context, 0: those of the model, at most 4096")
      ->check(CLI::NonNegativeNumber);
  c.add_option("-t,--threads", threads, "Threads, 0: as many as the process may use")->check(CLI::NonNegativeNumber);
  c.add_option("--cache", cache, "Element type of cached keys and values: f32, f16 or bf16")->capture_default_str();
  c.add_option("--chunk", chunk, "Tokens of the prompt that are run together")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c.add_option("--draft", draft, "Smaller model of the same tokens that guesses ahead; the text stays the same");
  c.add_flag("--lookup", lookup, "Guess that the text goes on as it did before; the text stays the same");
  c.add_flag("--exact", exact, "Take activations as they are in products with encoded weights: slower");
  c.add_flag("-q,--quiet", quiet, "No progress bar");
}

LanguageModelOptions ModelArguments::options() const {
  LanguageModelOptions o;
  o.context = context;
  o.chunk = chunk;
  o.threads = threads;
  o.cache = parse_dtype(cache);
  require(o.cache == DType::f32 || o.cache == DType::f16 || o.cache == DType::bf16,
          "the cache is of {}, expected f32, f16 or bf16", cache);
  o.exact = exact;
  o.draft = draft;
  o.prompt_lookup = lookup;
  return o;
}

LanguageModel ModelArguments::load() const {
  LanguageModelOptions o = options();
  ProgressBar bar;
  if (!quiet) o.compile.progress = bar.callback();
  return LanguageModel::load(path, o);
}

void TextArguments::add(CLI::App& c) {
  const auto number = [&](const char* name, auto& to, const char* help) {
    c.add_option(name, to, help)->capture_default_str();
  };
  number("-n,--tokens", most, "Most tokens of the answer, -1: until its end or a full context");
  number("--temp", sampler.temperature, "Temperature, 0: always the most probable token");
  number("--top-k", sampler.top_k, "Draw from the k most probable tokens, 0: all");
  number("--top-p", sampler.top_p, "Draw from the most probable tokens of this probability together");
  number("--min-p", sampler.min_p, "Draw from tokens of at least this share of the largest probability");
  number("--typical", sampler.typical_p, "Draw from the most typical tokens of this probability together");
  number("--repeat-penalty", sampler.repeat_penalty, "Logits of tokens that were there are divided by it");
  number("--presence-penalty", sampler.presence_penalty, "Taken off the logits of tokens that were there");
  number("--frequency-penalty", sampler.frequency_penalty, "The same for each time they were there");
  number("--penalty-last", sampler.penalty_last, "Tokens that penalties look back at, -1: all");
  c.add_option("--bias", bias, "TOKEN=NUMBER added to the logit of a token, by number; may be repeated");
  c.add_option("--seed", seed, "Number that decides what is drawn");
  c.add_flag("--greedy", greedy, "The same as --temp 0");
  c.add_option("--stop", stop, "Text that ends the answer; may be repeated");
}

namespace {

template <class T>
T parse_number(std::string_view text, const std::string& whole) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), "--bias {}: '{}' is no number", whole, text);
  return value;
}

}  // namespace

TextOptions TextArguments::options(std::uint64_t standard) const {
  TextOptions o{.sampling = sampler, .max_tokens = most, .stop = stop};
  require(most == -1 || most >= 1, "--tokens is {}, expected 1 or more, or -1", most);
  if (greedy) o.sampling.temperature = 0;
  o.sampling.seed = seed.value_or(standard);
  for (const std::string& b : bias) {
    const std::size_t at = b.find('=');
    require(at != std::string::npos, "--bias {}: expected TOKEN=NUMBER", b);
    const std::string_view text = b;
    o.sampling.logit_bias[parse_number<std::int32_t>(text.substr(0, at), b)] =
        parse_number<double>(text.substr(at + 1), b);
  }
  return o;
}

namespace {

volatile std::sig_atomic_t interrupted = 0;
void note_interrupt(int) { interrupted = 1; }
struct sigaction before;

}  // namespace

Interrupt::Interrupt() {
  interrupted = 0;
  struct sigaction now{};
  now.sa_handler = note_interrupt;
  sigemptyset(&now.sa_mask);
  sigaction(SIGINT, &now, &before);
}
Interrupt::~Interrupt() { sigaction(SIGINT, &before, nullptr); }
bool Interrupt::seen() { return interrupted != 0; }
void Interrupt::clear() { interrupted = 0; }

std::string summary(const Completion& c) {
  return fmt::format("{} tokens of prompt ({} cached), {:.2f} s to the first token, {} tokens at {:.1f} a second",
                     c.prompt_tokens, c.reused_tokens, c.to_first_token.count(), c.tokens.size(), c.rate());
}

}  // namespace rlx::cli
