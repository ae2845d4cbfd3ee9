// The weight store.
#include "runtime/weights.h"

#include <vector>

namespace rlx {

template <class Make>
std::shared_ptr<const DeviceMemory> WeightStore::find(const Tensor& constant, const std::string& form, Make make) {
  const Key key{constant.storage(), constant.type().text() + " " + form};
  const std::lock_guard guard(lock_);
  const auto it = entries_.find(key);
  if (it != entries_.end() && !it->second.source.expired()) {
    if (std::shared_ptr<const DeviceMemory> there = it->second.memory.lock()) return there;
  }
  std::shared_ptr<const DeviceMemory> made = make();
  std::erase_if(entries_, [](const auto& e) { return e.second.source.expired() || e.second.memory.expired(); });
  entries_[key] = {constant.plane().owner, made};
  return made;
}

std::shared_ptr<const DeviceMemory> WeightStore::packed(const Tensor& constant, const Packing& packing) {
  return find(constant, packing.layout, [&] {
    auto memory = std::make_shared<DeviceMemory>(*device_, packing.bytes);
    const auto size = static_cast<std::size_t>(packing.bytes);
    if (device_->info().host_memory) {
      packing.pack(constant, {memory->address(), size});
    } else {
      std::vector<std::byte> host(size);
      packing.pack(constant, host);
      device_->upload(memory->address(), host);
    }
    return memory;
  });
}

std::shared_ptr<const DeviceMemory> WeightStore::uploaded(const Tensor& constant) {
  return find(constant, "as it is", [&] {
    const std::span<const std::byte> bytes = constant.bytes();
    auto memory = std::make_shared<DeviceMemory>(*device_, static_cast<Index>(bytes.size()));
    device_->upload(memory->address(), bytes);
    return memory;
  });
}

Index WeightStore::bytes() const {
  const std::lock_guard guard(lock_);
  Index sum = 0;
  for (const auto& [key, entry] : entries_) {
    if (const auto memory = entry.memory.lock()) sum += memory->bytes();
  }
  return sum;
}

}  // namespace rlx
