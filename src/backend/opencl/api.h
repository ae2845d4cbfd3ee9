// The part of OpenCL 1.2 that the backend calls, so that building needs no headers of OpenCL. Names and values are
// those of the standard; tests compare them with CL/cl.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cl {

using Platform = struct PlatformTag*;
using DeviceId = struct DeviceTag*;
using Context = struct ContextTag*;
using Queue = struct QueueTag*;
using Mem = struct MemTag*;
using Program = struct ProgramTag*;
using Kernel = struct KernelTag*;
using Event = struct EventTag*;
using Int = std::int32_t;
using Uint = std::uint32_t;
using Ulong = std::uint64_t;

enum : Int {
  success = 0,
  device_not_found = -1,
  build_program_failure = -11,
  platform_not_found = -1001,  // of the ICD loader
};
enum : Uint {
  false_value = 0,
  true_value = 1,
  platform_name = 0x0902,
  platform_version = 0x0901,
  device_max_group_size = 0x1004,
  device_single_config = 0x101B,
  device_memory = 0x101F,
  device_name = 0x102B,
  driver_version = 0x102D,
  device_version = 0x102F,
  device_double_config = 0x1032,
  context_platform = 0x1084,
  build_log = 0x1183,
  kernel_group_size = 0x11B0,
};
enum : Ulong {
  device_type_all = 0xFFFFFFFF,
  mem_read_write = 1,
  fp_correct_divide_sqrt = 1 << 7,
};

// NOLINTBEGIN(readability-identifier-naming): the names of the standard
/// Functions of the loader, found by load().
struct Functions {
  Int (*clGetPlatformIDs)(Uint, Platform*, Uint*);
  Int (*clGetPlatformInfo)(Platform, Uint, std::size_t, void*, std::size_t*);
  Int (*clGetDeviceIDs)(Platform, Ulong, Uint, DeviceId*, Uint*);
  Int (*clGetDeviceInfo)(DeviceId, Uint, std::size_t, void*, std::size_t*);
  Context (*clCreateContext)(const std::intptr_t*, Uint, const DeviceId*,
                             void (*)(const char*, const void*, std::size_t, void*), void*, Int*);
  Int (*clReleaseContext)(Context);
  Queue (*clCreateCommandQueue)(Context, DeviceId, Ulong, Int*);
  Int (*clReleaseCommandQueue)(Queue);
  Mem (*clCreateBuffer)(Context, Ulong, std::size_t, void*, Int*);
  Int (*clReleaseMemObject)(Mem);
  Program (*clCreateProgramWithSource)(Context, Uint, const char**, const std::size_t*, Int*);
  Int (*clBuildProgram)(Program, Uint, const DeviceId*, const char*, void (*)(Program, void*), void*);
  Int (*clGetProgramBuildInfo)(Program, DeviceId, Uint, std::size_t, void*, std::size_t*);
  Int (*clReleaseProgram)(Program);
  Kernel (*clCreateKernel)(Program, const char*, Int*);
  Int (*clReleaseKernel)(Kernel);
  Int (*clGetKernelWorkGroupInfo)(Kernel, DeviceId, Uint, std::size_t, void*, std::size_t*);
  Int (*clSetKernelArg)(Kernel, Uint, std::size_t, const void*);
  Int (*clEnqueueNDRangeKernel)(Queue, Kernel, Uint, const std::size_t*, const std::size_t*, const std::size_t*, Uint,
                                const Event*, Event*);
  Int (*clEnqueueWriteBuffer)(Queue, Mem, Uint, std::size_t, std::size_t, const void*, Uint, const Event*, Event*);
  Int (*clEnqueueReadBuffer)(Queue, Mem, Uint, std::size_t, std::size_t, void*, Uint, const Event*, Event*);
  Int (*clEnqueueCopyBuffer)(Queue, Mem, Mem, std::size_t, std::size_t, std::size_t, Uint, const Event*, Event*);
  Int (*clEnqueueFillBuffer)(Queue, Mem, const void*, std::size_t, std::size_t, std::size_t, Uint, const Event*,
                             Event*);
  Int (*clFlush)(Queue);
  Int (*clFinish)(Queue);
};
// NOLINTEND(readability-identifier-naming)

/// The functions of the system's OpenCL loader; throws DeviceError when there is none.
const Functions& load();

/// A code of OpenCL in words.
const char* error_name(Int code);

}  // namespace rlx::cl
