// rlx generate: what follows a text, as it comes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>

#include "cli/cli.h"
#include "cli/language.h"
#include "core/error.h"

namespace rlx::cli {

namespace {

struct GenerateArguments {
  ModelArguments model;
  TextArguments text;
  std::string prompt, file;
  Index logprobs = 0;
  bool json = false, stats = false, ignore_end = false, no_special = false;
};

std::string read_all(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::ifstream in(path, std::ios::binary);
  require(in.good(), "cannot open {}", path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::string json_token(const Tokenizer& tokenizer, const GeneratedToken& t, bool logprobs) {
  const auto text = [&](std::int32_t id) {
    return json_string(tokenizer.decode(std::span(&id, 1), {.skip_special = false, .continues = true}));
  };
  std::string out = fmt::format("{{\"id\":{},\"text\":{}", t.token, text(t.token));
  if (logprobs) {
    out += fmt::format(",\"logprob\":{},\"top\":[", json_number(t.logprob));
    for (std::size_t i = 0; i < t.most_probable.size(); ++i) {
      const TokenProbability& p = t.most_probable[i];
      out += fmt::format("{}{{\"id\":{},\"text\":{},\"logprob\":{}}}", i ? "," : "", p.token, text(p.token),
                         json_number(p.logprob));
    }
    out += "]";
  }
  return out + "}";
}

std::string json_end(const LanguageModel& model, const Completion& c, const TextOptions& o) {
  std::string out = fmt::format(
      "{{\"done\":true,\"text\":{},\"finish\":{},\"seed\":{},\"prompt_tokens\":{},\"cached_tokens\":{},"
      "\"seconds_to_first_token\":{},\"tokens_per_second\":{},\"tokens\":[",
      json_string(c.text), json_string(finish_name(c.finish)), o.sampling.seed, c.prompt_tokens, c.reused_tokens,
      json_number(c.to_first_token.count()), json_number(c.rate()));
  for (std::size_t i = 0; i < c.tokens.size(); ++i) {
    out += (i ? "," : "") + json_token(model.tokenizer(), c.tokens[i], o.want_logprob);
  }
  return out + "]}\n";
}

void generate(const GenerateArguments& a) {
  require(a.prompt.empty() != a.file.empty(), "give the prompt by either --prompt or --file");
  TextOptions o = a.text.options(0);
  o.logprobs = a.logprobs;
  o.want_logprob = a.logprobs > 0;
  o.ignore_end = a.ignore_end;
  const std::string prompt = a.file.empty() ? a.prompt : read_all(a.file);
  LanguageModel model = a.model.load();
  const Interrupt interrupt;
  const Completion c =
      model.complete(model.tokenizer().encode(prompt, {.add_special = !a.no_special, .parse_special = true}), o,
                     [&](std::string_view piece) {
                       if (!piece.empty())
                         print(a.json ? fmt::format("{{\"text\":{}}}\n", json_string(piece)) : std::string(piece));
                       return !Interrupt::seen();
                     });
  print(a.json ? json_end(model, c, o) : "\n");
  if (!a.stats) return;
  const GeneratorCounts& n = model.generator().counts();
  std::fprintf(stderr, "%s; finish: %s\n", summary(c).c_str(), std::string(finish_name(c.finish)).c_str());
  if (n.guessed > 0) std::fprintf(stderr, "%ld of %ld guesses were right, %ld runs\n", n.accepted, n.guessed, n.runs);
}

}  // namespace

void add_generate(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<GenerateArguments>();
  CLI::App* c = app.add_subcommand("generate", "Continue a text with a language model.");
  o->model.add(*c);
  c->add_option("-p,--prompt", o->prompt, "The text");
  c->add_option("-f,--file", o->file, "File with the text; - is standard input");
  o->text.add(*c);
  c->add_option("--logprobs", o->logprobs, "With --json: report so many most probable tokens with each")
      ->check(CLI::NonNegativeNumber);
  c->add_flag("--json", o->json, "Print JSON, one object a line: pieces of text as they come, then all about them");
  c->add_flag("--ignore-end", o->ignore_end, "Go on where the model ends the text");
  c->add_flag("--no-special", o->no_special, "Do not put the model's special tokens around the prompt");
  c->add_flag("--stats", o->stats, "Print counts and speeds to standard error");
  c->footer(
      "Equal seeds give equal texts (0 unless given). Ctrl-C ends the text.\n\nExamples:\n"
      "  rlx generate model.gguf --prompt 'Once upon a time' -n 100\n"
      "  rlx generate model.gguf --file question.txt --greedy --stop '\\n\\n' --json");
  c->callback([o, &run] { run = [o] { generate(*o); }; });
}

}  // namespace rlx::cli
