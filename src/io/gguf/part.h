// One GGUF file: its header, checked, and where its data is.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"
#include "io/gguf/value.h"
#include "io/name_table.h"

namespace rlx {

/// A tensor of the header, as small as it can be: there may be a million.
struct GgufRow {
  std::uint64_t extents = 0;  // where its number of extents stands in the file
  std::uint64_t offset = 0;   // in the data section
  std::uint32_t type = 0, part = 0;
};

/// An open file of a model.
struct GgufPart {
  std::string path;
  Bytes file;
  GgufForm form;
  Index data = 0;  // where the data section begins
  Index alignment = 32;
  Index tensors = 0;

  struct Entry {
    GgufType type, element = GgufType::u8;
    std::uint64_t count = 1;
    std::size_t begin = 0;
  };
  NameTable keys;
  std::vector<Entry> values;

  /// Reads and checks the header. Tensors are appended to `names` and `rows`, as of part `number`.
  void parse(NameTable& names, std::vector<GgufRow>& rows, std::uint32_t number);

  GgufValue value(std::size_t i) const;
  /// Extents of a tensor, last the one that the file says first.
  std::vector<Index> shape(const GgufRow& row) const;

 private:
  GgufCursor cursor(std::size_t at = 0) const { return {file.data, form, path, at}; }
  void parse_form(GgufCursor& at);
  void parse_keys(GgufCursor& at, std::size_t count);
  void parse_alignment();
  void parse_tensors(GgufCursor& at, std::size_t count, NameTable& names, std::vector<GgufRow>& rows,
                     std::uint32_t number);
  GgufRow parse_tensor(GgufCursor& at, std::string_view name) const;
  void check_layout(const NameTable& names, const std::vector<GgufRow>& rows, std::size_t first) const;
};

}  // namespace rlx
