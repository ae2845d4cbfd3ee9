// The stages of a tokenizer.json: normalizers, pre-tokenizers, decoders, post-processors.
#pragma once

#include <memory>
#include <vector>

#include "core/json.h"
#include "text/normalizers.h"
#include "text/splitters.h"
#include "text/tokenizer_parts.h"

namespace rlx {

/// The stages of `normalizer`; an Error names what is not supported.
std::vector<std::unique_ptr<Normalizer>> read_normalizers(const JsonValue& value);

struct PreTokenizers {
  std::vector<std::unique_ptr<Splitter>> stages;
  bool on_bytes = false;  // the pieces stand for bytes that the vocabulary spells; no stage spells them
};
/// The stages of `pre_tokenizer`. Where bytes are spelt last and `bytes_allowed`, that is left to the model.
PreTokenizers read_pre_tokenizers(const JsonValue& value, bool bytes_allowed);

/// What the tokens stand for, and what happens to the first one; needs `p.tokens`, `p.kinds` and `verbatim`, which says
/// by id which tokens stand for their own spelling.
void read_decoder(const JsonValue& value, const std::vector<std::uint8_t>& verbatim, TokenizerParts& p);

/// The ids around a text.
void read_post_processor(const JsonValue& value, TokenizerParts& p);

}  // namespace rlx
