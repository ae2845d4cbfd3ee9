// The one signed integer type of sizes, indices and axes.
#pragma once

#include <cstdint>

namespace rlx {

using Index = std::int64_t;

}  // namespace rlx
