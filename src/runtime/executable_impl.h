// The inside of an executable.
#pragma once

#include <mutex>

#include "runtime/executable.h"
#include "runtime/output_pool.h"

namespace rlx::detail {

// One binding of the sizes, with what runs compare against.
struct Bound {
  Bound(const Program& program, const ProgramLayout& layout, DimEnv env) : numbers(program, layout, std::move(env)) {}
  std::vector<Index> key;  // of the symbols, in the order of Interface::symbols
  Binding numbers;
  std::vector<std::vector<Index>> in_shapes, out_shapes;
};

// Where a program, and those of its bodies, work in a run.
struct Frame {
  std::byte* arena = nullptr;
  std::vector<Memory::Place> places;       // of all uses
  std::vector<std::byte*> addresses;       // by external: inputs, then outputs
  std::vector<std::vector<Frame>> bodies;  // by control step
};

// What one run works in. Kept for the next run, so that vectors keep their memory.
struct Context {
  std::unique_ptr<DeviceMemory> arena;
  std::vector<std::unique_ptr<DeviceMemory>> staged;  // device copies of inputs, outputs and states
  std::shared_ptr<const Bound> bound, placed;         // `placed`: whose addresses `places` has
  Frame frame;
  std::vector<const ConstView*> inputs;
  std::vector<ConstView> state_views;
  std::vector<MutableView> outputs;
  std::vector<Index> key;
  // Memory of the caller, in the order of addresses.
  struct Extent {
    std::uintptr_t begin, end;
    std::uint32_t number;  // of the external
    bool written;
  };
  std::vector<Extent> extents;
};

// What is found once about a program, and about those of its bodies.
struct Part {
  struct External {
    std::uint32_t use = 0, number = 0;  // which use; which input or output
  };
  std::vector<std::string> node_texts;         // by step
  std::vector<std::byte*> constant_addresses;  // by use; null where the use is no constant
  std::vector<External> externals;
  std::vector<std::int32_t> control;      // by step: which control step, -1: none
  std::vector<std::vector<Part>> bodies;  // by control step
};

// A program at one binding in one run.
struct Running {
  const Program& program;
  const ProgramLayout& layout;
  const Part& part;
  const Binding& numbers;
  Frame& frame;
};

struct ExecutableImpl {
  ExecutableImpl(Program program, Interface interface, std::shared_ptr<Device> device,
                 std::shared_ptr<Executor> executor, std::shared_ptr<WeightStore> weights,
                 const ExecutableOptions& options);

  // A context for the time of a run.
  class Lease {
   public:
    explicit Lease(const ExecutableImpl& impl);
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Context& operator*() const { return *context_; }
    Context* operator->() const { return context_.get(); }

   private:
    const ExecutableImpl& impl_;
    std::unique_ptr<Context> context_;
  };

  void bind_inputs(Context& c, std::span<const BoundInput> inputs, const RunOptions& options) const;
  void bind_outputs(Context& c, std::span<const BoundOutput> outputs) const;
  void execute(Context& c, const RunOptions& options, State::Hold* hold) const;
  RunReport report(const DimEnv& dims) const;
  MemoryUse memory() const;

  Part make_part(Program& program);
  void set_constants(Program& program, Part& part);
  Frame make_frame(const Program& program, const ProgramLayout& layout) const;
  void check_memory(Index arena, Index states) const;
  void find_symbols();
  void check_input(const Context& c, std::size_t i) const;
  std::shared_ptr<const Bound> bind(Context& c, const RunOptions& options) const;
  std::shared_ptr<const Bound> make_bound(const Context& c, const DimEnv& dims) const;
  void set_places(Context& c) const;
  void set_places(const Running& r, std::byte* arena) const;
  static void set_externals(const Running& r);
  void check_overlaps(Context& c) const;
  void stage(Context& c) const;
  void unstage(Context& c, State::Hold* hold) const;
  void run_steps(Context& c, const RunOptions& options, State::Hold* hold) const;
  void run_step(const Running& r, std::size_t s, const RunOptions& options) const;
  void end_step(const Running& r, std::size_t s) const;
  void run_control(const Running& r, std::size_t number, const RunOptions& options) const;
  void run_branch(const Running& r, std::size_t number, const RunOptions& options) const;
  void run_scan(const Running& r, std::size_t number, const RunOptions& options) const;
  void run_while(const Running& r, std::size_t number, const RunOptions& options) const;
  void run_body(const Running& body, const RunOptions& options) const;
  bool flag(const std::byte* address) const;
  std::size_t external(const Program& p, const Buffer& b) const;

  // Where the value of a symbol is seen first; input -1: nowhere.
  struct Seen {
    std::string_view name;
    std::int32_t input = -1;
    std::uint32_t axis = 0;
  };

  Program program;
  Interface interface;
  std::shared_ptr<Device> device;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<WeightStore> weights;
  ExecutableOptions options;
  ProgramLayout layout;
  std::vector<bool> is_state;  // by input
  Part part;
  std::vector<std::shared_ptr<const void>> kept;  // owners of constants
  std::vector<Seen> symbols;
  std::size_t first_state_write = 0;
  Index constant_bytes = 0, packed_bytes = 0;
  std::shared_ptr<OutputPool> outputs = std::make_shared<OutputPool>();

  mutable std::mutex lock;
  mutable std::vector<std::unique_ptr<Context>> contexts;
  mutable std::vector<std::shared_ptr<const Bound>> bounds;  // the last used first
};

}  // namespace rlx::detail
