// What the commands that run language models share: options of model, sampler and text, and Ctrl-C.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generate/language_model.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}

namespace rlx::cli {

struct ModelArguments {
  std::string path, cache = "f16", draft;
  Index context = 0, chunk = 512;
  int threads = 0;
  bool exact = false, lookup = false, quiet = false;

  void add(CLI::App& command);
  LanguageModelOptions options() const;
  /// Loads the model, with a progress bar.
  LanguageModel load() const;
};

struct TextArguments {
  SamplerOptions sampler;
  std::vector<std::string> bias, stop;
  Index most = -1;
  std::optional<std::uint64_t> seed;
  bool greedy = false;

  void add(CLI::App& command);
  /// `seed` where none was given.
  TextOptions options(std::uint64_t seed) const;
};

/// While one exists, Ctrl-C sets a flag instead of ending the program.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  static bool seen();
  static void clear();
};

/// `12 tokens of prompt (8 cached), 0.12 s to the first token, 34 tokens at 56.7 a second`.
std::string summary(const Completion& c);

}  // namespace rlx::cli
