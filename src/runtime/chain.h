// The inside of an executable whose sizes a run finds: one executable a segment.
#pragma once

#include "plan/segments.h"
#include "runtime/executable.h"

namespace rlx::detail {

/// Runs the segments in order. What one gives to another lies in memory that later runs use again.
class Chain {
 public:
  Chain(Interface ports, Segments segments, std::vector<Executable> parts);

  const Interface& interface() const { return interface_; }
  bool is_state(std::size_t input) const { return is_state_[input]; }
  /// Throws Error for an output with a size that a run finds.
  std::vector<std::vector<Index>> output_shapes(std::span<const BoundInput> inputs, const RunOptions& options) const;
  /// Runs. Outputs that the caller gives memory for are written there, and must have the size that is found; the
  /// others are given, in order.
  std::vector<Tensor> run(std::span<const BoundInput> inputs, std::span<const BoundOutput> outputs,
                          const RunOptions& options) const;
  RunReport report(const DimEnv& dims) const;
  MemoryUse memory() const;

 private:
  struct Run;
  DimEnv bind(Run& run, std::span<const BoundInput> inputs) const;
  void bind_outputs(Run& run, std::span<const BoundOutput> outputs) const;
  void run_part(Run& run, std::size_t part) const;
  std::vector<Tensor> results(Run& run) const;

  Interface interface_;
  Segments segments_;
  std::vector<Executable> parts_;
  std::vector<bool> is_state_;  // by input
};

}  // namespace rlx::detail
