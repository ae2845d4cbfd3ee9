// Files of texts with the ids that reference tokenizers give them: written by scripts/make_tokenizer_cases.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace rlx::test {

struct TokenizerCase {
  std::string text;
  TokenizeOptions options;
  std::vector<std::int32_t> ids;
  bool has_decoded = false;
  std::string decoded;  // of the ids, special tokens left out
};

struct TokenizerCases {
  std::string source;  // the reference and its version
  Tokenizer tokenizer;
  std::vector<TokenizerCase> cases;
  double load_seconds = 0;
};

/// Reads a file and builds its tokenizer.
TokenizerCases read_tokenizer_cases(const std::filesystem::path& path);

/// A vocabulary from its JSON form: the names of the members of VocabularyData.
VocabularyData read_vocabulary(const std::string& json);

/// What is wrong with the answers to one case, or nothing: ids, decoding, and decoding piece by piece.
std::string check_case(const Tokenizer& tokenizer, const TokenizerCase& c);

}  // namespace rlx::test
