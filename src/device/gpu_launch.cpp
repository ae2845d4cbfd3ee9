// Launches: declaring them, loops over strided operands as text, and the copy that every device needs.
#include "device/gpu_launch.h"

#include <algorithm>

#include "core/error.h"
#include "device/view.h"

namespace rlx {

LaunchBuilder::LaunchBuilder(std::string name) : step_(name) { kernel_.name = std::move(name); }

void LaunchBuilder::parameter(GpuParam::Kind kind, std::string_view name, std::string_view type, GpuArgument argument) {
  kernel_.params.push_back({kind, std::string(name), std::string(type)});
  arguments_.push_back(argument);
}

GpuRead LaunchBuilder::read(std::string_view name, const Slot& slot) {
  const GpuRead token = step_.read<std::byte>(slot);
  parameter(GpuParam::Kind::in, name, gpu_storage(slot.type.dtype), token);
  return token;
}

GpuWrite LaunchBuilder::write(std::string_view name, const Slot& slot) {
  const GpuWrite token = step_.write<std::byte>(slot);
  parameter(GpuParam::Kind::out, name, gpu_storage(slot.type.dtype), token);
  return token;
}

GpuScratch LaunchBuilder::scratch(std::string_view name, DType type, const Dim& count) {
  const GpuScratch token = step_.scratch<std::byte>(count * storage_bytes(type, 1));
  parameter(GpuParam::Kind::out, name, gpu_storage(type), token);
  return token;
}

void LaunchBuilder::size(std::string_view name, const Dim& size) {
  const auto [it, added] = sizes_.emplace(name, size);
  ensure(it->second == size, "a size of a kernel has one value");
  if (added) parameter(GpuParam::Kind::size, name, "i64", step_.dim(size));
}

void LaunchBuilder::shared(std::string_view name, std::string_view type, Index count) {
  kernel_.shared.push_back({std::string(name), std::string(type), count});
}

Launch LaunchBuilder::launch(const Dim& groups, Index group_size, std::string body) {
  kernel_.body = std::move(body);
  const DimToken count = step_.dim(groups);
  return {std::move(kernel_), std::move(arguments_), count, group_size, std::move(step_)};
}

namespace {

// Joins axis `i` with the next one where the next one's extent times its stride is the stride of `i`, for all.
void join_axes(std::vector<Dim>& dims, std::vector<LoopOperand>& operands) {
  const auto erase = [&](std::size_t i) {
    dims.erase(dims.begin() + static_cast<Index>(i));
    for (LoopOperand& o : operands) o.strides.erase(o.strides.begin() + static_cast<Index>(i));
  };
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] == Dim(1)) erase(i);
  }
  for (std::size_t i = dims.size(); i-- > 1;) {
    const bool one =
        std::ranges::all_of(operands, [&](const LoopOperand& o) { return o.strides[i - 1] == o.strides[i] * dims[i]; });
    if (!one) continue;
    dims[i] = dims[i - 1] * dims[i];
    erase(i - 1);
  }
}

}  // namespace

std::string loop_text(LaunchBuilder& b, const std::string& prefix, const std::string& linear, std::vector<Dim> dims,
                      std::vector<LoopOperand> operands, bool keep_axes) {
  if (!keep_axes) join_axes(dims, operands);
  std::string text;
  const std::size_t rank = dims.size();
  const auto coordinate = [&](std::size_t axis) { return fmt::format("{}{}", prefix, axis); };
  if (rank > 1) text += fmt::format("  i64 {}_rest = {};\n", prefix, linear);
  for (std::size_t i = rank; i-- > 0;) {
    const std::string extent = coordinate(i) + "_size";
    if (i == 0) {
      text += fmt::format("  const i64 {} = {};\n", coordinate(i), rank > 1 ? prefix + "_rest" : linear);
    } else {
      b.size(extent, dims[i]);
      text +=
          fmt::format("  const i64 {} = {}_rest % {}; {}_rest /= {};\n", coordinate(i), prefix, extent, prefix, extent);
    }
  }
  for (const LoopOperand& o : operands) {
    std::string sum;
    for (std::size_t i = 0; i < rank; ++i) {
      if (o.strides[i] == Dim(0)) continue;
      if (!sum.empty()) sum += " + ";
      sum += coordinate(i);
      if (o.strides[i] == Dim(1)) continue;
      const std::string step = fmt::format("{}_step{}", o.offset, i);
      b.size(step, o.strides[i]);
      sum += " * " + step;
    }
    text += fmt::format("  const i64 {} = {};\n", o.offset, sum.empty() ? "0" : sum);
  }
  return text;
}

std::vector<Dim> loop_strides(const Slot& slot, std::span<const Dim> dims) {
  const std::size_t rank = slot.type.dims.size();
  ensure(rank <= dims.size(), "an operand has no more axes than its loop");
  const std::vector<Dim> own = strides_of(slot);
  std::vector<Dim> strides(dims.size(), 0);
  for (std::size_t i = 0; i < rank; ++i) {
    if (slot.type.dims[i] != Dim(1)) strides[i + dims.size() - rank] = own[i];
  }
  return strides;
}

std::string gpu_refuses(DType type, const DeviceProperties& device) {
  if (!gpu_loads(type)) return fmt::format("kernels do not load elements of type {}", name(type));
  if (type == DType::f64 && !device.f64) return fmt::format("{} has no f64", device.name);
  return "";
}

std::optional<Launch> copy_launch(const Slot& from, const Slot& to) {
  // Elements are moved as bits: unsigned integers of their width, or bytes where both sides are dense.
  DType unit = DType::u8;
  Slot x = from, y = to;
  if (from.dense() && to.dense()) {
    const Dim bytes = to.type.plane_bytes(to.plane);
    x.type = y.type = TensorType(DType::u8, {bytes});
    x.plane = y.plane = 0;
  } else {
    const int width = bits(from.type.dtype);
    if (width < 8) return std::nullopt;
    unit = width == 8 ? DType::u8 : width == 16 ? DType::u16 : width == 32 ? DType::u32 : DType::u64;
    // Where the sizes differ one side is dense, and as good under the sizes of the other.
    x.type = y.type = TensorType(unit, from.dense() ? to.type.dims : from.type.dims);
  }
  const std::vector<Dim> dims = y.type.dims;
  LaunchBuilder b("copy");
  b.read("x", x);
  b.write("y", y);
  b.size("count", product(dims));
  const Index group_size = 256;
  const std::string body =
      "  const i64 i = group_x * size_x + local_x;\n  if (i >= count) return;\n" +
      loop_text(b, "c", "i", dims, {{"x_at", loop_strides(x, dims)}, {"y_at", loop_strides(y, dims)}}) +
      "  y[y_at] = x[x_at];\n";
  return b.launch(ceildiv(product(dims), group_size), group_size, body);
}

MakerTable gpu_makers(const DeviceProperties& device, const std::function<Step(Launch)>& compile) {
  MakerTable table;
  const auto folders = gpu_maker_folders();
  for (std::size_t f = folders.size(); f-- > 0;) {  // add() puts each maker before the others
    const auto rows = folders[f]();
    for (std::size_t r = rows.size(); r-- > 0;) {
      const GpuMaker make = rows[r].make;
      table.add(rows[r].op, [make, device, compile](const StepArgs& n) -> std::optional<Step> {
        std::optional<Launch> launch = make(n, device);
        if (!launch) return std::nullopt;
        return compile(std::move(*launch));
      });
    }
  }
  return table;
}

}  // namespace rlx
