// A program at one binding of its size symbols: every size a number, every buffer with its place.
#pragma once

#include <memory>
#include <unordered_map>

#include "plan/memory.h"

namespace rlx {

/// Sizes of a program, each evaluated once a binding.
class DimTable {
 public:
  std::uint32_t add(const Dim& d);
  std::vector<Index> evaluate(const DimEnv& dims) const;

 private:
  std::vector<Dim> dims_;
  std::unordered_map<std::size_t, std::vector<std::uint32_t>> by_hash_;
};

/// What is the same at every binding: numbers of sizes in the table, lifetimes.
struct ProgramLayout {
  struct UseAt {
    std::uint32_t offset, bytes;
  };
  struct StepAt {
    std::uint32_t items, grain, flops;
    std::uint32_t dims_begin;  // in Binding::dims
    std::uint32_t uses_begin;  // in uses
  };
  explicit ProgramLayout(const Program& program);

  DimTable table;
  std::vector<std::uint32_t> buffer_bytes;  // by buffer
  std::vector<UseAt> uses;                  // of all steps
  std::vector<std::uint32_t> dims;          // of all steps
  std::vector<StepAt> steps;
  std::vector<Lifetime> lives;
  struct ControlAt {
    std::uint32_t trips = 0;
    std::vector<std::uint32_t> slice_bytes, carried_bytes;
    std::vector<ProgramLayout> bodies;
  };
  std::vector<ControlAt> controls;
  std::vector<std::vector<BufferId>> ends;  // owners in the arena that end with each step
};

struct Binding {
  struct StepAt {
    Index items = 0, grain = 1, flops = 0;
  };
  struct ControlAt {
    Index trips = 0;
    std::vector<Index> slice_bytes, carried_bytes;
    std::vector<Binding> bodies;
  };
  Binding(const Program& program, const ProgramLayout& layout, DimEnv env);
  /// The binding of a body: what does not fit is kept in `refused`, for the body may never run.
  static Binding inside(const Program& program, const ProgramLayout& layout, const DimEnv& env);

  DimEnv env;
  std::vector<StepAt> steps;
  std::vector<Index> dims;          // declared sizes of all steps
  std::vector<Index> buffer_bytes;  // by buffer
  std::vector<Index> use_offsets, use_bytes;
  std::vector<ControlAt> controls;
  Placement placement;
  std::string refused;  // why a body cannot run at these sizes; nothing else is filled then

 private:
  Binding() = default;
};

}  // namespace rlx
