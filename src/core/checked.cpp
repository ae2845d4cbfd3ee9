// Errors of checked size arithmetic, out of line.
#include "core/checked.h"

#include "core/error.h"

namespace rlx {

Index Checked::value(std::string_view what) const {
  require(!overflow_, "size of {} overflows 63 bits", what);
  return value_;
}

namespace detail {
void negative_extent(Index extent, std::string_view what) { fail("extent {} of {} is negative", extent, what); }
}  // namespace detail

}  // namespace rlx
