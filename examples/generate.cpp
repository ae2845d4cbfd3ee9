// Continues a text with a language model, as it comes: generate MODEL [TEXT].
#include "rlx/generate.h"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) try {
  rlx::LanguageModel model = rlx::LanguageModel::load(argc > 1 ? argv[1] : "model.gguf");
  const rlx::TextOptions options{.sampling = rlx::SamplerOptions::greedy(), .max_tokens = 40, .stop = {"\n\n"}};
  model.complete(argc > 2 ? argv[2] : "The capital of France is", options, [](std::string_view piece) {
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    return std::fflush(stdout) == 0;
  });
  std::puts("");
} catch (const std::exception& e) {
  std::fprintf(stderr, "generate: %s\n", e.what());
  return 1;
}
