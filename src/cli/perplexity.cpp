// rlx perplexity: how well a language model expects a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "cli/cli.h"
#include "cli/language.h"
#include "core/error.h"

namespace rlx::cli {

namespace {

struct PerplexityArguments {
  ModelArguments model;
  std::string file;
  Index chunk = 512, most = 0;
  bool json = false;
};

void run_perplexity(PerplexityArguments a) {
  std::ifstream in(a.file, std::ios::binary);
  require(in.good(), "cannot open {}", a.file);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (a.model.context == 0) a.model.context = a.chunk;
  LanguageModel model = a.model.load();
  const Perplexity p = perplexity(model, text, {.chunk = a.chunk, .most_chunks = a.most},
                                  [&](Index done, Index all, const Perplexity& now) {
                                    if (!a.json)
                                      print(fmt::format("{}/{} {:.4f} +- {:.4f}\n", done, all, now.value, now.error));
                                  });
  print(a.json ? fmt::format("{{\"perplexity\":{},\"error\":{},\"tokens\":{},\"chunk\":{}}}\n", json_number(p.value),
                             json_number(p.error), p.tokens, a.chunk)
               : fmt::format("perplexity {:.4f} +- {:.4f} over {} tokens\n", p.value, p.error, p.tokens));
}

}  // namespace

void add_perplexity(CLI::App& app, std::function<void()>& run) {
  auto o = std::make_shared<PerplexityArguments>();
  CLI::App* c = app.add_subcommand("perplexity", "Measure how well a language model expects a text.");
  o->model.add(*c);
  c->add_option("file", o->file, "The text")->required();
  c->add_option("--size", o->chunk, "Tokens of a chunk; each is run on its own, and its second half counts")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  c->add_option("--chunks", o->most, "Chunks at most, 0: all")->check(CLI::NonNegativeNumber);
  c->add_flag("--json", o->json, "Print JSON");
  c->footer(
      "The chunks and what counts of them are those of llama.cpp.\n\nExample:\n  rlx perplexity model.gguf "
      "wiki.test.raw");
  c->callback([o, &run] { run = [o] { run_perplexity(*o); }; });
}

}  // namespace rlx::cli
