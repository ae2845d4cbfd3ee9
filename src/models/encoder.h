// BERT-like encoders from a HuggingFace config.json and its weights.
#pragma once

#include <string>

#include "core/json.h"
#include "nn/parameters.h"

namespace rlx {

/// The architecture of a BERT encoder (Devlin et al. 2018) or DistilBERT (Sanh et al. 2019).
struct EncoderConfig {
  std::string model_type = "bert";
  Index vocab_size = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0;
  Index max_positions = 0;
  Index token_types = 0;  // 0: none (DistilBERT)
  std::string activation = "gelu";
  double epsilon = 1e-12;

  /// From the object of a config.json. Throws Error naming field, value and what is expected: another model_type,
  /// relative positions, a decoder, sizes that are not positive or do not fit together.
  static EncoderConfig from_json(const JsonDocument& config);
};

/// Hidden states [B,S,hidden] of the last layer for token ids i64[B,S] and a mask [B,S] in the compute type, 1 at
/// tokens and 0 at padding; token types are all 0. `p` is the scope that holds `embeddings`; see encoder_scope.
Value encoder(Value ids, Value mask, const EncoderConfig& config, const Parameters& p);

/// The scope that holds the encoder: weights are stored with or without the prefix `bert.` or `distilbert.`.
Parameters encoder_scope(const EncoderConfig& config, const Parameters& p);

/// Names that begin so belong to parts which an encoder does not need: heads, poolers, buffers.
std::vector<std::string> encoder_ignored(const EncoderConfig& config);

}  // namespace rlx
