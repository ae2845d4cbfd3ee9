// NVRTC. Its few functions are declared here, so that building needs no headers of CUDA.
#include "backend/cuda/nvrtc.h"

#include <iterator>
#include <string_view>

#include "core/error.h"
#include "device/library.h"

namespace rlx {

namespace {

using Program = struct NvrtcProgramTag*;

// NOLINTBEGIN(readability-identifier-naming): the names of the library
struct Functions {
  int (*nvrtcVersion)(int*, int*);
  const char* (*nvrtcGetErrorString)(int);
  int (*nvrtcCreateProgram)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*nvrtcDestroyProgram)(Program*);
  int (*nvrtcCompileProgram)(Program, int, const char* const*);
  int (*nvrtcGetPTXSize)(Program, std::size_t*);
  int (*nvrtcGetPTX)(Program, char*);
  int (*nvrtcGetCUBINSize)(Program, std::size_t*);
  int (*nvrtcGetCUBIN)(Program, char*);
  int (*nvrtcGetProgramLogSize)(Program, std::size_t*);
  int (*nvrtcGetProgramLog)(Program, char*);
};
// NOLINTEND(readability-identifier-naming)

const Functions& load() {
  static const Functions functions = [] {
    const Library library({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
    Functions f{};
#define RLX_FIND(name) library.find(f.name, #name)
    RLX_FIND(nvrtcVersion);
    RLX_FIND(nvrtcGetErrorString);
    RLX_FIND(nvrtcCreateProgram);
    RLX_FIND(nvrtcDestroyProgram);
    RLX_FIND(nvrtcCompileProgram);
    RLX_FIND(nvrtcGetPTXSize);
    RLX_FIND(nvrtcGetPTX);
    RLX_FIND(nvrtcGetCUBINSize);
    RLX_FIND(nvrtcGetCUBIN);
    RLX_FIND(nvrtcGetProgramLogSize);
    RLX_FIND(nvrtcGetProgramLog);
#undef RLX_FIND
    return f;
  }();
  return functions;
}

void check(const Functions& f, int code, std::string_view call) {
  if (code != 0) throw DeviceError(fmt::format("nvrtc: {}: {} ({})", call, f.nvrtcGetErrorString(code), code));
}

// A program that is destroyed at the end of a scope.
struct Scoped {
  const Functions& f;
  Program program = nullptr;
  explicit Scoped(const Functions& functions) : f(functions) {}
  Scoped(const Scoped&) = delete;
  Scoped& operator=(const Scoped&) = delete;
  ~Scoped() {
    if (program) f.nvrtcDestroyProgram(&program);
  }
};

std::string log_of(const Functions& f, Program p) {
  std::size_t size = 0;
  if (f.nvrtcGetProgramLogSize(p, &size) != 0) return "no log";
  std::string log(size, '\0');
  f.nvrtcGetProgramLog(p, log.data());
  return log.substr(0, log.find('\0'));
}

}  // namespace

bool has_nvrtc(std::string* why) {
  try {
    load();
    return true;
  } catch (const DeviceError& e) {
    if (why) *why = e.what();
    return false;
  }
}

std::string nvrtc_version() {
  const Functions& f = load();
  int major = 0, minor = 0;
  check(f, f.nvrtcVersion(&major, &minor), "version");
  return fmt::format("{}.{}", major, minor);
}

CudaBinary compile_cuda(const std::string& text, const std::string& name, const std::string& architecture) {
  const Functions& f = load();
  Scoped scoped(f);
  check(f, f.nvrtcCreateProgram(&scoped.program, text.c_str(), (name + ".cu").c_str(), 0, nullptr, nullptr), "program");
  const std::string arch = "--gpu-architecture=" + architecture;
  const char* const options[] = {arch.c_str(), "--fmad=false", "--std=c++17"};
  const int code = f.nvrtcCompileProgram(scoped.program, std::size(options), options);
  if (code != 0) {
    throw DeviceError(fmt::format("nvrtc: kernel {} does not build for {}: {} ({})\n{}\n{}", name, architecture,
                                  f.nvrtcGetErrorString(code), code, log_of(f, scoped.program), text));
  }
  CudaBinary binary;
  std::size_t size = 0;
  check(f, f.nvrtcGetPTXSize(scoped.program, &size), "size of ptx");
  binary.ptx.resize(size);
  check(f, f.nvrtcGetPTX(scoped.program, binary.ptx.data()), "ptx");
  binary.ptx.resize(binary.ptx.find('\0') == std::string::npos ? size : binary.ptx.find('\0'));
  check(f, f.nvrtcGetCUBINSize(scoped.program, &size), "size of cubin");
  binary.cubin.resize(size);
  check(f, f.nvrtcGetCUBIN(scoped.program, binary.cubin.data()), "cubin");
  return binary;
}

}  // namespace rlx
