// Where scripts/fetch_models puts a model.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace rlx::test {

/// Where fetched models lie: $RLX_MODELS, by default below the user's cache.
inline std::filesystem::path models_root() {
  const auto variable = [](const char* key) -> std::string {
    const char* value = std::getenv(key);
    return value == nullptr ? "" : value;
  };
  if (!variable("RLX_MODELS").empty()) return variable("RLX_MODELS");
  if (!variable("XDG_CACHE_HOME").empty()) {
    return std::filesystem::path(variable("XDG_CACHE_HOME")) / "rlx" / "models";
  }
  return std::filesystem::path(variable("HOME")) / ".cache" / "rlx" / "models";
}

/// A file of a fetched model; empty if it is not there.
inline std::optional<std::filesystem::path> model_file(const std::string& name, const std::string& file) {
  std::filesystem::path path = models_root() / name / file;
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return std::nullopt;
  return path;
}

/// The folder of a fetched model with a config.json; empty if it is not there.
inline std::optional<std::filesystem::path> model_folder(const std::string& name) {
  if (!model_file(name, "config.json")) return std::nullopt;
  return models_root() / name;
}

/// All bytes of a file; an exception if it cannot be read.
inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  file.exceptions(std::ios::badbit | std::ios::failbit);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace rlx::test
