// The program's version.
#pragma once

namespace rlx::cli {

inline constexpr const char* version = RLX_VERSION;

}  // namespace rlx::cli
