// Regions: graphs of elementwise ops as lists of block kernels, run over blocks of elements that stay in the cache.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/function_ref.h"
#include "device/step.h"
#include "ops/scalar/scalar.kernel.h"

namespace rlx::region {

/// Where a value of a block is: a slot of the table of addresses that run() keeps.
using Place = std::uint16_t;

/// Elements of one item of work. The results are made in the order of memory, so every item is a run of them.
inline constexpr Index item_elements = 256;
/// Blocks have at most this many elements, and values of all their elements fill at most `pool_bytes`.
inline constexpr Index most_elements = 1024, least_elements = 64, pool_bytes = 32768;
inline constexpr std::size_t most_axes = 8, most_operands = 24, most_places = 160;

/// One kernel call.
struct Instruction {
  BlockKernel kernel = nullptr;
  std::array<Place, 3> in{};
  Place out = 0;
  int operands = 0;
};

/// How an operand comes to a block.
struct Source {
  enum class Kind : std::uint8_t {
    dense,    // read where it is: its elements are in the order of the results
    one,      // a single element
    walked,   // by strides, into a block
    counted,  // no memory: element i of it is i (coordinates, by strides)
  } kind = Kind::dense;
  int bits = 0;  // of an element in memory
  bool has_sign = false;
  bool given = false;  // dense, but handed over in pieces instead of read from memory
  Place place = 0;
  std::optional<Token<std::byte, Access::read>> memory = {};
  std::optional<Tensor> constant = {};  // instead of memory
  std::vector<DimToken> strides = {};   // of walked and counted ones, one an axis
};

/// A result: written where it is by an instruction, or copied or packed from a block.
struct Target {
  int bits = 0;
  Place place = 0;
  Token<std::byte, Access::write> memory;
  std::optional<Place> from = {};  // where the value is
};

/// A block buffer in the pool, or a constant that is there before run().
struct Buffer {
  Place place = 0;
  int bytes = 0;  // of an element
};

/// Takes `count` values of the given operand from element `first` on, and writes the results for them.
using Give = FunctionRef<void(Index first, Index count, const std::byte* values)>;

struct Program {
  std::vector<Instruction> code;
  std::vector<Source> sources;
  std::vector<Target> targets;
  std::vector<Buffer> buffers;
  std::vector<std::pair<Place, std::vector<std::byte>>> constants;  // most_elements copies of one element each
  std::vector<DimToken> extents;                                    // joined axes; none: one element
  std::optional<DimToken> count;
  Index block = most_elements;
  bool walks = false;   // some source is walked or counted
  bool packed = false;  // some result has elements of less than a byte
  std::size_t places = 0;

  void run(const Memory& m, const DimValues& d, Range r) const;
  /// Of make_stage(): calls `work` with what takes the values of the given operand, which is valid meanwhile.
  void run(const Memory& m, const DimValues& d, FunctionRef<void(Give)> work) const;
};

/// A step for a node whose op is elementwise (or cast, broadcast, iota), or for a fusion node with a body of such
/// ops. Results are dense and all of one shape; operands may have strides. Declines anything else.
std::optional<Step> make_step(const StepArgs& n);

/// The region of a fusion node as a part of another step, built by `s`: operand 0, dense and of the shape of the
/// results, is what that step computes, and is given piece by piece while it is in the cache. Declines as make_step().
/// Null when it declines; `s` is then of no more use.
std::shared_ptr<const Program> make_stage(StepBuilder& s, const StepArgs& n);

}  // namespace rlx::region
