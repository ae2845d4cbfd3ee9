// The POSIX calls of file access: mapped and copied reads, contained sibling paths, and files that appear whole or not
// at all.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace rlx {

/// How the content of a file becomes bytes.
enum class FileMode : std::uint8_t {
  map,   // pages of the file, read on demand; the process gets SIGBUS if the file shrinks while it is in use
  read,  // a private copy
};

/// A read-only view of a whole file. The bytes outlive this object: every `Bytes` made from it keeps the mapping alive.
class MappedFile {
 public:
  /// Opens a regular file (symbolic links are followed); the size is the one at this moment. Throws Error with the path
  /// and the reason when the file is missing, unreadable, empty, or no regular file. Never blocks on a FIFO.
  explicit MappedFile(const std::string& path, FileMode mode = FileMode::map);

  const std::string& path() const { return path_; }
  Index size() const { return static_cast<Index>(bytes_.data.size()); }
  /// The whole content. Mapped pages start on a page boundary, copies on 16 bytes.
  const Bytes& bytes() const { return bytes_; }
  /// `count` bytes from `begin`, which share the owner; throws Error when they are not inside the file.
  Bytes slice(Index begin, Index count) const;

 private:
  std::string path_;
  Bytes bytes_;
};

/// `count` bytes from `begin` of `whole`, sharing its owner; the range must lie inside.
Bytes slice(const Bytes& whole, Index begin, Index count);

/// Gives the whole pages among these bytes of a mapped file back to the system; they are read again when used again.
/// Nothing happens to bytes that are no file's.
void release_pages(const Bytes& bytes);

/// Asks the system to serve this memory with large pages, where there is enough of it to gain: what is first touched
/// then, and what is read from many places, takes a fraction of the time. A wish: ordinary pages serve as well.
void prefer_large_pages(std::byte* address, std::size_t size) noexcept;

/// `size` new bytes of no particular content, for a large tensor that is written at once: in large pages where the
/// system offers them, which saves most of the time that first writes to memory take. Throws Error when there is no
/// memory.
Bytes allocate_large(Index size);

/// The path of the file `name` in the folder of `index_path`, for names that come out of an index file. Throws Error
/// unless `name` is a plain file name (no separator, not `.` or `..`, no control character) and the file, symbolic
/// links resolved, lies in the folder of the index or in the one that the index itself resolves to. The second form is
/// what download caches look like: links into one blob folder.
std::string sibling_path(const std::string& index_path, std::string_view name);

/// A new file that appears under its name only when it is complete: it is written beside its target and renamed by
/// `commit`. Without `commit` the destructor removes it, and an older file of that name stays as it was.
class AtomicFile {
 public:
  /// A link stays and its target is replaced. Throws Error with the path and the reason when the file cannot be created
  /// or `path` is a device, a pipe or a folder.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends bytes; throws Error when the disk is full or the write fails.
  void write(std::span<const std::byte> data);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Bytes written so far.
  Index size() const { return size_; }
  /// Flushes to the device and renames over the target.
  void commit();

 private:
  std::string path_, temporary_;
  int fd_ = -1;
  Index size_ = 0;
};

}  // namespace rlx
