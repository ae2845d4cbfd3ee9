// The OpenCL backend: devices of the system's OpenCL drivers. Allocates, copies, compiles text, launches, waits.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/gpu_launch.h"

namespace rlx {

/// Devices that the system's OpenCL drivers show, in their order; empty where there is no OpenCL.
std::vector<DeviceProperties> opencl_devices();

/// Opens device number `index` of opencl_devices(). Throws DeviceError when there is none. Calls OpenCL 1.2 only.
std::unique_ptr<GpuDevice> open_opencl(std::size_t index = 0);

}  // namespace rlx
