// Ranges of addresses without memory, by mmap.
#include "core/address_range.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"

namespace rlx {

std::byte* reserve_addresses(Index bytes) {
  ensure(bytes > 0, "a range of addresses is not empty");
  void* p =
      ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    throw DeviceError(
        fmt::format("{} bytes of addresses are not available: {}", bytes, std::generic_category().message(errno)));
  }
  return static_cast<std::byte*>(p);
}

void release_addresses(std::byte* first, Index bytes) noexcept { ::munmap(first, static_cast<std::size_t>(bytes)); }

}  // namespace rlx
