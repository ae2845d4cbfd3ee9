// A tokenizer as GGUF metadata states it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rlx {

/// The keys below `tokenizer.ggml.`, one member each; what a file does not say stays empty.
struct VocabularyData {
  std::string name = "vocabulary";        // heads the messages
  std::string model;                      // "gpt2", "llama", "bert" or "t5"
  std::string pre;                        // the pre-tokenizer; for gpt2 only
  std::vector<std::string> tokens;        // by id
  std::vector<float> scores;              // by id; for llama and t5
  std::vector<std::int32_t> token_types;  // by id: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
  std::vector<std::string> merges;        // "left right", in the order of their ranks; for gpt2
  std::optional<std::int32_t> bos, eos, eot, eom, unk, sep, pad, mask, cls;
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix, remove_extra_whitespaces;
  std::string precompiled_charsmap;  // bytes; for t5
};

}  // namespace rlx
