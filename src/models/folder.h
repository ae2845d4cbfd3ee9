// Reading the small files of a model folder.
#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "nn/parameters.h"

namespace rlx {

/// The text of `folder/name`; throws Error when it is missing or larger than `limit` bytes.
std::string read_text(const std::string& folder, const std::string& name, Index limit = Index{1} << 28);
/// Whether `folder/name` is a file.
bool has_file(const std::string& folder, const std::string& name);
/// A JSON file, of at most 16 MB.
JsonDocument read_json(const std::string& folder, const std::string& name);
std::optional<JsonDocument> read_optional_json(const std::string& folder, const std::string& name);

/// The safetensors weights of a folder, mapped.
std::unique_ptr<WeightSource> open_weights(const std::string& folder);

}  // namespace rlx
