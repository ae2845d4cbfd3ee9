// safetensors files: a reader over the mapped file that checks everything before it hands out a tensor, models of
// several files joined by an index, and a writer.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/os_posix.h"
#include "core/tensor.h"
#include "io/name_table.h"
#include "io/shared_copies.h"

namespace rlx {

/// Limits of the reader. The header size is the format's own; the others keep memory bounded: opening a file takes at
/// most its size (mapped) plus its size (decoded names, metadata) plus 64 MB.
inline constexpr Index safetensors_max_header = 100'000'000;
inline constexpr Index safetensors_max_tensors = Index{1} << 20;
inline constexpr Index safetensors_max_metadata = 65'536;  // entries
inline constexpr Index safetensors_max_rank = 64;
inline constexpr Index safetensors_max_index = Index{1} << 26;  // bytes of an index file
inline constexpr Index safetensors_max_shards = 10'000;

/// One tensor as the header states it.
struct SafetensorsEntry {
  std::string_view name;       // valid as long as the file object
  std::string_view format;     // the file's name of the element type, `F32`
  std::optional<DType> dtype;  // empty for F4, F6_E2M3, F6_E3M2, F8_E4M3FNUZ and F8_E5M2FNUZ, which rlx has no type for
  std::vector<Index> shape;
  Index begin = 0, end = 0;  // bytes of the data section
};

/// An open file. Every rule of the format has been checked: header length at most 100,000,000 and inside the file, text
/// that starts with `{`, exactly the fields dtype, shape and data_offsets for each tensor, no key twice, known element
/// types, sizes that equal shape times element, offsets that cover the data section without holes and overlaps.
/// Const functions may be called from several threads.
class SafetensorsFile {
 public:
  /// Opens and checks; throws Error that names the file, the place and the value.
  explicit SafetensorsFile(const std::string& path, FileMode mode = FileMode::map);
  /// The same over bytes that are there already; `name` stands for the path in messages.
  SafetensorsFile(const Bytes& file, const std::string& name);

  const std::string& path() const { return path_; }
  /// Number of tensors.
  Index count() const { return static_cast<Index>(rows_.size()); }
  /// Tensor `i` of `count()` in the order of the data section.
  SafetensorsEntry entry(Index i) const;
  /// All of them.
  std::vector<SafetensorsEntry> tensors() const;
  bool contains(std::string_view name) const { return names_.find(name).has_value(); }
  /// The entry called `name`; throws Error when there is none.
  SafetensorsEntry find(std::string_view name) const;

  /// The tensor called `name`. It shares the bytes of the file, unless its offset is no multiple of its element's
  /// alignment: such a tensor is copied, once as long as anybody holds it. Throws Error when there is none or its
  /// element type has no DType.
  Tensor at(std::string_view name) const;
  /// The bytes of the tensor called `name`, whatever its element type.
  Bytes bytes(std::string_view name) const;
  /// The strings of `__metadata__`.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// How many copies `at` has made of misaligned tensors.
  Index copies() const;

 private:
  struct Row {
    Index begin = 0, end = 0;
    std::uint32_t shape = 0;  // where the extents stand in the header, after the bracket
    std::uint8_t rank = 0, format = 0;
  };
  struct Parser;

  std::size_t row(std::string_view name) const;
  SafetensorsEntry describe(std::size_t row) const;

  std::string path_;
  Bytes data_;
  std::string_view header_;  // inside the file, which data_ keeps alive
  NameTable names_;
  std::vector<Row> rows_;             // in the order of the header, as names_
  std::vector<std::uint32_t> order_;  // row numbers in the order of the data section
  std::map<std::string, std::string> metadata_;
  std::shared_ptr<SharedCopies> copies_;
};

/// One or several files that make one model.
class SafetensorsModel {
 public:
  /// `path` is a safetensors file, an index (`*.json`, as in model.safetensors.index.json) or a folder that holds
  /// model.safetensors.index.json or model.safetensors. Every tensor of the index must be in the file that the index
  /// names for it; tensors that an index leaves out are not part of the model. Throws Error as the parts do.
  explicit SafetensorsModel(const std::string& path, FileMode mode = FileMode::map);

  const std::vector<SafetensorsFile>& files() const { return files_; }
  Index count() const { return static_cast<Index>(names_.size()); }
  /// Names in the order of the index, or of the data section of a single file.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return names_.find(name).has_value(); }
  /// Throw Error when there is no such tensor.
  SafetensorsEntry find(std::string_view name) const;
  Tensor at(std::string_view name) const;

 private:
  void open_index(const std::string& path, FileMode mode);
  const SafetensorsFile& file_of(std::string_view name) const;

  std::string path_;
  Bytes index_;  // the names refer to it
  NameTable names_;
  std::vector<std::uint32_t> shard_;  // of each name
  std::vector<SafetensorsFile> files_;
};

/// The file's name of an element type; throws Error for i4 and u4, which the format lacks.
std::string_view safetensors_dtype(DType type);

/// Writes a file that appears under `path` only when it is complete. Tensors are laid out by falling element size, then
/// by name, from an offset divisible by 64, so that all of them are aligned. Throws Error for names that are not UTF-8
/// or called `__metadata__`, for encoded tensors, element types that the format lacks, and limits above.
void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace rlx
