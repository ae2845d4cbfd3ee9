// The table of decoder architectures: what each adds to the common reading of a description, and its tensors' names.
#pragma once

#include <span>

#include "models/decoder_config.h"
#include "models/stored_weights.h"

namespace rlx {

/// A description that is being read into a config. Names come in pairs: that of GGUF metadata below the architecture's
/// name, and that of config.json; an empty one is not read there.
class DecoderReading {
 public:
  DecoderReading(DecoderConfig& to, const ModelFields& from, std::string prefix)
      : c(to), f(from), prefix_(std::move(prefix)) {}

  /// The name that counts here; of `hf` names separated by `|` the first that is there, else the first.
  std::string name(std::string_view gguf, std::string_view hf) const;
  bool has(std::string_view gguf, std::string_view hf) const;
  Index size(std::string_view gguf, std::string_view hf) const;
  Index size_or(std::string_view gguf, std::string_view hf, Index fallback) const;
  double real_or(std::string_view gguf, std::string_view hf, double fallback) const;
  bool gguf() const { return c.from_gguf; }

  DecoderConfig& c;
  const ModelFields& f;

 private:
  std::string prefix_;
};

/// Takes what is particular about an architecture from its description.
using DecoderFeature = void (*)(DecoderReading&);

/// One architecture. A GGUF name may stand in several rows (the first counts), a model_type in one.
struct Architecture {
  std::string_view gguf, hf;
  NormKind norm = NormKind::rms;
  bool pre_norm = true, post_norm = false;
  QkNorm qk_norm = QkNorm::none;
  std::string_view activation;  // where a description does not say it
  bool gated = true;
  RopePairing gguf_pairing = RopePairing::neox;
  bool rotary = true;
  double theta = 10000;        // where a config.json does not say it
  bool shifted_norms = false;  // HuggingFace's files store weights of norms less 1
  bool tied = false;           // where a config.json does not say it
  std::span<const StoredName> hf_names;
  std::span<const StoredName> gguf_names;  // before the common ones
  std::span<const DecoderFeature> features;
};

/// All rows.
std::span<const Architecture> architectures();
/// The row of a GGUF architecture or of a model_type; throws Error that lists those which are known.
const Architecture& architecture_of(const ModelFields& f, std::string_view field, bool gguf);
/// The row that a config was made by.
const Architecture& architecture_of(const DecoderConfig& config);
/// The weights of a decoder under the names that docs/models.md lists, whatever names and layouts the file has. Both
/// must outlive the result.
StoredWeights decoder_weights(const WeightSource& source, const DecoderConfig& config);

/// Reads rotary embeddings of all layers, and of those with a window where they differ.
void read_rope(DecoderReading& r, const Architecture& a);

}  // namespace rlx
