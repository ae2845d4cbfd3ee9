// The CPU as a device.
#pragma once

#include "device/device.h"
#include "runtime/session.h"

namespace rlx {

/// A device whose memory is the host's and whose steps run in the calling thread, or in pieces on an executor. `more`
/// are makers of a user's own ops. The level of instructions is that of level() now.
std::shared_ptr<Device> cpu_device(std::span<const MakerRow> more = {});

/// A session on the CPU.
Session cpu_session(const SessionOptions& options = {});

}  // namespace rlx
