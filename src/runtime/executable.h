// An executable: a program on a device, run for any sizes within its bounds, from any number of threads.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

#include "core/executor.h"
#include "plan/binding.h"
#include "runtime/interface.h"
#include "runtime/ports.h"
#include "runtime/report.h"
#include "runtime/state.h"
#include "runtime/weights.h"

namespace rlx {

namespace detail {
struct ExecutableImpl;
class Chain;
}  // namespace detail

/// Ends runs from another thread.
class CancelToken {
 public:
  void cancel() { cancelled_ = true; }
  void reset() { cancelled_ = false; }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_ = false;
};

struct RunOptions {
  /// The values that live between runs; needed when the graph declares states.
  State* state = nullptr;
  /// Values of size symbols that no input shows.
  const DimEnv* dims = nullptr;
  /// A run that is not done by then ends with Error between two steps.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  const CancelToken* cancel = nullptr;
  /// Receives the time of every step.
  std::vector<std::chrono::nanoseconds>* step_times = nullptr;
  /// Receives the sizes that only a run finds (nonzero, unique, ...); report() needs them.
  DimEnv* found = nullptr;
};

struct ExecutableOptions {
  /// Bindings of sizes that are kept with their memory plan.
  std::size_t bindings = 64;
  /// Most bytes that constants, packed weights, states and the arena of one run may take together; 0: any. Constants
  /// and packed weights are counted when the program is made, the rest when sizes are bound: more is an Error that
  /// lists the parts.
  Index memory_limit = 0;
  /// Hears how many of the constants are packed or uploaded, from 0 to 1.
  std::function<void(std::string_view what, double done)> progress = {};
  /// Fills memory with 0xFF when its value ends, so that a wrong plan shows.
  bool poison = false;
  /// Checks the plan of every binding from the uses.
  bool check = false;
};

/// Made by Session::compile. Const and callable from several threads at once; each run takes an arena of its own from
/// a pool. At sizes that were seen before (among the last `bindings`) a run allocates nothing. A graph with sizes that
/// a run finds is cut where they are found: such a run binds the parts one after the other, and allocates what one
/// gives to the next.
class Executable {
 public:
  Executable(Program program, Interface interface, std::shared_ptr<Device> device, std::shared_ptr<Executor> executor,
             std::shared_ptr<WeightStore> weights, const ExecutableOptions& options);
  /// Segments that run one after the other.
  explicit Executable(std::unique_ptr<detail::Chain> chain);
  ~Executable();
  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;

  /// Names and symbolic types of inputs, outputs, states.
  const Interface& interface() const;
  /// Throws Error that lists the names when there is none of this name.
  InputHandle input(std::string_view name) const;
  /// An output by name, or by position.
  OutputHandle output(std::string_view name) const;
  OutputHandle output(std::size_t position) const;

  /// Shapes of the outputs for these inputs. Throws Error as a run does, and for a size that only a run finds.
  std::vector<std::vector<Index>> output_shapes(std::span<const BoundInput> inputs, const RunOptions& = {}) const;
  /// Runs into the caller's memory. Every input (that is no state) and every output is bound once; outputs overlap
  /// neither each other nor inputs. Throws Error for anything that does not fit; then nothing was written (unless it is
  /// an output of another size than the run finds). An Error
  /// from a kernel (an index out of range), the deadline or cancellation leaves outputs half written; if it comes after
  /// the first write to a state, the state is marked as lost, and every use says so until it is set anew.
  void run(std::span<const BoundInput> inputs, std::span<const BoundOutput> outputs, const RunOptions& = {}) const;
  void run(std::initializer_list<BoundInput> inputs, std::initializer_list<BoundOutput> outputs,
           const RunOptions& options = {}) const {
    run(std::span(inputs.begin(), inputs.size()), std::span(outputs.begin(), outputs.size()), options);
  }
  /// Runs by name; gives the outputs in order, in memory that is pooled: it is used again when the last owner is gone.
  std::vector<Tensor> run(const NamedTensors& inputs, const RunOptions& = {}) const;

  /// What runs and what it needs at these values of the size symbols. Throws Error for one that is missing or out of
  /// its bounds.
  RunReport report(const DimEnv& dims) const;
  /// Bytes that are held now.
  MemoryUse memory() const;

 private:
  friend class detail::Chain;
  // Outputs that are not bound come from the pool.
  std::vector<Tensor> run_held(std::span<const BoundInput> inputs, std::span<const BoundOutput> outputs,
                               const RunOptions& options, State::Hold* hold) const;

  std::unique_ptr<detail::ExecutableImpl> impl_;
  std::unique_ptr<detail::Chain> chain_;  // instead of impl_
};

}  // namespace rlx
