// File access by POSIX calls.
#include "core/os_posix.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <system_error>

#include "core/error.h"
#include "core/quote.h"

namespace rlx {

namespace {

std::string system_text(int error) { return std::generic_category().message(error); }

/// Closes a file descriptor at the end of a scope.
struct Descriptor {
  int fd;
  explicit Descriptor(int f) : fd(f) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void check_path(const std::string& path) {
  require(!path.empty(), "a file name is empty");
  require(path.find('\0') == std::string::npos, "file name {} contains a zero byte", quote(path));
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "of an unknown kind";
}

Bytes map_pages(int fd, std::size_t size, const std::string& path) {
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  require(p != MAP_FAILED, "cannot map '{}' ({} bytes): {}", path, size, system_text(errno));
  std::shared_ptr<const void> owner(p, [size](const void* q) { ::munmap(const_cast<void*>(q), size); });
  return {std::move(owner), {static_cast<const std::byte*>(p), size}, false, true};
}

Bytes read_copy(int fd, std::size_t size, const std::string& path) {
  Bytes bytes = Bytes::allocate(static_cast<Index>(size));
  auto* out = const_cast<std::byte*>(bytes.data.data());  // nobody else has seen the allocation
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::read(fd, out + done, std::min(size - done, std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    require(n >= 0, "cannot read '{}' at offset {}: {}", path, done, system_text(errno));
    require(n > 0, "'{}' ended at offset {} while it was read, {} bytes were expected", path, done, size);
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

MappedFile::MappedFile(const std::string& path, FileMode mode) : path_(path) {
  check_path(path);
  // Without O_NONBLOCK the open of a FIFO waits for its writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  require(file.fd >= 0, "cannot open '{}': {}", path, system_text(errno));
  struct stat status{};
  require(::fstat(file.fd, &status) == 0, "cannot examine '{}': {}", path, system_text(errno));
  require(S_ISREG(status.st_mode), "'{}' is {}, a regular file was expected", path, kind_of(status.st_mode));
  require(status.st_size > 0, "'{}' is empty", path);
  const auto size = static_cast<std::size_t>(status.st_size);
  bytes_ = mode == FileMode::map ? map_pages(file.fd, size, path) : read_copy(file.fd, size, path);
}

Bytes MappedFile::slice(Index begin, Index count) const {
  require(begin >= 0 && count >= 0 && begin <= size() && count <= size() - begin,
          "'{}' has {} bytes, the range of {} bytes at offset {} is outside", path_, size(), count, begin);
  return rlx::slice(bytes_, begin, count);
}

Bytes slice(const Bytes& whole, Index begin, Index count) {
  const auto size = static_cast<Index>(whole.data.size());
  ensure(begin >= 0 && count >= 0 && begin <= size && count <= size - begin, "slice outside of its bytes");
  return {whole.owner, whole.data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
          whole.writable, whole.mapped};
}

void release_pages(const Bytes& bytes) {
  if (!bytes.mapped) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data.data());
  const std::uintptr_t first = (begin + page - 1) / page * page, end = (begin + bytes.data.size()) / page * page;
  // A failure changes nothing but the memory in use.
  if (first < end)
    (void)::madvise(const_cast<std::byte*>(bytes.data.data()) + (first - begin), end - first, MADV_DONTNEED);
}

constexpr std::size_t large_page = std::size_t{2} << 20;

void prefer_large_pages(std::byte* address, std::size_t size) noexcept {
#ifdef MADV_HUGEPAGE
  if (size < 4 * large_page) return;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t skipped = (page - reinterpret_cast<std::uintptr_t>(address) % page) % page;
  (void)::madvise(address + skipped, (size - skipped) / page * page, MADV_HUGEPAGE);
#endif
}

Bytes allocate_large(Index size) {
  const auto n = static_cast<std::size_t>(size);
  if (n < 2 * large_page) return Bytes::allocate(size);
  const std::size_t room = (n + large_page - 1) / large_page * large_page;
  auto* p = static_cast<std::byte*>(std::aligned_alloc(large_page, room));
  require(p != nullptr, "a tensor of {} bytes does not fit into memory", size);
  prefer_large_pages(p, room);
  return {std::shared_ptr<std::byte>(p, [](std::byte* q) { std::free(q); }), {p, n}, true};
}

std::string sibling_path(const std::string& index_path, std::string_view name) {
  namespace fs = std::filesystem;
  const auto plain = [](char c) { return c != '/' && c != '\\' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  require(!name.empty() && name.size() <= 255 && name != "." && name != ".." &&
              std::all_of(name.begin(), name.end(), plain),
          "'{}' names the file {}, a plain file name in the same folder was expected", index_path, quote(name));
  const fs::path folder = fs::path(index_path).parent_path();
  const fs::path path = folder / fs::path(name);
  std::error_code error;
  const fs::path target = fs::canonical(path, error);
  require(!error, "cannot open '{}', named by '{}': {}", path.string(), index_path, error.message());
  const fs::path home = fs::canonical(folder.empty() ? fs::path(".") : folder, error);
  require(!error, "cannot resolve the folder of '{}': {}", index_path, error.message());
  const fs::path index = fs::canonical(index_path, error);
  require(!error, "cannot resolve '{}': {}", index_path, error.message());
  require(target.parent_path() == home || target.parent_path() == index.parent_path(),
          "'{}', named by '{}', is a link to '{}' outside of its folder", path.string(), index_path, target.string());
  return target.string();
}

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  check_path(path);
  struct stat old{};
  if (::lstat(path.c_str(), &old) == 0 && S_ISLNK(old.st_mode)) {  // the link stays, its target is replaced
    std::error_code error;
    path_ = std::filesystem::canonical(path, error).string();
    require(!error, "cannot resolve the link '{}': {}", path, error.message());
  }
  if (::stat(path_.c_str(), &old) == 0 && !S_ISREG(old.st_mode)) {
    fail("cannot replace '{}': it is no regular file", path);
  }
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = fmt::format("{}.{}.{}.tmp", path_, ::getpid(), counter++);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  require(fd_ >= 0, "cannot create '{}': {}", temporary_, system_text(errno));
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> data) {
  ensure(fd_ >= 0, "write after commit");
  while (!data.empty()) {
    const ssize_t n = ::write(fd_, data.data(), std::min(data.size(), std::size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    require(n >= 0, "cannot write '{}' at offset {}: {}", temporary_, size_, system_text(errno));
    size_ += n;
    data = data.subspan(static_cast<std::size_t>(n));
  }
}

void AtomicFile::commit() {
  ensure(fd_ >= 0, "commit twice");
  require(::fsync(fd_) == 0, "cannot write '{}': {}", temporary_, system_text(errno));
  require(::rename(temporary_.c_str(), path_.c_str()) == 0, "cannot rename '{}' to '{}': {}", temporary_, path_,
          system_text(errno));
  ::close(fd_);
  fd_ = -1;
}

}  // namespace rlx
