// A session: a device, threads, the weights that programs share, and compiling.
#pragma once

#include <memory>

#include "passes/pass.h"
#include "runtime/executable.h"

namespace rlx {

struct SessionOptions {
  /// Threads of one run, the caller included; 0: as many as the process may use, in a pool that all sessions share.
  int threads = 0;
  /// The host's own executor instead of a thread pool.
  std::shared_ptr<Executor> executor;
};

/// Compiles graphs for one device. Safe to use from several threads; executables keep what they need of it and may
/// outlive it.
class Session {
 public:
  explicit Session(std::shared_ptr<Device> device, const SessionOptions& options = {});

  const Device& device() const { return *device_; }
  int threads() const { return executor_->width(); }

  /// Optimises, plans and prepares a graph. Throws Error for a graph that does not verify, an unknown pass in the
  /// options, or nodes that cannot run on the device: then one message lists them all. `report` receives what the
  /// passes did.
  Executable compile(const Graph& graph, const CompileOptions& passes = {}, const ExecutableOptions& options = {},
                     Report* report = nullptr) const;
  /// The graph as it would be lowered.
  Graph optimise(const Graph& graph, const CompileOptions& passes = {}, Report* report = nullptr) const;

 private:
  // Results of a node on constants.
  std::vector<Tensor> run_alone(const Node& n, std::span<const Tensor> operands) const;
  Executable prepare(std::shared_ptr<const Graph> graph, const ExecutableOptions& options) const;

  std::shared_ptr<Device> device_;
  std::shared_ptr<Executor> executor_;
  std::shared_ptr<WeightStore> weights_;
};

}  // namespace rlx
