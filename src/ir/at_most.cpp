// An inequality is an equality of a maximum.
#include "ir/at_most.h"

#include "core/error.h"

namespace rlx {

void at_most(InferContext& c, const Dim& a, const Dim& b, std::string_view why) {
  const Bounds room = (b - a).bounds();
  require(room.hi >= 0, "{}: {} is more than {}", why, a.text(), b.text());
  if (room.lo < 0) c.equal(max(a, b), b, why);
}

}  // namespace rlx
