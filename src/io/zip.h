// ZIP archives as NumPy writes them: a reader over the mapped file that checks the whole directory first, and a writer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/os_posix.h"
#include "core/tensor.h"
#include "io/name_table.h"

namespace rlx {

inline constexpr Index zip_max_entries = Index{1} << 20;

/// One file of an archive.
struct ZipEntry {
  std::string_view name;
  Index begin = 0;   // offset of the stored bytes in the archive
  Index stored = 0;  // how many there are
  Index size = 0;    // size of the content
  std::uint32_t crc = 0;
  bool deflated = false;
};

/// An open archive: stored and deflated entries, ZIP64, data descriptors. Refused with an Error that names file and
/// offset: archives on several disks or with a comment, encrypted entries, other methods, a name twice, local headers
/// that contradict the directory, entries that overlap, sizes beyond what deflate can reach. Names are only labels;
/// nothing is ever written to a path.
class ZipReader {
 public:
  ZipReader(Bytes file, const std::string& name);

  Index count() const { return static_cast<Index>(rows_.size()); }
  /// Entry `i` of `count()`, in the order of the directory.
  ZipEntry entry(Index i) const;
  /// Number of the entry called `name`.
  std::optional<std::size_t> find(std::string_view name) const { return names_.find(name); }

  /// The content of an entry, its CRC checked; without a copy if it is stored. A deflated entry is unpacked into memory
  /// of the stated size; after the first `head` bytes (or all, if there are fewer) `check` may refuse by an Error,
  /// before the rest is unpacked. Throws Error when the content is longer or shorter than stated or its CRC differs.
  Bytes content(const ZipEntry& entry, Index head, const std::function<void(std::span<const std::byte>)>& check) const;

 private:
  struct Row {
    Index local = 0, stored = 0, size = 0;
    std::uint32_t crc = 0, begin = 0;  // begin: distance of the stored bytes from the local header
    bool deflated = false, descriptor = false;
  };
  struct Parser;

  std::string path_;
  Bytes file_;
  NameTable names_;
  std::vector<Row> rows_;
};

/// Writes an archive into `out`. Dates are fixed, so that equal content gives equal bytes.
class ZipWriter {
 public:
  /// Sizes and offsets from `zip64_from` up are written as ZIP64 fields (a parameter so that tests need no large file).
  explicit ZipWriter(AtomicFile& out, std::uint64_t zip64_from = 0xffffffff) : out_(out), zip64_from_(zip64_from) {}

  /// Adds an entry whose content is `parts`, one after the other. Stored content starts at a multiple of 64.
  void add(const std::string& name, const std::vector<std::span<const std::byte>>& parts, bool deflate);
  /// Writes the directory. Throws Error above zip_max_entries.
  void finish();

 private:
  struct Row {
    std::string name;
    std::uint64_t local = 0, stored = 0, size = 0;
    std::uint32_t crc = 0;
    bool deflated = false;
  };
  AtomicFile& out_;
  std::uint64_t zip64_from_;
  std::vector<Row> rows_;
};

}  // namespace rlx
