// GGUF files: metadata and tensors of a model, read over the mapped file after everything has been checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/os_posix.h"
#include "core/tensor.h"
#include "io/gguf/types.h"
#include "io/gguf/value.h"

namespace rlx {

/// Limits of the reader. Opening a file takes at most its size (mapped) plus its size (tables) plus 64 MB.
inline constexpr Index gguf_max_tensors = Index{1} << 20;
inline constexpr Index gguf_max_keys = 65'536;
inline constexpr Index gguf_max_key_bytes = 65'535;
inline constexpr Index gguf_max_name_bytes = 63;
inline constexpr Index gguf_max_rank = 4;
inline constexpr Index gguf_max_alignment = Index{1} << 24;
inline constexpr Index gguf_max_splits = 10'000;

/// One tensor as the header states it.
struct GgufEntry {
  std::string_view name;  // valid as long as the file object or a copy of it
  const GgufTensorType* type = nullptr;
  std::vector<Index>
      shape;         // as everywhere in rlx, the last extent belongs to neighbours in memory (files say it first)
  Index offset = 0;  // bytes from the start of the data section of its file
  Index bytes = 0;
  Index part = 0;  // which file of a split model
};

/// An open model of one or several files. Versions 1 to 3, both byte orders. Every rule has been checked: counts and
/// lengths against the size of the file, types, keys (1 to 65,535 bytes of UTF-8, none twice), names (1 to 63 bytes of
/// UTF-8, none twice), 1 to 4 extents from 1, rows of whole blocks, sizes without overflow, tensors that follow each
/// other in the order of the header without gap but the alignment and end inside the file; of split models the names
/// `NAME-00001-of-00003.gguf`, beside each other, and the keys `split.no`, `split.count`, `split.tensors.count`.
/// Const functions may be called from several threads. Copies share everything.
class GgufFile {
 public:
  /// Opens and checks; `path` may be any file of a split model. Throws Error that names the file, the place and the
  /// value.
  explicit GgufFile(const std::string& path, FileMode mode = FileMode::map);
  /// The same over bytes of one file that are there already; `name` stands for the path in messages.
  GgufFile(const Bytes& file, const std::string& name);

  /// The first file.
  const std::string& path() const;
  /// Number of files.
  Index parts() const;
  const std::string& part_path(Index part) const;
  GgufForm form() const;
  Index alignment() const;

  /// Metadata, in the order of the file; of a split model that of its first file.
  Index key_count() const;
  std::string_view key(Index i) const;
  GgufValue value(Index i) const;
  std::optional<GgufValue> value(std::string_view key) const;
  bool has(std::string_view key) const { return value(key).has_value(); }
  /// The value of a key that must be there, as T (see GgufValue::as). Throws Error with the file, the key, what is
  /// there and what was expected.
  template <class T>
  T get(std::string_view key) const;
  /// The same for a key that may be missing; a value of another type is an Error all the same.
  template <class T>
  std::optional<T> find(std::string_view key) const;
  template <class T>
  T get_or(std::string_view key, T fallback) const;
  /// `n` numbers, one for each layer: an array of n, or one number for all of them.
  template <class T>
  std::vector<T> get_each(std::string_view key, Index n) const;

  /// Number of tensors, of all files.
  Index count() const;
  /// Tensor `i` of `count()`, in the order of the files.
  GgufEntry entry(Index i) const;
  std::vector<GgufEntry> tensors() const;
  bool contains(std::string_view name) const;
  /// The entry called `name`; throws Error when there is none.
  GgufEntry entry(std::string_view name) const;
  /// The tensor called `name`, encoded along its last axis where its type has blocks. It shares the bytes of the file,
  /// unless the file is big-endian or its offset is no multiple of its element's alignment: such a tensor is copied,
  /// once as long as anybody holds it. Throws Error when there is none, rlx has no codec for its type, or the type has
  /// no defined big-endian form.
  Tensor at(std::string_view name) const;
  /// The bytes of a tensor as they stand in the file.
  Bytes bytes(std::string_view name) const;
  /// How many copies `at` has made.
  Index copies() const;

 private:
  struct State;
  [[noreturn]] void fail_missing(std::string_view key) const;
  [[noreturn]] void fail_count(const GgufValue& value, Index n) const;
  std::size_t row(std::string_view name) const;

  std::shared_ptr<State> state_;
};

/// The name of file `number` (from 0) of `count`: `PREFIX-00001-of-00003.gguf`.
std::string gguf_split_name(std::string_view prefix, Index number, Index count);

template <class T>
T GgufFile::get(std::string_view key) const {
  const std::optional<GgufValue> v = value(key);
  if (!v) fail_missing(key);
  return v->as<T>();
}

template <class T>
std::optional<T> GgufFile::find(std::string_view key) const {
  const std::optional<GgufValue> v = value(key);
  return v ? std::optional<T>(v->as<T>()) : std::nullopt;
}

template <class T>
T GgufFile::get_or(std::string_view key, T fallback) const {
  std::optional<T> v = find<T>(key);
  return v ? std::move(*v) : std::move(fallback);
}

template <class T>
std::vector<T> GgufFile::get_each(std::string_view key, Index n) const {
  const std::optional<GgufValue> v = value(key);
  if (!v) fail_missing(key);
  if (!v->is_array()) return std::vector<T>(static_cast<std::size_t>(n), v->as<T>());
  if (v->count() != n) fail_count(*v, n);
  return v->as<std::vector<T>>();
}

}  // namespace rlx
