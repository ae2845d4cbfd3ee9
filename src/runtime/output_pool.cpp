// The pool of results.
#include "runtime/output_pool.h"

#include "core/checked.h"

namespace rlx {

Tensor OutputPool::take(DType dtype, const std::vector<Index>& shape) {
  const auto need = static_cast<std::size_t>(storage_bytes(dtype, checked_product(shape, "an output")));
  Bytes memory;
  {
    const std::lock_guard guard(lock_);
    const auto it = free_.lower_bound(need);
    if (it != free_.end() && it->first <= 2 * need + 4096) {
      memory = std::move(it->second);
      held_ -= static_cast<Index>(it->first);
      free_.erase(it);
    }
  }
  if (!memory.owner) memory = Bytes::allocate(static_cast<Index>(need));
  const std::span data = memory.data.first(need);
  std::shared_ptr<const void> owner(data.data(), [pool = weak_from_this(), memory](const std::byte*) {
    if (const auto alive = pool.lock()) alive->give(memory);
  });
  return {TensorType(dtype, {shape.begin(), shape.end()}), {Bytes{std::move(owner), data, true}}};
}

void OutputPool::give(Bytes memory) {
  const std::size_t size = memory.data.size();
  const std::lock_guard guard(lock_);
  if (held_ + static_cast<Index>(size) > keep_) return;
  held_ += static_cast<Index>(size);
  free_.emplace(size, std::move(memory));
}

Index OutputPool::bytes() const {
  const std::lock_guard guard(lock_);
  return held_;
}

}  // namespace rlx
