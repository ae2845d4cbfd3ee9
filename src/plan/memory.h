// The memory plan: which values share memory, and where each lies in the arena for one binding of the sizes.
#pragma once

#include <span>

#include "plan/program.h"

namespace rlx {

/// First and last step that touch the memory of a buffer and of those that share it.
struct Lifetime {
  std::uint32_t begin = 0, end = 0;
  bool used = false;
};

/// Lets results take the memory of operands that end in the same step, where the step allows it and both are whole
/// buffers in the arena with provably equal sizes. Fills Program::shares.
void share_in_place(Program& program);

/// By buffer; only owners of arena memory are `used`.
std::vector<Lifetime> lifetimes(const Program& program);

struct Placement {
  std::vector<Index> offsets;  // by buffer; of owners in the arena, multiples of 64
  Index bytes = 0;             // of the arena
};

/// Offsets for sizes in bytes by buffer: best fit into what is free at the first use, in the order of steps.
Placement place(const Program& program, std::span<const Lifetime> lifetimes, std::span<const Index> bytes);

/// Recomputes from the uses alone what must not overlap, and throws InternalError when `placement` breaks it: memory
/// that two live buffers have in common, a result written over an operand without a declaration, a read of what nothing
/// has written, a use beyond its buffer.
void check_plan(const Program& program, const Placement& placement, std::span<const Index> buffer_bytes,
                const DimEnv& dims);

}  // namespace rlx
