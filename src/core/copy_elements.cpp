// Runs of whole bytes are copied at once, packed elements one by one.
#include "core/copy_elements.h"

#include <cstring>

#include "core/error.h"

namespace rlx {

void copy_elements(const Tensor& from, Index from_at, Tensor& to, Index to_at, Index count) {
  ensure(from.dtype() == to.dtype(), "a copy keeps the element type");
  ensure(from_at >= 0 && to_at >= 0 && count >= 0, "a copy has no negative position");
  ensure(count <= from.count() - from_at && count <= to.count() - to_at, "a copy stays inside its tensors");
  if (count == 0) return;
  const int width = bits(from.dtype());
  if (width % 8 != 0) {
    for (Index i = 0; i < count; ++i) to.set_code(to_at + i, from.code(from_at + i));
    return;
  }
  const Index bytes = width / 8;
  std::memcpy(to.mutable_bytes().subspan(static_cast<std::size_t>(to_at * bytes)).data(),
              from.bytes().subspan(static_cast<std::size_t>(from_at * bytes)).data(),
              static_cast<std::size_t>(count * bytes));
}

}  // namespace rlx
