// Opening language models: a GGUF file, or a folder with config.json and safetensors files.
#pragma once

#include <memory>
#include <string>

#include "io/gguf/gguf.h"
#include "models/decoder_config.h"
#include "nn/parameters.h"

namespace rlx {

/// The metadata of a GGUF file that describes the model: all but `tokenizer.` and the texts of `general.`.
ModelFields gguf_fields(const GgufFile& file);

/// The tensors of a GGUF file; matrices stay as they are stored.
class GgufWeights final : public WeightSource {
 public:
  explicit GgufWeights(GgufFile file) : file_(std::move(file)) {}
  std::string description() const override { return file_.path(); }
  std::vector<std::string> names() const override;
  bool contains(std::string_view name) const override { return file_.contains(name); }
  Tensor at(std::string_view name) const override { return file_.at(name); }

 private:
  GgufFile file_;
};

/// A decoder as it lies on disk.
struct DecoderFiles {
  DecoderConfig config;
  std::unique_ptr<WeightSource> weights;
};

/// Opens `path`: a folder with config.json and model.safetensors (or its index), or a GGUF file, any of a split one.
/// Throws Error as the readers do, and for an architecture or field that is not understood.
DecoderFiles open_decoder(const std::string& path);

}  // namespace rlx
