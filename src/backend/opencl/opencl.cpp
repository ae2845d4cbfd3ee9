// The OpenCL backend.
#include "backend/opencl/opencl.h"

#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

#include "backend/opencl/api.h"
#include "core/address_range.h"
#include "core/error.h"

namespace rlx {

namespace {

void check(cl::Int code, std::string_view call) {
  if (code != cl::success) throw DeviceError(fmt::format("opencl: {}: {} ({})", call, cl::error_name(code), code));
}

struct Found {
  cl::Platform platform;
  cl::DeviceId device;
};

// Platforms whose driver fails to answer are left out.
std::vector<Found> find_devices(const cl::Functions& f) {
  cl::Uint count = 0;
  if (f.clGetPlatformIDs(0, nullptr, &count) != cl::success || count == 0) return {};
  std::vector<cl::Platform> platforms(count);
  check(f.clGetPlatformIDs(count, platforms.data(), nullptr), "list of platforms");
  std::vector<Found> all;
  for (const cl::Platform p : platforms) {
    cl::Uint n = 0;
    if (f.clGetDeviceIDs(p, cl::device_type_all, 0, nullptr, &n) != cl::success || n == 0) continue;
    std::vector<cl::DeviceId> devices(n);
    check(f.clGetDeviceIDs(p, cl::device_type_all, n, devices.data(), nullptr), "list of devices");
    for (const cl::DeviceId d : devices) all.push_back({p, d});
  }
  return all;
}

std::string device_text(const cl::Functions& f, cl::DeviceId d, cl::Uint what) {
  std::size_t size = 0;
  check(f.clGetDeviceInfo(d, what, 0, nullptr, &size), "device information");
  std::string text(size, '\0');
  check(f.clGetDeviceInfo(d, what, size, text.data(), nullptr), "device information");
  return text.substr(0, text.find('\0'));
}

template <class T>
T device_number(const cl::Functions& f, cl::DeviceId d, cl::Uint what) {
  T value{};
  const cl::Int code = f.clGetDeviceInfo(d, what, sizeof value, &value, nullptr);
  return code == cl::success ? value : T{};
}

DeviceProperties describe(const cl::Functions& f, cl::DeviceId d, std::size_t index) {
  DeviceProperties i;
  i.name = index == 0 ? "opencl" : fmt::format("opencl:{}", index);
  i.description = fmt::format("{}, {}, driver {}", device_text(f, d, cl::device_name),
                              device_text(f, d, cl::device_version), device_text(f, d, cl::driver_version));
  i.f64 = device_number<cl::Ulong>(f, d, cl::device_double_config) != 0;
  i.memory = static_cast<Index>(device_number<cl::Ulong>(f, d, cl::device_memory));
  i.group_size = static_cast<Index>(device_number<std::size_t>(f, d, cl::device_max_group_size));
  return i;
}

// A compiled kernel; setting its arguments and launching it is one action under `lock`.
struct Compiled {
  cl::Program program = nullptr;
  cl::Kernel kernel = nullptr;
  std::mutex lock;
};

class OpenclDevice final : public GpuDevice {
 public:
  OpenclDevice(const cl::Functions& f, Found found, std::size_t index)
      : f_(f), device_(found.device), info_(describe(f, found.device, index)) {
    const std::intptr_t properties[] = {cl::context_platform, reinterpret_cast<std::intptr_t>(found.platform), 0};
    cl::Int code = 0;
    context_ = f_.clCreateContext(properties, 1, &device_, nullptr, nullptr, &code);
    check(code, "context");
    queue_ = f_.clCreateCommandQueue(context_, device_, 0, &code);
    if (code != cl::success) f_.clReleaseContext(context_);
    check(code, "queue");
    const auto config = device_number<cl::Ulong>(f_, device_, cl::device_single_config);
    if ((config & cl::fp_correct_divide_sqrt) != 0) options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
    makers_ = gpu_makers(info_, [this](Launch l) { return compile(std::move(l)); });
  }

  ~OpenclDevice() override {
    f_.clFinish(queue_);
    for (auto& [text, c] : compiled_) {
      f_.clReleaseKernel(c->kernel);
      f_.clReleaseProgram(c->program);
    }
    for (auto& [address, b] : buffers_) {
      f_.clReleaseMemObject(b.memory);
      release_addresses(address, b.reserved);
    }
    f_.clReleaseCommandQueue(queue_);
    f_.clReleaseContext(context_);
  }

  const DeviceProperties& info() const override { return info_; }
  const MakerTable& makers() const override { return makers_; }
  const GpuTarget& target() const override { return opencl_target; }

  Step copy_step(const Slot& from, const Slot& to) override {
    std::optional<Launch> launch = copy_launch(from, to);
    require(launch.has_value(), "elements of type {} with strides are not copied on {}", name(from.type.dtype),
            info_.name);
    return compile(std::move(*launch));
  }

  std::byte* allocate(Index bytes) override {
    ensure(bytes >= 0, "sizes are not negative");
    Buffer b;
    b.reserved = std::max<Index>(bytes, 1);
    std::byte* const address = reserve_addresses(b.reserved);
    cl::Int code = 0;
    b.memory = f_.clCreateBuffer(context_, cl::mem_read_write, static_cast<std::size_t>(b.reserved), nullptr, &code);
    if (code != cl::success) {
      release_addresses(address, b.reserved);
      check(code, fmt::format("{} bytes of memory", bytes));
    }
    const std::lock_guard guard(lock_);
    buffers_.emplace(address, b);
    return address;
  }

  void release(std::byte* address) noexcept override {
    if (!address) return;
    Buffer b;
    {
      const std::lock_guard guard(lock_);
      const auto it = buffers_.find(address);
      if (it == buffers_.end()) return;
      b = it->second;
      buffers_.erase(it);
    }
    f_.clReleaseMemObject(b.memory);  // OpenCL keeps it until the work that uses it is done
    release_addresses(address, b.reserved);
  }

  void upload(std::byte* to, std::span<const std::byte> from) override {
    if (from.empty()) return;
    const Place p = place(to, static_cast<Index>(from.size()));
    check(f_.clEnqueueWriteBuffer(queue_, p.memory, cl::true_value, p.offset, from.size(), from.data(), 0, nullptr,
                                  nullptr),
          "copy to the device");
  }

  void download(std::span<std::byte> to, const std::byte* from) override {
    if (to.empty()) return;
    const Place p = place(from, static_cast<Index>(to.size()));
    check(f_.clEnqueueReadBuffer(queue_, p.memory, cl::true_value, p.offset, to.size(), to.data(), 0, nullptr, nullptr),
          "copy from the device");
  }

  void copy(std::byte* to, const std::byte* from, Index bytes) override {
    if (bytes == 0) return;
    const Place x = place(from, bytes), y = place(to, bytes);
    check(f_.clEnqueueCopyBuffer(queue_, x.memory, y.memory, x.offset, y.offset, static_cast<std::size_t>(bytes), 0,
                                 nullptr, nullptr),
          "copy on the device");
  }

  void fill(std::byte* to, Index bytes, std::byte value) override {
    if (bytes == 0) return;
    const Place p = place(to, bytes);
    check(f_.clEnqueueFillBuffer(queue_, p.memory, &value, 1, p.offset, static_cast<std::size_t>(bytes), 0, nullptr,
                                 nullptr),
          "fill");
  }

  void synchronize() override { check(f_.clFinish(queue_), "wait"); }

  Step compile(Launch launch) override {
    if (launch.group_size > info_.group_size) {
      throw DeviceError(fmt::format("{}: kernel {} needs groups of {} items, the device has {}", info_.name,
                                    launch.kernel.name, launch.group_size, info_.group_size));
    }
    Compiled& kernel = built(launch.kernel.name, render(launch.kernel, opencl_target));
    const auto run = [this, &kernel, arguments = std::move(launch.arguments), groups = launch.groups,
                      size = launch.group_size](const Memory& m, const DimValues& d, Range) {
      start(kernel, arguments, d[groups], size, m, d);
    };
    return launch.step.run(1, 1, run);
  }

 private:
  struct Buffer {
    cl::Mem memory = nullptr;
    Index reserved = 0;
  };
  struct Place {
    cl::Mem memory;
    std::size_t offset;
  };

  // The buffer that holds `bytes` bytes at an address.
  Place place(const std::byte* address, Index bytes) {
    const std::lock_guard guard(lock_);
    auto it = buffers_.upper_bound(const_cast<std::byte*>(address));
    ensure(it != buffers_.begin(), "an address belongs to an allocation");
    --it;
    const Index offset = address - it->first;
    ensure(offset + bytes <= it->second.reserved, "an address belongs to an allocation");
    return {it->second.memory, static_cast<std::size_t>(offset)};
  }

  std::string log_of(cl::Program program) {
    std::size_t size = 0;
    if (f_.clGetProgramBuildInfo(program, device_, cl::build_log, 0, nullptr, &size) != cl::success) return "no log";
    std::string log(size, '\0');
    f_.clGetProgramBuildInfo(program, device_, cl::build_log, size, log.data(), nullptr);
    return log.substr(0, log.find('\0'));
  }

  Compiled& built(const std::string& name, const std::string& text) {
    const std::lock_guard guard(build_lock_);
    if (const auto it = compiled_.find(text); it != compiled_.end()) return *it->second;
    const char* source = text.c_str();
    const std::size_t length = text.size();
    cl::Int code = 0;
    auto c = std::make_unique<Compiled>();
    c->program = f_.clCreateProgramWithSource(context_, 1, &source, &length, &code);
    check(code, "program");
    code = f_.clBuildProgram(c->program, 1, &device_, options_.c_str(), nullptr, nullptr);
    if (code != cl::success) {
      const std::string log = log_of(c->program);
      f_.clReleaseProgram(c->program);
      throw DeviceError(fmt::format("{}: kernel {} does not build: {} ({})\n{}\n{}", info_.name, name,
                                    cl::error_name(code), code, log, text));
    }
    c->kernel = f_.clCreateKernel(c->program, name.c_str(), &code);
    if (code != cl::success) f_.clReleaseProgram(c->program);
    check(code, fmt::format("kernel {}", name));
    return *compiled_.emplace(text, std::move(c)).first->second;
  }

  // Sets the arguments in the order of the text: two for a buffer, one for a size; and enqueues.
  void start(Compiled& c, std::span<const GpuArgument> arguments, Index groups, Index group_size, const Memory& m,
             const DimValues& d) {
    if (groups <= 0) return;
    const std::lock_guard guard(c.lock);
    cl::Uint slot = 0;
    const auto set = [&](std::size_t bytes, const void* value) {
      check(f_.clSetKernelArg(c.kernel, slot++, bytes, value), "kernel argument");
    };
    for (const GpuArgument& a : arguments) {
      if (const DimToken* size = std::get_if<DimToken>(&a)) {
        const std::int64_t value = d[*size];
        set(sizeof value, &value);
        continue;
      }
      const Place p = std::visit(
          [&](const auto& token) -> Place {
            if constexpr (std::is_same_v<std::decay_t<decltype(token)>, DimToken>) {
              return {};
            } else {
              const auto bytes = m[token];
              return place(bytes.data(), static_cast<Index>(bytes.size()));
            }
          },
          a);
      const auto offset = static_cast<std::int64_t>(p.offset);
      // NOLINTNEXTLINE(bugprone-sizeof-expression,bugprone-multi-level-implicit-pointer-conversion): a handle is passed
      set(sizeof p.memory, &p.memory);
      set(sizeof offset, &offset);
    }
    const std::size_t local = static_cast<std::size_t>(group_size), global = local * static_cast<std::size_t>(groups);
    check(f_.clEnqueueNDRangeKernel(queue_, c.kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), "launch");
    check(f_.clFlush(queue_), "flush");
  }

  const cl::Functions& f_;
  cl::DeviceId device_;
  DeviceProperties info_;
  cl::Context context_ = nullptr;
  cl::Queue queue_ = nullptr;
  std::string options_ = "-w";  // without warnings, which some compilers print
  MakerTable makers_;
  std::mutex lock_, build_lock_;
  std::map<std::byte*, Buffer> buffers_;
  std::unordered_map<std::string, std::unique_ptr<Compiled>> compiled_;  // by text
};

}  // namespace

std::vector<DeviceProperties> opencl_devices() {
  const cl::Functions* f = nullptr;
  try {
    f = &cl::load();
  } catch (const DeviceError&) {
    return {};
  }
  std::vector<DeviceProperties> all;
  for (const Found& d : find_devices(*f)) all.push_back(describe(*f, d.device, all.size()));
  return all;
}

std::unique_ptr<GpuDevice> open_opencl(std::size_t index) {
  const cl::Functions& f = cl::load();
  const std::vector<Found> all = find_devices(f);
  if (index >= all.size()) {
    throw DeviceError(fmt::format("there is no OpenCL device {}: {} are found", index, all.size()));
  }
  return std::make_unique<OpenclDevice>(f, all[index], index);
}

}  // namespace rlx
