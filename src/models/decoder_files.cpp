// Language models on disk.
#include "models/decoder_files.h"

#include <filesystem>

#include "core/error.h"
#include "models/folder.h"

namespace rlx {

namespace {

ModelFields::Value field_of(const GgufValue& v) {
  if (v.is_array()) {
    if (v.element_type() == GgufType::string) return v.as<std::vector<std::string>>();
    if (v.element_type() == GgufType::array) return v.describe();
    if (v.element_type() != GgufType::boolean) return v.as<std::vector<double>>();
    std::vector<double> flags;
    for (const bool flag : v.as<std::vector<bool>>()) flags.push_back(flag ? 1 : 0);
    return flags;
  }
  if (v.type() == GgufType::boolean) return v.as<bool>();
  if (v.type() == GgufType::string) return v.as<std::string>();
  return is_integer(v.type()) ? ModelFields::Value(v.as<Index>()) : ModelFields::Value(v.as<double>());
}

}  // namespace

ModelFields gguf_fields(const GgufFile& file) {
  ModelFields fields(file.path());
  for (Index i = 0; i < file.key_count(); ++i) {
    const std::string_view key = file.key(i);
    const bool other = key.starts_with("tokenizer.") || key.starts_with("general.");
    if (!other || key == "general.architecture") fields.set(std::string(key), field_of(file.value(i)));
  }
  return fields;
}

std::vector<std::string> GgufWeights::names() const {
  std::vector<std::string> all;
  for (const GgufEntry& e : file_.tensors()) all.emplace_back(e.name);
  return all;
}

DecoderFiles open_decoder(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    return {decoder_config_from_json(read_json(path, "config.json"), path + "/config.json"), open_weights(path)};
  }
  const GgufFile file(path);
  return {decoder_config_from_gguf(gguf_fields(file)), std::make_unique<GgufWeights>(file)};
}

}  // namespace rlx
