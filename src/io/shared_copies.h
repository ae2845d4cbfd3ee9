// Copies of parts of a file that cannot be used where they are: made once as long as anybody holds them.
#pragma once

#include <cstring>
#include <map>
#include <mutex>

#include "core/function_ref.h"
#include "core/tensor.h"

namespace rlx {

/// Copies by number. May be used from several threads.
class SharedCopies {
 public:
  /// A copy of `bytes` that belongs to `number`, changed by `change` when it is made.
  Bytes get(std::size_t number, const Bytes& bytes, FunctionRef<void(std::span<std::byte>)> change) {
    const std::lock_guard lock(mutex_);
    Copy& known = by_number_[number];
    if (auto owner = known.owner.lock()) return {std::move(owner), known.data, false};
    const Bytes copy = Bytes::allocate(static_cast<Index>(bytes.data.size()));
    const std::span<std::byte> data(const_cast<std::byte*>(copy.data.data()), copy.data.size());  // nobody has it yet
    if (!data.empty()) std::memcpy(data.data(), bytes.data.data(), data.size());
    change(data);
    known = {copy.owner, copy.data};
    ++made_;
    return {copy.owner, copy.data, false};  // the next caller may get the same bytes
  }
  /// How many have been made.
  Index made() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  struct Copy {
    std::weak_ptr<const void> owner;
    std::span<const std::byte> data;
  };
  mutable std::mutex mutex_;
  std::map<std::size_t, Copy> by_number_;
  Index made_ = 0;
};

}  // namespace rlx
