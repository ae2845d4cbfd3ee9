// The architecture of a decoder as data, read from GGUF metadata or a HuggingFace config.json.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "models/fields.h"
#include "ops/rope/rope.h"

namespace rlx {

/// How the frequencies of rotary embeddings are stretched to longer sequences.
enum class RopeScaling : std::uint8_t {
  none,
  linear,    // all frequencies divided by `factor`
  ntk,       // theta raised so that the slowest frequency fits the longest sequence, once that exceeds `original`
  yarn,      // slow frequencies divided, fast ones kept, a ramp between (Peng et al. 2023)
  llama3,    // the same with another ramp, by wavelength
  longrope,  // every frequency divided by its own factor, of which there is a short and a long list
};
std::string_view rope_scaling_name(RopeScaling scaling);

/// Rotary embeddings of some layers.
struct RopeConfig {
  RopePairing pairing = RopePairing::neox;
  Index dims = 0;  // elements of a head that are rotated, the first ones; 0: no rotary embeddings
  double theta = 10000;
  RopeScaling scaling = RopeScaling::none;
  double factor = 1;
  Index original = 0;  // positions that the model was first trained with
  double beta_fast = 32, beta_slow = 1;
  bool truncate = true;                    // yarn: the ramp begins and ends at whole numbers
  double low_factor = 1, high_factor = 4;  // llama3
  double attention_factor = 1;             // cosines and sines are multiplied by it
  std::vector<double> short_factors, long_factors;
  bool operator==(const RopeConfig&) const = default;
};

/// Angle of one position for every rotated pair, `dims / 2` numbers, for sequences of up to `context` positions.
std::vector<double> rope_frequencies(const RopeConfig& rope, Index context);

enum class NormKind : std::uint8_t { rms, layer };
/// What of queries and keys is normalised before they are rotated.
enum class QkNorm : std::uint8_t { none, head, whole };

/// Feed-forward parts of which a router picks some for each token.
struct ExpertsConfig {
  Index count = 0;        // 0: no experts
  Index used = 0;         // experts a token goes through
  Index ffn = 0;          // inner size of an expert
  bool normalise = true;  // weights of the experts that are used add up to 1
};

/// Every hyperparameter of a decoder.
struct DecoderConfig {
  std::string architecture;  // its row in the table of architectures
  Index layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, vocab = 0;
  Index context = 0;  // positions that the file says the model has

  NormKind norm = NormKind::rms;
  double epsilon = 1e-6;
  bool pre_norm = true, post_norm = false;  // before attention and feed-forward part, and behind them
  QkNorm qk_norm = QkNorm::none;
  std::string activation = "silu";
  bool gated = true;  // activation(gate(x)) * up(x), else activation(up(x))
  ExpertsConfig experts;

  RopeConfig rope, local_rope;  // the latter of layers with a window, where `local` says so
  bool local = false;
  bool learned_positions = false;  // a table of positions is added to the embedding
  std::vector<Index> windows;      // by layer: keys a query sees, its own included; 0: all before it

  double attention_scale = 0;                                       // of scores; 0: 1 / sqrt(head_size)
  double attention_cap = 0, logit_cap = 0;                          // soft caps; 0: none
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;  // multipliers of values
  std::optional<bool> tied;  // the head is the embedding table; none: when there is no head among the weights

  std::optional<bool> attention_bias, ffn_bias;  // none: as the weights have them

  // How this file stores weights.
  double norm_offset = 0;  // added to the stored weights of norms
  bool from_gguf = false;  // names and layouts are those of GGUF files, else those of HuggingFace

  Index query_size() const { return heads * head_size; }
  Index key_size() const { return kv_heads * head_size; }
};

/// From GGUF metadata: the fields `general.architecture` and those that begin with its name. `vocab` stays 0 where the
/// metadata does not say it. Throws Error that names file, field, value and what is expected; one for all fields of the
/// architecture that are not understood, and for an architecture that is unknown, with those that are known.
DecoderConfig decoder_config_from_gguf(const ModelFields& metadata);
/// From a config.json of HuggingFace; errors likewise.
DecoderConfig decoder_config_from_json(const JsonDocument& config, const std::string& description);
DecoderConfig decoder_config_from_hf(const ModelFields& config);

}  // namespace rlx
