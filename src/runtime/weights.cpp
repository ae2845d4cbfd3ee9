// The weight store.
#include "runtime/weights.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace rlx {

// A number for the bytes of a constant that its owner may change in place while no program holds it; 0 for memory that
// is never written, such as the pages of a file, which are not read for this.
static std::uint64_t content(const Tensor& constant) {
  std::uint64_t sum = 0;
  for (std::size_t plane = 0; plane < constant.type().plane_count(); ++plane) {
    if (!constant.plane(plane).writable) continue;
    const std::span<const std::byte> bytes = constant.bytes(plane);
    std::uint64_t lanes[4] = {1, 2, 3, 4};
    for (std::size_t i = 0, lane = 0; i < bytes.size(); i += 8, lane = (lane + 1) % 4) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
      const std::uint64_t mixed = (lanes[lane] ^ word) * 0x9E3779B97F4A7C15U;
      lanes[lane] = mixed ^ (mixed >> 29);
    }
    for (const std::uint64_t lane : lanes) {
      sum = (sum ^ lane) * 0xD6E8FEB86659FD93U;
      sum ^= sum >> 32;
    }
  }
  return sum;
}

template <class Make>
std::shared_ptr<const DeviceMemory> WeightStore::find(const Tensor& constant, const std::string& form, Make make) {
  const Key key{constant.storage(), fmt::format("{} {} {}", constant.type().text(), form, content(constant))};
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

// Weights lie one behind the other in blocks that the system backs by large pages: a run reads all of them, and with
// small pages every page of a model costs a walk of the page table a run (nested ones on a virtual machine).
std::shared_ptr<const DeviceMemory> WeightStore::place(Index bytes) {
  constexpr Index block_bytes = Index{32} << 20, least = Index{64} << 10, alignment = 64;
  if (!device_->info().host_memory || bytes < least || bytes > block_bytes / 2)
    return std::make_shared<DeviceMemory>(*device_, bytes);
  std::shared_ptr<const DeviceMemory> block = block_.lock();
  if (!block || bytes > block->bytes() - used_) {
    block = std::make_shared<DeviceMemory>(*device_, block_bytes);
    block_ = block;
    used_ = 0;
  }
  auto piece = std::make_shared<DeviceMemory>(std::move(block), used_, bytes);
  used_ += (bytes + alignment - 1) / alignment * alignment;
  return piece;
}

std::shared_ptr<const DeviceMemory> WeightStore::packed(const Tensor& constant, const Packing& packing) {
  return find(constant, packing.layout, [&] {
    const std::shared_ptr<const DeviceMemory> memory = place(packing.bytes);
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
