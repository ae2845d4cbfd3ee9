// The writer of GGUF files.
#include "io/gguf/writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <set>

#include "core/checked.h"
#include "core/quote.h"
#include "io/onnx/utf8.h"

namespace rlx {

namespace {

Index padded(Index n, Index alignment) { return (n + alignment - 1) / alignment * alignment; }

void append_value(std::string& out, const GgufValue& v) {
  if (v.type() == GgufType::array) {
    detail::append_number(out, static_cast<std::uint32_t>(v.element_type()));
    detail::append_number(out, static_cast<std::uint64_t>(v.count()));
    for (const GgufValue& e : v.elements()) append_value(out, e);
  } else if (v.type() == GgufType::string) {
    detail::append_value(out, v.as<std::string_view>());
  } else {
    std::string number(reinterpret_cast<const char*>(v.bytes().data()), v.bytes().size());
    if (v.form().big) std::ranges::reverse(number);
    out += number;
  }
}

std::string encoded(const GgufValue& v) {
  std::string out;
  detail::append_number(out, static_cast<std::uint32_t>(v.type()));
  if (v.form().big || v.form().version == 1) {
    append_value(out, v);
  } else {
    out.append(reinterpret_cast<const char*>(v.bytes().data()), v.bytes().size());
  }
  return out;
}

}  // namespace

GgufMetadata::GgufMetadata(const GgufFile& file) {
  for (Index i = 0; i < file.key_count(); ++i) {
    if (!file.key(i).starts_with("split.")) set(file.key(i), file.value(i));
  }
}

void GgufMetadata::set(std::string_view key, const GgufValue& value) { put(key, encoded(value)); }

void GgufMetadata::put(std::string_view key, std::string bytes) {
  require(!key.empty() && static_cast<Index>(key.size()) <= gguf_max_key_bytes && onnx::is_text(key),
          "metadata key {} has {} bytes, expected 1 to {} of UTF-8 without zero bytes", quote(key), key.size(),
          gguf_max_key_bytes);
  if (key == "general.alignment") {
    std::uint32_t type = 0, n = 0;
    std::memcpy(&type, bytes.data(), sizeof type);
    if (bytes.size() == 8) std::memcpy(&n, bytes.data() + 4, sizeof n);
    require(type == static_cast<std::uint32_t>(GgufType::u32) && std::has_single_bit(n) && n <= gguf_max_alignment,
            "general.alignment: expected a power of two from 1 to {} of type u32", gguf_max_alignment);
    alignment_ = n;
  }
  const auto it = std::ranges::find(items_, key, &Item::key);
  if (it != items_.end()) {
    it->bytes = std::move(bytes);
  } else {
    items_.push_back({std::string(key), std::move(bytes)});
  }
}

void GgufMetadata::erase(std::string_view key) {
  std::erase_if(items_, [&](const Item& i) { return i.key == key; });
  if (key == "general.alignment") alignment_ = 32;
}

bool GgufMetadata::has(std::string_view key) const {
  return std::ranges::find(items_, key, &Item::key) != items_.end();
}

GgufWriter::GgufWriter(const std::string& path, const GgufMetadata& metadata, std::vector<GgufPlan> tensors,
                       GgufSplits splits)
    : tensors_(std::move(tensors)), alignment_(metadata.alignment()) {
  check();
  require(metadata.count() + 3 <= gguf_max_keys, "{} metadata keys, at most {} are allowed", metadata.count(),
          gguf_max_keys - 3);
  divide(splits);
  const auto count = static_cast<Index>(parts_.size());
  const std::string prefix = path.ends_with(".gguf") ? path.substr(0, path.size() - 5) : path;
  for (Index i = 0; i < count; ++i) {
    Part& part = parts_[static_cast<std::size_t>(i)];
    paths_.push_back(count == 1 ? path : gguf_split_name(prefix, i, count));
    part.file = std::make_unique<AtomicFile>(paths_.back());
    if (count == 1) {
      part.file->write(header(metadata, part));
      continue;
    }
    GgufMetadata own = i == 0 ? metadata : GgufMetadata();
    if (i > 0 && alignment_ != 32) own.set("general.alignment", static_cast<std::uint32_t>(alignment_));
    own.set("split.no", static_cast<std::uint16_t>(i));
    own.set("split.count", static_cast<std::uint16_t>(count));
    own.set("split.tensors.count", static_cast<std::int32_t>(tensors_.size()));
    part.file->write(header(own, part));
  }
}

/// What the reader would refuse.
void GgufWriter::check() const {
  require(static_cast<Index>(tensors_.size()) <= gguf_max_tensors, "{} tensors, at most {} are allowed",
          tensors_.size(), gguf_max_tensors);
  std::set<std::string_view> names;
  for (const GgufPlan& t : tensors_) {
    require(!t.name.empty() && static_cast<Index>(t.name.size()) <= gguf_max_name_bytes && onnx::is_text(t.name),
            "tensor name {} has {} bytes, expected 1 to {} of UTF-8 without zero bytes", quote(t.name), t.name.size(),
            gguf_max_name_bytes);
    require(names.insert(t.name).second, "tensor {} is there twice", quote(t.name));
    ensure(t.type != nullptr, "a tensor that is written has a type");
    const auto rank = static_cast<Index>(t.shape.size());
    require(rank >= 1 && rank <= gguf_max_rank && std::ranges::all_of(t.shape, [](Index e) { return e > 0; }),
            "tensor {} has the shape {}, expected 1 to {} extents from 1", quote(t.name), text(t.shape), gguf_max_rank);
    require(t.shape.back() % t.type->block == 0, "tensor {} has rows of {} elements, {} needs a multiple of {}",
            quote(t.name), t.shape.back(), t.type->name, t.type->block);
  }
}

void GgufWriter::divide(GgufSplits splits) {
  parts_.emplace_back();
  Checked bytes(0);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Index size = tensors_[i].type->size(tensors_[i].shape);
    const bool full = (splits.tensors > 0 && static_cast<Index>(i - parts_.back().begin) >= splits.tensors) ||
                      (splits.bytes > 0 && (bytes + Checked(size)).value("a GGUF file") > splits.bytes);
    if (full && i > parts_.back().begin) {
      parts_.push_back({.begin = i, .end = i, .file = {}});
      bytes = Checked(0);
    }
    parts_.back().end = i + 1;
    bytes = bytes + Checked(padded(size, alignment_));
    (void)bytes.value("a GGUF file");
  }
  require(static_cast<Index>(parts_.size()) <= gguf_max_written_splits, "{} files of a model, at most {} are written",
          parts_.size(), gguf_max_written_splits);
}

std::string GgufWriter::header(const GgufMetadata& metadata, const Part& part) const {
  std::string out = "GGUF";
  detail::append_number(out, std::uint32_t{3});
  detail::append_number(out, static_cast<std::uint64_t>(part.end - part.begin));
  detail::append_number(out, static_cast<std::uint64_t>(metadata.count()));
  for (const GgufMetadata::Item& item : metadata.items_) {
    detail::append_value(out, item.key);
    out += item.bytes;
  }
  Index offset = 0;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const GgufPlan& t = tensors_[i];
    detail::append_value(out, t.name);
    detail::append_number(out, static_cast<std::uint32_t>(t.shape.size()));
    for (auto e = t.shape.rbegin(); e != t.shape.rend(); ++e) {
      detail::append_number(out, static_cast<std::uint64_t>(*e));
    }
    detail::append_number(out, t.type->id);
    detail::append_number(out, static_cast<std::uint64_t>(offset));
    offset = padded(offset + t.type->size(t.shape), alignment_);
  }
  out.resize(static_cast<std::size_t>(padded(static_cast<Index>(out.size()), alignment_)));
  return out;
}

void GgufWriter::write(std::span<const std::byte> data) {
  require(next_ < tensors_.size(), "all {} tensors are written already", tensors_.size());
  const GgufPlan& t = tensors_[next_];
  const Index size = t.type->size(t.shape);
  require(static_cast<Index>(data.size()) == size, "tensor {} of type {} and shape {} takes {} bytes, {} were given",
          quote(t.name), t.type->name, text(t.shape), size, data.size());
  while (next_ >= parts_[part_].end) ++part_;
  AtomicFile& file = *parts_[part_].file;
  file.write(data);
  file.write(std::string(static_cast<std::size_t>(padded(size, alignment_) - size), '\0'));
  ++next_;
}

void GgufWriter::commit() {
  require(next_ == tensors_.size(), "{} of {} tensors are written, tensor {} is missing", next_, tensors_.size(),
          next_ < tensors_.size() ? quote(tensors_[next_].name) : "");
  // The first file last: a model whose first file is there is whole.
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) part->file->commit();
}

Index GgufWriter::size() const {
  Index n = 0;
  for (const Part& part : parts_) n += part.file->size();
  return n;
}

void write_gguf(const std::string& path, const GgufMetadata& metadata,
                const std::vector<std::pair<std::string, Tensor>>& tensors, GgufSplits splits) {
  std::vector<GgufPlan> plans;
  for (const auto& [name, t] : tensors) plans.push_back({name, &gguf_type_of(t.type()), t.shape()});
  GgufWriter writer(path, metadata, std::move(plans), splits);
  for (const auto& item : tensors) writer.write(item.second);
  writer.commit();
}

}  // namespace rlx
