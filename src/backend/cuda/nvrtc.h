// NVRTC, the run-time compiler of CUDA: kernels from text to machine code, without nvcc, a driver or a GPU.
#pragma once

#include <string>
#include <vector>

namespace rlx {

/// A kernel for one architecture.
struct CudaBinary {
  std::string ptx;
  std::vector<char> cubin;
};

/// Whether the library is found, and if not, why.
bool has_nvrtc(std::string* why = nullptr);
/// `13.0`.
std::string nvrtc_version();

/// Compiles the CUDA text of a kernel for an architecture such as `sm_90`, without contraction to fma. Throws
/// DeviceError with the log and the text when it does not build, or the library is missing.
CudaBinary compile_cuda(const std::string& text, const std::string& name, const std::string& architecture);

}  // namespace rlx
