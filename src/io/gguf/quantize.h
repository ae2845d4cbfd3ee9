// Quantising the weights of a model file.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/executor.h"
#include "io/gguf/mix.h"
#include "io/gguf/writer.h"
#include "io/safetensors.h"

namespace rlx {

/// A model to be quantised: what is copied, and where its tensors come from.
struct QuantizeInput {
  GgufMetadata metadata;
  GgufMixFacts facts;
  std::vector<std::pair<std::string, TensorType>> tensors;
  std::function<Tensor(const std::string& name)> at;
};

/// The weights of a GGUF file. The file object may go.
QuantizeInput quantize_input(const GgufFile& file);
/// The weights of safetensors files under the names that they have; of metadata there is `architecture` alone.
QuantizeInput quantize_input(const std::shared_ptr<const SafetensorsModel>& model, std::string_view architecture);

/// Weights of the squared error: for a tensor, a number for each column, of stacked matrices for each matrix.
using ImportanceTable = std::map<std::string, std::vector<float>, std::less<>>;
/// Reads the importance files of llama.cpp, in GGUF or in the older form. Throws Error that names file and place.
ImportanceTable read_importance(const std::string& path);

struct QuantizeOptions {
  const GgufMix* mix = nullptr;
  std::vector<std::string> keep = {};  // tensors whose names match one of these patterns (* and ?) keep their type
  const ImportanceTable* importance = nullptr;
  GgufSplits splits = {};
  /// Called with the name of the tensor and how much is done, from 0 to 1.
  std::function<void(std::string_view name, double done)> progress = {};
};

/// What became of a tensor.
struct QuantizedTensor {
  std::string name;
  TensorType from;
  const GgufTensorType* to = nullptr;
  Index bytes_before = 0, bytes_after = 0;
  double error = 0;  // root of the summed squares of the differences over that of the values; 0 where nothing is lost
};

struct QuantizeReport {
  std::vector<QuantizedTensor> tensors;
  std::vector<std::string> paths;
};

/// Writes `input` to `path` with every tensor in the type that the mix gives it; norms and vectors become f32 where
/// they are halves. The result does not depend on the number of threads. Throws Error for types without encoder and for
/// importance that does not fit.
QuantizeReport quantize_gguf(const QuantizeInput& input, const std::string& path, const QuantizeOptions& options,
                             Executor& executor);

/// Whether `name` matches a pattern: `*` stands for any text, `?` for one byte.
bool matches_pattern(std::string_view name, std::string_view pattern);

}  // namespace rlx
