// GGUF files as the program shows them.
#pragma once

#include <string>

namespace rlx::cli {

struct GgufView {
  bool json = false;
  bool tensors = false;  // each of them
  std::string key;       // one key, in full
};

/// The text that `rlx inspect` prints of a GGUF file.
std::string show_gguf(const std::string& path, const GgufView& view);

}  // namespace rlx::cli
