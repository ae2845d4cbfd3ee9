// The weight store: constants in the forms that kernels read, made once for all programs of a session.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "device/device.h"

namespace rlx {

/// Memory of a device that is given back with its last owner.
class DeviceMemory {
 public:
  DeviceMemory(Device& device, Index bytes) : device_(&device), address_(device.allocate(bytes)), bytes_(bytes) {}
  /// A piece of a block, which it keeps alive.
  DeviceMemory(std::shared_ptr<const DeviceMemory> block, Index offset, Index bytes)
      : device_(block->device_), address_(block->address_ + offset), bytes_(bytes), block_(std::move(block)) {}
  ~DeviceMemory() {
    if (!block_) device_->release(address_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  std::byte* address() const { return address_; }
  Index bytes() const { return bytes_; }

 private:
  Device* device_;
  std::byte* address_;
  Index bytes_;
  std::shared_ptr<const DeviceMemory> block_;
};

/// Keyed by storage and form; an entry lives while a program holds it. Safe to use from several threads.
class WeightStore {
 public:
  explicit WeightStore(Device& device) : device_(&device) {}

  /// The constant in this form, packed now unless it is there. The source is not needed afterwards.
  std::shared_ptr<const DeviceMemory> packed(const Tensor& constant, const Packing& packing);
  /// The constant as it is, on a device that does not read the host's memory.
  std::shared_ptr<const DeviceMemory> uploaded(const Tensor& constant);
  /// Bytes of all that is alive.
  Index bytes() const;

 private:
  struct Entry {
    std::weak_ptr<const void> source;  // the address names this storage only while it lives
    std::weak_ptr<const DeviceMemory> memory;
  };
  using Key = std::pair<const void*, std::string>;
  template <class Make>
  std::shared_ptr<const DeviceMemory> find(const Tensor& constant, const std::string& form, Make make);
  std::shared_ptr<const DeviceMemory> place(Index bytes);

  Device* device_;
  mutable std::mutex lock_;
  std::map<Key, Entry> entries_;
  std::weak_ptr<const DeviceMemory> block_;  // where the next weight goes
  Index used_ = 0;                           // of the block
};

}  // namespace rlx
