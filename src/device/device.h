// What the runtime asks of a device: memory, copies, step makers, and waiting. Steps are the same for all devices:
// run() of a device's step works there and then (CPU) or adds work to the device's queue.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "device/makers.h"
#include "device/step.h"

namespace rlx {

/// What a device is and has.
struct DeviceProperties {
  std::string name;          // what users say: `cpu`, `opencl`, `opencl:1`
  std::string description;   // what the driver says: device, version
  bool host_memory = false;  // addresses of this device are addresses of the host
  bool f64 = true;           // has arithmetic in double precision
  Index memory = 0;          // bytes, 0: unknown
  Index group_size = 0;      // most work items of a group, 0: no groups
};

/// A device. Addresses are opaque unless DeviceProperties::host_memory: an address plus bytes inside the same
/// allocation is an address too, reading through it from the host is a fault. Any call may come from any thread. Work
/// that is given to the device, by steps and by the calls below, takes effect in the order in which it was given. What
/// the machine refuses throws DeviceError; the device stays usable, unless the message says otherwise.
class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual const DeviceProperties& info() const = 0;
  /// Makers of steps that run here. They live as long as the device; so must the device while their steps are used.
  virtual const MakerTable& makers() const = 0;
  /// The step that copies a value between two slots of one element type, strided or dense; sizes differ only where one
  /// of the slots is dense and the element counts are equal. Throws Error for an element type
  /// that the device cannot copy with these strides.
  virtual Step copy_step(const Slot& from, const Slot& to) = 0;

  /// `bytes` of memory, at least 64-byte aligned, of unspecified content; `bytes` may be 0, the address is not null.
  virtual std::byte* allocate(Index bytes) = 0;
  /// Gives memory back, after the work that uses it; null is ignored.
  virtual void release(std::byte* address) noexcept = 0;

  /// Copies to the device; `from` may be changed when this returns.
  virtual void upload(std::byte* to, std::span<const std::byte> from) = 0;
  /// Copies to the host, after all work given so far; the bytes are there when this returns.
  virtual void download(std::span<std::byte> to, const std::byte* from) = 0;
  /// Copies inside the device; the ranges do not overlap.
  virtual void copy(std::byte* to, const std::byte* from, Index bytes) = 0;
  virtual void fill(std::byte* to, Index bytes, std::byte value) = 0;
  /// Waits for all work given so far; throws DeviceError when some of it failed.
  virtual void synchronize() = 0;
};

}  // namespace rlx
