// Loading OpenCL.
#include "backend/opencl/api.h"

#include "device/library.h"

namespace rlx::cl {

const Functions& load() {
  static const Functions functions = [] {
    const Library library({"libOpenCL.so.1", "libOpenCL.so"});
    Functions f{};
#define RLX_FIND(name) library.find(f.name, #name)
    RLX_FIND(clGetPlatformIDs);
    RLX_FIND(clGetPlatformInfo);
    RLX_FIND(clGetDeviceIDs);
    RLX_FIND(clGetDeviceInfo);
    RLX_FIND(clCreateContext);
    RLX_FIND(clReleaseContext);
    RLX_FIND(clCreateCommandQueue);
    RLX_FIND(clReleaseCommandQueue);
    RLX_FIND(clCreateBuffer);
    RLX_FIND(clReleaseMemObject);
    RLX_FIND(clCreateProgramWithSource);
    RLX_FIND(clBuildProgram);
    RLX_FIND(clGetProgramBuildInfo);
    RLX_FIND(clReleaseProgram);
    RLX_FIND(clCreateKernel);
    RLX_FIND(clReleaseKernel);
    RLX_FIND(clGetKernelWorkGroupInfo);
    RLX_FIND(clSetKernelArg);
    RLX_FIND(clEnqueueNDRangeKernel);
    RLX_FIND(clEnqueueWriteBuffer);
    RLX_FIND(clEnqueueReadBuffer);
    RLX_FIND(clEnqueueCopyBuffer);
    RLX_FIND(clEnqueueFillBuffer);
    RLX_FIND(clFlush);
    RLX_FIND(clFinish);
#undef RLX_FIND
    return f;
  }();
  return functions;
}

const char* error_name(Int code) {
  switch (code) {
    case -1:
      return "device not found";
    case -2:
      return "device not available";
    case -3:
      return "compiler not available";
    case -4:
      return "memory object allocation failure";
    case -5:
      return "out of resources";
    case -6:
      return "out of host memory";
    case -11:
      return "build program failure";
    case -34:
      return "invalid context";
    case -36:
      return "invalid command queue";
    case -38:
      return "invalid memory object";
    case -45:
      return "invalid program executable";
    case -46:
      return "invalid kernel name";
    case -51:
      return "invalid argument size";
    case -52:
      return "invalid kernel arguments";
    case -54:
      return "invalid work group size";
    case -61:
      return "invalid buffer size";
    default:
      return "error";
  }
}

}  // namespace rlx::cl
