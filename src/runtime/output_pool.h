// Memory of results that is used again.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "core/tensor.h"

namespace rlx {

/// Gives tensors over memory that comes back when the last owner is gone; the largest blocks of `keep` bytes in all
/// are kept. Safe to use from several threads; tensors may outlive the pool.
class OutputPool : public std::enable_shared_from_this<OutputPool> {
 public:
  explicit OutputPool(Index keep = Index{64} << 20) : keep_(keep) {}
  Tensor take(DType dtype, const std::vector<Index>& shape);
  Index bytes() const;

 private:
  void give(Bytes memory);

  Index keep_;
  mutable std::mutex lock_;
  std::multimap<std::size_t, Bytes> free_;
  Index held_ = 0;
};

}  // namespace rlx
