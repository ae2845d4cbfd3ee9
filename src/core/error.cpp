// ensure(): out of line, so that the happy path is one test and one call.
#include "core/error.h"

namespace rlx {

void ensure(bool ok, const char* what, std::source_location place) {
  if (ok) return;
  throw InternalError(fmt::format("internal error: {} ({}:{})", what, place.file_name(), place.line()));
}

}  // namespace rlx
