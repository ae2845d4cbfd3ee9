// The pool of results.
#include "runtime/output_pool.h"

#include "core/checked.h"

namespace rlx {

Tensor OutputPool::take(DType dtype, const std::vector<Index>& shape) {
  const auto need = static_cast<std::size_t>(storage_bytes(dtype, checked_product(shape, "an output")));
  std::unique_ptr<std::byte[]> memory;
  std::size_t size = need;
  {
    const std::lock_guard guard(lock_);
    const auto it = free_.lower_bound(need);
    if (it != free_.end() && it->first <= 2 * need + 4096) {
      size = it->first;
      memory = std::move(it->second);
      held_ -= static_cast<Index>(size);
      free_.erase(it);
    }
  }
  if (!memory) memory = std::make_unique_for_overwrite<std::byte[]>(size);
  std::byte* const data = memory.release();
  std::shared_ptr<const void> owner(data, [pool = weak_from_this(), size](const std::byte* p) {
    std::unique_ptr<std::byte[]> back(const_cast<std::byte*>(p));
    if (const auto alive = pool.lock()) alive->give(std::move(back), size);
  });
  return {TensorType(dtype, {shape.begin(), shape.end()}), {Bytes{std::move(owner), {data, need}, true}}};
}

void OutputPool::give(std::unique_ptr<std::byte[]> memory, std::size_t size) {
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
