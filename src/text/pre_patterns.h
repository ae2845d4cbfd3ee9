// The pre-tokenizers that GGUF files name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/splitters.h"

namespace rlx {

/// What a name in `tokenizer.ggml.pre` stands for.
struct PreTokenizer {
  std::vector<std::string_view> patterns;  // each cuts what the ones before it left
  bool ignore_merges = false;              // a piece that is a token is not cut
  bool add_bos = false, add_sep = false;   // where the file says nothing
};

/// An Error that lists the known names if this is none of them.
PreTokenizer pre_tokenizer_by_name(std::string_view name);

/// All names, sorted.
std::vector<std::string_view> pre_tokenizer_names();

}  // namespace rlx
