// Models of several safetensors files joined by an index, and the writer.
#include <algorithm>
#include <filesystem>

#include "core/checked.h"
#include "core/error.h"
#include "core/quote.h"
#include "io/safetensors.h"

namespace rlx {

namespace {

constexpr int max_index_depth = 16;  // of values beside weight_map, which are skipped

std::string_view as_text(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data.data()), bytes.data.size()};
}

/// What an index says: a file for each tensor.
struct IndexParser {
  JsonCursor in;
  NameTable& names;
  std::vector<std::uint32_t>& shard;
  std::vector<std::string> shards;
  std::map<std::string, std::uint32_t, std::less<>> numbers;

  void run() {
    bool seen = false;
    in.expect('{');
    if (!in.accept('}')) {
      do {
        in.peek();
        const std::size_t at = in.position();
        const JsonString key = in.string();
        in.expect(':');
        if (key.raw != "weight_map") {
          in.skip_value(max_index_depth);
          continue;
        }
        if (seen) in.fail_at(at, "weight_map is there twice");
        seen = true;
        weight_map();
      } while (in.accept(','));
      in.expect('}');
    }
    in.finish();
    if (!seen) in.fail_at(0, "the index has no weight_map");
  }

  void weight_map() {
    in.expect('{');
    if (in.accept('}')) return;
    do {
      in.peek();
      const std::size_t at = in.position();
      const JsonString name = in.string();
      in.expect(':');
      if (names.size() >= static_cast<std::size_t>(safetensors_max_tensors)) {
        in.fail_at(at, fmt::format("more than {} tensors", safetensors_max_tensors));
      }
      names.add(name);
      shard.push_back(number(at));
    } while (in.accept(','));
    in.expect('}');
  }

  std::uint32_t number(std::size_t at) {
    const JsonString file = in.string();
    // 255 bytes is what a file name may have; each can be written as an escape of six.
    if (file.raw.size() > 6 * 255) in.fail_at(at, fmt::format("a file name of {} bytes", file.raw.size()));
    const auto [it, fresh] = numbers.try_emplace(file.text(), static_cast<std::uint32_t>(shards.size()));
    if (fresh) {
      if (static_cast<Index>(shards.size()) >= safetensors_max_shards) {
        in.fail_at(at, fmt::format("more than {} files", safetensors_max_shards));
      }
      shards.push_back(it->first);
    }
    return it->second;
  }
};

}  // namespace

SafetensorsModel::SafetensorsModel(const std::string& path, FileMode mode) : path_(path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    const std::filesystem::path folder = path;
    path_ = (folder / "model.safetensors.index.json").string();
    if (!std::filesystem::exists(path_, error)) path_ = (folder / "model.safetensors").string();
    require(std::filesystem::exists(path_, error),
            "folder '{}' has neither model.safetensors.index.json nor model.safetensors", path);
  }
  if (path_.ends_with(".json")) {
    open_index(path_, mode);
    return;
  }
  files_.emplace_back(path_, mode);
  for (const SafetensorsEntry& e : files_[0].tensors()) names_.add(e.name);
  shard_.assign(names_.size(), 0);
  names_.seal();
}

void SafetensorsModel::open_index(const std::string& path, FileMode mode) {
  // A copy: the text is small, and it must not change between the check and the use.
  index_ = MappedFile(path, FileMode::read).bytes();
  const auto size = static_cast<Index>(index_.data.size());
  require(size <= safetensors_max_index, "index '{}' has {} bytes, at most {} are allowed", path, size,
          safetensors_max_index);
  IndexParser parser{JsonCursor(as_text(index_), fmt::format("index '{}'", path)), names_, shard_, {}, {}};
  parser.run();
  if (const auto twice = names_.seal()) fail("index '{}': tensor {} is there twice", path, quote(names_[*twice]));
  for (const std::string& name : parser.shards) files_.emplace_back(sibling_path(path, name), mode);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const SafetensorsFile& file = files_[shard_[i]];
    if (!file.contains(names_[i])) {
      fail("index '{}' says that tensor {} is in '{}', which has no such tensor", path, quote(names_[i]), file.path());
    }
  }
}

std::vector<std::string> SafetensorsModel::names() const {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < names_.size(); ++i) all.emplace_back(names_[i]);
  return all;
}

const SafetensorsFile& SafetensorsModel::file_of(std::string_view name) const {
  const auto i = names_.find(name);
  require(i.has_value(), "'{}' has no tensor {}", path_, quote(name));
  return files_[shard_[*i]];
}

SafetensorsEntry SafetensorsModel::find(std::string_view name) const { return file_of(name).find(name); }
Tensor SafetensorsModel::at(std::string_view name) const { return file_of(name).at(name); }

namespace {

/// A JSON string; throws Error for text that is not UTF-8.
std::string json_string(std::string_view text, const char* what) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
  JsonCursor(out, fmt::format("{} {}", what, quote(text))).string();
  return out;
}

std::string header_text(const std::vector<const std::pair<const std::string, Tensor>*>& order,
                        const std::map<std::string, std::string>& metadata) {
  std::string out = "{";
  if (!metadata.empty()) {
    out += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (out.back() != '{') out += ',';
      out += json_string(key, "metadata key") + ':' + json_string(value, "metadata value");
    }
    out += '}';
  }
  Checked at(0);
  for (const auto* item : order) {
    const auto& [name, tensor] = *item;
    const Index begin = at.value("a safetensors file");
    at = at + Checked(static_cast<Index>(tensor.bytes().size()));
    std::string shape;
    for (const Index e : tensor.shape()) shape += fmt::format("{}{}", shape.empty() ? "" : ",", e);
    if (out.size() > 1) out += ',';
    out +=
        fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", json_string(name, "tensor name"),
                    safetensors_dtype(tensor.dtype()), shape, begin, at.value("a safetensors file"));
  }
  out += '}';
  while (out.size() % 64 != 56) out += ' ';
  return out;
}

}  // namespace

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& item : tensors) {
    const Tensor& t = item.second;
    require(item.first != "__metadata__", "a tensor cannot be called '__metadata__'");
    require(!t.type().encoding, "tensor {} is {}, safetensors holds no encoded tensors", quote(item.first),
            t.type().text());
    require(t.rank() <= safetensors_max_rank, "tensor {} has {} dimensions, at most {} are allowed", quote(item.first),
            t.rank(), safetensors_max_rank);
    order.push_back(&item);
  }
  require(static_cast<Index>(order.size()) <= safetensors_max_tensors, "{} tensors, at most {} are allowed",
          order.size(), safetensors_max_tensors);
  require(static_cast<Index>(metadata.size()) <= safetensors_max_metadata,
          "{} metadata entries, at most {} are allowed", metadata.size(), safetensors_max_metadata);
  std::sort(order.begin(), order.end(), [](const auto* x, const auto* y) {
    const int p = bits(x->second.dtype()), q = bits(y->second.dtype());
    return p != q ? p > q : x->first < y->first;
  });
  const std::string header = header_text(order, metadata);
  require(static_cast<Index>(header.size()) <= safetensors_max_header, "a header of {} bytes, at most {} are allowed",
          header.size(), safetensors_max_header);
  AtomicFile file(path);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const auto* item : order) file.write(item->second.bytes());
  file.commit();
}

}  // namespace rlx
