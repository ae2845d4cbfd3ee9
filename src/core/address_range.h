// Ranges of addresses without memory: names for the memory of devices that have no addresses of their own.
#pragma once

#include <cstddef>

#include "core/index.h"

namespace rlx {

/// Reserves at least `bytes` (> 0) addresses that nothing else in the process uses, page aligned; touching them is a
/// fault. Throws DeviceError when the system has none left.
std::byte* reserve_addresses(Index bytes);
/// Gives a range back, with the size it was reserved with.
void release_addresses(std::byte* first, Index bytes) noexcept;

}  // namespace rlx
