// Model folders.
#include "models/folder.h"

#include <filesystem>

#include "core/error.h"
#include "core/os_posix.h"
#include "io/safetensors.h"

namespace rlx {

namespace {

class SafetensorsWeights final : public WeightSource {
 public:
  explicit SafetensorsWeights(const std::string& folder) : path_(folder), model_(folder) {}
  std::string description() const override { return path_; }
  std::vector<std::string> names() const override { return model_.names(); }
  bool contains(std::string_view name) const override { return model_.contains(name); }
  Tensor at(std::string_view name) const override { return model_.at(name); }

 private:
  std::string path_;
  SafetensorsModel model_;
};

std::string join(const std::string& folder, const std::string& name) {
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

std::string read_text(const std::string& folder, const std::string& name, Index limit) {
  const MappedFile file(join(folder, name), FileMode::read);
  require(file.size() <= limit, "{} has {} bytes, at most {} are read", file.path(), file.size(), limit);
  const auto data = file.bytes().data;
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

bool has_file(const std::string& folder, const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists(join(folder, name), ignored);
}

JsonDocument read_json(const std::string& folder, const std::string& name) {
  return JsonDocument::parse(read_text(folder, name, Index{1} << 24), join(folder, name));
}

std::optional<JsonDocument> read_optional_json(const std::string& folder, const std::string& name) {
  if (!has_file(folder, name)) return std::nullopt;
  return read_json(folder, name);
}

std::unique_ptr<WeightSource> open_weights(const std::string& folder) {
  return std::make_unique<SafetensorsWeights>(folder);
}

}  // namespace rlx
