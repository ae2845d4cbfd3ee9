// Where scripts/fetch_models puts a model.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace rlx::test {

/// The folder of a fetched model: $RLX_MODELS/NAME, by default below the user's cache; empty if it is not there.
inline std::optional<std::filesystem::path> model_folder(const std::string& name) {
  const auto variable = [](const char* key) -> std::string {
    const char* value = std::getenv(key);
    return value == nullptr ? "" : value;
  };
  std::filesystem::path root = variable("RLX_MODELS");
  if (root.empty() && !variable("XDG_CACHE_HOME").empty()) {
    root = std::filesystem::path(variable("XDG_CACHE_HOME")) / "rlx" / "models";
  }
  if (root.empty()) root = std::filesystem::path(variable("HOME")) / ".cache" / "rlx" / "models";
  std::filesystem::path folder = root / name;
  std::error_code none;
  if (!std::filesystem::exists(folder / "config.json", none)) return std::nullopt;
  return folder;
}

/// All bytes of a file; an exception if it cannot be read.
inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  file.exceptions(std::ios::badbit | std::ios::failbit);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace rlx::test
