// The CPU as a device.
#include "backend/cpu/cpu_device.h"

#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "core/levels.h"
#include "core/os_posix.h"
#include "device/copy_step.h"

namespace rlx {

namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(std::span<const MakerRow> more) : makers_(cpu_maker_folders()) {
    properties_ = {.name = "cpu",
                   .description = std::string("x86-64, instruction level ") + level_name(level()),
                   .host_memory = true};
    for (const MakerRow& row : more) makers_.add(row);
  }

  const DeviceProperties& info() const override { return properties_; }
  const MakerTable& makers() const override { return makers_; }
  Step copy_step(const Slot& from, const Slot& to) override { return rlx::copy_step(from, to); }

  std::byte* allocate(Index bytes) override {
    ensure(bytes >= 0, "a negative number of bytes");
    // Large blocks begin on a large page, which the system may then use.
    constexpr std::size_t large = std::size_t{2} << 20;
    const std::size_t size = (static_cast<std::size_t>(bytes) + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
    const std::size_t alignment = size >= 4 * large ? large : 64;
    void* const p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (!p) throw DeviceError(fmt::format("the CPU has no {} bytes of memory left", bytes));
    prefer_large_pages(static_cast<std::byte*>(p), size);
    return static_cast<std::byte*>(p);
  }
  void release(std::byte* address) noexcept override { std::free(address); }

  void upload(std::byte* to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
  }
  void download(std::span<std::byte> to, const std::byte* from) override {
    if (!to.empty()) std::memcpy(to.data(), from, to.size());
  }
  void copy(std::byte* to, const std::byte* from, Index bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void fill(std::byte* to, Index bytes, std::byte value) override {
    if (bytes > 0) std::memset(to, std::to_integer<int>(value), static_cast<std::size_t>(bytes));
  }
  void synchronize() override {}

 private:
  DeviceProperties properties_;
  MakerTable makers_;
};

}  // namespace

std::shared_ptr<Device> cpu_device(std::span<const MakerRow> more) { return std::make_shared<CpuDevice>(more); }

Session cpu_session(const SessionOptions& options) { return Session(cpu_device(), options); }

}  // namespace rlx
