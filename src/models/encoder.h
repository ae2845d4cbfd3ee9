// BERT-like encoders from a HuggingFace config.json or GGUF metadata, and their weights.
#pragma once

#include <string>

#include "core/json.h"
#include "models/fields.h"
#include "models/stored_weights.h"
#include "nn/parameters.h"

namespace rlx {

/// The architecture of a BERT encoder (Devlin et al. 2018), DistilBERT (Sanh et al. 2019) or Nomic BERT (Nussbaum et
/// al. 2024), which rotates queries and keys and has a gated feed-forward part.
struct EncoderConfig {
  std::string model_type = "bert";
  Index vocab_size = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0;
  Index max_positions = 0;
  Index token_types = 0;  // 0: none (DistilBERT)
  std::string activation = "gelu";
  double epsilon = 1e-12;
  double rotary_theta = 0;  // 0: a table of positions is added to the embedding
  bool gated = false;
  bool gguf = false;  // weights have the names of GGUF files

  /// From the object of a config.json. Throws Error naming field, value and what is expected: another model_type,
  /// relative positions, a decoder, sizes that are not positive or do not fit together.
  static EncoderConfig from_json(const JsonDocument& config);
  /// From GGUF metadata of the architectures bert and nomic-bert; `vocab_size` and `token_types` come from the shapes
  /// of tensors where the metadata does not say them. Errors likewise, one for all fields that are not understood.
  static EncoderConfig from_gguf(const ModelFields& metadata, const WeightSource& weights);
};

/// Hidden states [B,S,hidden] of the last layer for token ids i64[B,S] and a mask [B,S] in the compute type, 1 at
/// tokens and 0 at padding; token types are all 0. `p` is the scope that holds `embeddings`; see encoder_scope.
Value encoder(Value ids, Value mask, const EncoderConfig& config, const Parameters& p);

/// Weights of an encoder under the names of BERT (`embeddings.word_embeddings.weight`, …), for sources that store them
/// under other names or joined: GGUF files and Nomic BERT. `source` must outlive the result.
StoredWeights encoder_weights(const WeightSource& source, const EncoderConfig& config);
/// Whether a source has other names, so that encoder_weights is needed.
bool encoder_renamed(const EncoderConfig& config);

/// Hidden states for inputs `ids` i64[B,S] and `mask` f32[B,S]; output `states` f32[B,S,hidden]. Throws Error for
/// tensors that are missing or have another shape, and one that lists all those which are not understood.
Graph encoder_graph(const EncoderConfig& config, const WeightSource& weights);

/// The scope that holds the encoder: weights are stored with or without the prefix `bert.` or `distilbert.`.
Parameters encoder_scope(const EncoderConfig& config, const Parameters& p);

/// Names that begin so belong to parts which an encoder does not need: heads, poolers, buffers.
std::vector<std::string> encoder_ignored(const EncoderConfig& config);

}  // namespace rlx
