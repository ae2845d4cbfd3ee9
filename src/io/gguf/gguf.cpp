// Open GGUF models: the files of a split model, lookups, tensors over the mapping.
#include "io/gguf/gguf.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/quote.h"
#include "io/gguf/part.h"
#include "io/shared_copies.h"

namespace rlx {

/// What copies of a file object share. Parts stay where they are: values and names point into them.
struct GgufFile::State {
  std::vector<std::unique_ptr<GgufPart>> parts;
  NameTable names;
  std::vector<GgufRow> rows;
  SharedCopies copies;

  GgufPart& open(const Bytes& file, const std::string& path) {
    parts.push_back(std::make_unique<GgufPart>());
    GgufPart& part = *parts.back();
    part.path = path;
    part.file = file;
    part.parse(names, rows, static_cast<std::uint32_t>(parts.size() - 1));
    return part;
  }
  void seal() {
    if (const auto twice = names.seal()) {
      fail("'{}': tensor {} is there twice", parts[rows[*twice].part]->path, quote(names[*twice]));
    }
  }
};

namespace {

/// What a file says about the split model that it belongs to.
struct Split {
  Index number = 0, count = 1;
  std::optional<Index> tensors;
};

std::optional<Index> split_key(const GgufPart& part, std::string_view key, Index low, Index high) {
  const auto i = part.keys.find(key);
  if (!i) return std::nullopt;
  const GgufValue v = part.value(*i);
  const auto n = v.as<Index>();
  require(n >= low && n <= high, "{} is {}, expected {} to {}", v.place(), n, low, high);
  return n;
}

Split split_of(const GgufPart& part) {
  Split s;
  s.count = split_key(part, "split.count", 0, gguf_max_splits).value_or(1);
  s.count = std::max(s.count, Index{1});
  s.number = split_key(part, "split.no", 0, s.count - 1).value_or(0);
  s.tensors = split_key(part, "split.tensors.count", 0, gguf_max_tensors);
  return s;
}

/// `NAME-00002-of-00003.gguf` without number and count: `NAME`. Throws Error for other names.
std::string split_prefix(const std::string& path, const Split& s) {
  const std::string name = std::filesystem::path(path).filename().string();
  const std::string end = gguf_split_name("", s.number, s.count);
  require(name.ends_with(end) && name.size() > end.size(),
          "'{}' is file {} of a model of {} files, its name was expected to end in '{}'", path, s.number + 1, s.count,
          end);
  return name.substr(0, name.size() - end.size());
}

/// Alignment that loads of a type's elements or block fields need.
std::size_t load_alignment(const GgufTensorType& type) { return type.dtype ? static_cast<std::size_t>(type.bytes) : 4; }

}  // namespace

std::string gguf_split_name(std::string_view prefix, Index number, Index count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", prefix, number + 1, count);
}

GgufFile::GgufFile(const std::string& path, FileMode mode) : state_(std::make_shared<State>()) {
  const Bytes file = MappedFile(path, mode).bytes();
  const Split asked = split_of(state_->open(file, path));
  if (asked.count == 1) {
    state_->seal();
    return;
  }
  const std::string prefix = split_prefix(path, asked);
  state_ = std::make_shared<State>();
  for (Index i = 0; i < asked.count; ++i) {
    const std::string place = i == asked.number ? path : sibling_path(path, gguf_split_name(prefix, i, asked.count));
    const GgufPart& part = state_->open(i == asked.number ? file : MappedFile(place, mode).bytes(), place);
    const Split s = split_of(part);
    require(s.number == i && s.count == asked.count,
            "'{}' says that it is file {} of {}, its place in the model of '{}' is {} of {}", place, s.number + 1,
            s.count, path, i + 1, asked.count);
  }
  const std::optional<Index> stated = split_of(*state_->parts[0]).tensors;
  require(!stated || *stated == count(), "'{}' states {} tensors in {} files, but they hold {}", this->path(),
          stated.value_or(0), asked.count, count());
  state_->seal();
}

GgufFile::GgufFile(const Bytes& file, const std::string& name) : state_(std::make_shared<State>()) {
  const Split s = split_of(state_->open(file, name));
  require(s.count == 1, "'{}' is file {} of a model of {} files, which are found by their path only", name,
          s.number + 1, s.count);
  state_->seal();
}

const std::string& GgufFile::path() const { return state_->parts[0]->path; }
Index GgufFile::parts() const { return static_cast<Index>(state_->parts.size()); }
GgufForm GgufFile::form() const { return state_->parts[0]->form; }
Index GgufFile::alignment() const { return state_->parts[0]->alignment; }

const std::string& GgufFile::part_path(Index part) const {
  require(part >= 0 && part < parts(), "'{}' has {} files, number {} was asked for", path(), parts(), part);
  return state_->parts[static_cast<std::size_t>(part)]->path;
}

Index GgufFile::key_count() const { return static_cast<Index>(state_->parts[0]->values.size()); }

std::string_view GgufFile::key(Index i) const {
  require(i >= 0 && i < key_count(), "'{}' has {} metadata keys, number {} was asked for", path(), key_count(), i);
  return state_->parts[0]->keys[static_cast<std::size_t>(i)];
}

GgufValue GgufFile::value(Index i) const {
  (void)key(i);
  return state_->parts[0]->value(static_cast<std::size_t>(i));
}

std::optional<GgufValue> GgufFile::value(std::string_view key) const {
  const auto i = state_->parts[0]->keys.find(key);
  return i ? std::optional(state_->parts[0]->value(*i)) : std::nullopt;
}

void GgufFile::fail_missing(std::string_view key) const {
  fail("'{}': metadata key {} is missing", path(), quote(key));
}

void GgufFile::fail_count(const GgufValue& value, Index n) const {
  fail("{} is {}, expected {} elements or a single number", value.place(), value.describe(), n);
}

Index GgufFile::count() const { return static_cast<Index>(state_->rows.size()); }

GgufEntry GgufFile::entry(Index i) const {
  require(i >= 0 && i < count(), "'{}' has {} tensors, number {} was asked for", path(), count(), i);
  const GgufRow& row = state_->rows[static_cast<std::size_t>(i)];
  GgufEntry e{.name = state_->names[static_cast<std::size_t>(i)],
              .type = find_gguf_type(row.type),
              .shape = state_->parts[row.part]->shape(row),
              .offset = static_cast<Index>(row.offset),
              .part = row.part};
  e.bytes = e.type->size(e.shape);
  return e;
}

std::vector<GgufEntry> GgufFile::tensors() const {
  std::vector<GgufEntry> all;
  all.reserve(state_->rows.size());
  for (Index i = 0; i < count(); ++i) all.push_back(entry(i));
  return all;
}

bool GgufFile::contains(std::string_view name) const { return state_->names.find(name).has_value(); }

std::size_t GgufFile::row(std::string_view name) const {
  const auto i = state_->names.find(name);
  require(i.has_value(), "'{}' has no tensor {}", path(), quote(name));
  return *i;
}

GgufEntry GgufFile::entry(std::string_view name) const { return entry(static_cast<Index>(row(name))); }

Bytes GgufFile::bytes(std::string_view name) const {
  const GgufEntry e = entry(name);
  const GgufPart& part = *state_->parts[static_cast<std::size_t>(e.part)];
  return slice(part.file, part.data + e.offset, e.bytes);
}

Index GgufFile::copies() const { return state_->copies.made(); }

Tensor GgufFile::at(std::string_view name) const {
  const std::size_t i = row(name);
  const GgufEntry e = entry(static_cast<Index>(i));
  const bool swapped = state_->parts[static_cast<std::size_t>(e.part)]->form.big && e.type->fields[0].width > 1;
  TensorType type;
  try {
    type = rlx_type_of(*e.type, e.shape);
    if (swapped) swap_blocks(*e.type, {});
  } catch (const Error& error) {
    fail("'{}': tensor {}: {}", part_path(e.part), quote(name), error.what());
  }
  Bytes data = bytes(name);
  const auto address = reinterpret_cast<std::uintptr_t>(data.data.data());
  if (swapped || address % load_alignment(*e.type) != 0) {
    data = state_->copies.get(i, data, [&](std::span<std::byte> copy) {
      if (swapped) swap_blocks(*e.type, copy);
    });
  }
  return {type, {std::move(data)}};
}

}  // namespace rlx
