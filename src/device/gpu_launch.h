// A GPU step before a device has compiled it: the kernel, and which uses and sizes its arguments are.
#pragma once

#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "device/device.h"
#include "device/gpu_kernel.h"
#include "device/step.h"

namespace rlx {

using GpuRead = Token<std::byte, Access::read>;
using GpuWrite = Token<std::byte, Access::write>;
using GpuScratch = Token<std::byte, Access::scratch>;
/// What is passed for a parameter: an address, or a size.
using GpuArgument = std::variant<GpuRead, GpuWrite, GpuScratch, DimToken>;

/// A launch: `groups` groups of `group_size` items. Without groups nothing runs.
struct Launch {
  GpuKernel kernel;
  std::vector<GpuArgument> arguments;  // one a parameter
  DimToken groups;
  Index group_size;
  StepBuilder step;  // has the uses and sizes; the device adds run()
};

/// Declares a kernel and what it touches, together, so that they agree.
class LaunchBuilder {
 public:
  explicit LaunchBuilder(std::string name);

  /// A buffer that the text calls `name`, of elements of the slot's type (see gpu_storage).
  GpuRead read(std::string_view name, const Slot& slot);
  GpuWrite write(std::string_view name, const Slot& slot);
  GpuScratch scratch(std::string_view name, DType type, const Dim& count);
  /// A size; a name that is there already keeps its value, which must be the same.
  void size(std::string_view name, const Dim& size);
  void shared(std::string_view name, std::string_view type, Index count);
  void may_overwrite(GpuWrite out, GpuRead in) { step_.may_overwrite(out, in); }
  void flops(Dim count) { step_.flops(std::move(count)); }

  /// Ends the declaration; call it once.
  Launch launch(const Dim& groups, Index group_size, std::string body);

 private:
  void parameter(GpuParam::Kind kind, std::string_view name, std::string_view type, GpuArgument argument);
  GpuKernel kernel_;
  std::vector<GpuArgument> arguments_;
  std::map<std::string, Dim, std::less<>> sizes_;
  StepBuilder step_;
};

/// An operand of a loop: the name of its offset, and its strides in elements along the axes of the loop.
struct LoopOperand {
  std::string offset;
  std::vector<Dim> strides;
};

/// Text that declares, for element number `linear` of a row-major loop over `dims`, the offset of each operand as an
/// i64. Extents and strides become sizes of the launch, with names that begin with `prefix`. Axes that are one axis
/// for all operands are joined, unless `keep_axes` asks for the coordinate of each (i64 PREFIX0, PREFIX1, ...).
std::string loop_text(LaunchBuilder& b, const std::string& prefix, const std::string& linear, std::vector<Dim> dims,
                      std::vector<LoopOperand> operands, bool keep_axes = false);

/// Strides of a slot along the axes of a loop over `dims` to which its type broadcasts: 0 where it repeats. The rank
/// of the slot is at most that of the loop.
std::vector<Dim> loop_strides(const Slot& slot, std::span<const Dim> dims);

/// Empty: not my case, or not on this device.
using GpuMaker = std::optional<Launch> (*)(const StepArgs&, const DeviceProperties&);
/// A folder NAME with a NAME.gpu.cpp exports `std::span<const GpuMakerRow> NAME_gpu()`.
struct GpuMakerRow {
  const OpDef* op = nullptr;
  GpuMaker make = nullptr;
};
using GpuMakerFolder = std::span<const GpuMakerRow> (*)();
/// One row a folder with a NAME.gpu.cpp (generated).
std::span<const GpuMakerFolder> gpu_maker_folders();

/// Why a kernel cannot take elements of this type on this device, or empty.
std::string gpu_refuses(DType type, const DeviceProperties& device);

/// A launch that copies between slots of one element type, strided or dense; sizes differ only where one of the slots
/// is dense and the element counts are equal. Empty for elements of less than a byte, unless both are dense.
std::optional<Launch> copy_launch(const Slot& from, const Slot& to);

/// A device that compiles kernels from text.
class GpuDevice : public Device {
 public:
  /// The language it compiles.
  virtual const GpuTarget& target() const = 0;
  /// Compiles a launch (once for equal texts) and makes its step. Throws DeviceError with the text and the compiler's
  /// log when it does not build.
  virtual Step compile(Launch launch) = 0;
};

/// Makers of steps from the rows of all folders; `compile` turns a launch into a step.
MakerTable gpu_makers(const DeviceProperties& device, const std::function<Step(Launch)>& compile);

}  // namespace rlx
