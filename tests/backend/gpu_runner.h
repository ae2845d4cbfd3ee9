// Runs graphs on a GPU device node by node, through step makers and bound steps; and the OpenCL device of the tests.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/opencl/opencl.h"
#include "device/gpu_launch.h"
#include "ir/graph.h"

namespace rlx::test {

/// The first OpenCL device, opened once a process with an empty kernel cache; null, with the reason in `why`, where
/// there is none.
GpuDevice* opencl_device(std::string* why = nullptr);
/// The same device, to share with a Session.
std::shared_ptr<GpuDevice> shared_opencl_device();

/// Outputs of a graph whose nodes all have steps on the device, with dense memory for every value. Throws Error with
/// the maker's reason for a node that has none.
std::vector<Tensor> run_on(Device& device, const Graph& g, std::span<const Tensor> inputs, const DimEnv& dims = {});

/// A device with nothing behind it: its makers put kernels into a list.
struct Recorder {
  DeviceProperties info;
  std::vector<GpuKernel> kernels;
  MakerTable makers;
  explicit Recorder(DeviceProperties device = {.name = "recorder", .group_size = 1024});
  /// Asks the makers of every node of a graph; false when one declines.
  bool take(const Graph& g, std::string* why = nullptr) const;
};

/// Ops that have GPU makers.
std::vector<const OpDef*> gpu_ops();

}  // namespace rlx::test
