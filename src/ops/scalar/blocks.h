// Which kernel runs an elementwise op over blocks of elements, whatever the level.
#pragma once

#include <vector>

#include "ir/op.h"
#include "ops/scalar/scalar.kernel.h"

namespace rlx {

/// The kernel of an op of the scalar folder over operands of `dtype` (of select: that of the values), or null. Halves
/// have none but where only bits are moved: their kernel is that of f32 between two casts. In memory and in blocks
/// bool is one byte; types of less than a byte are one byte in blocks, sign- or zero-extended.
BlockKernel find_block(const OpDef& op, DType dtype);

/// One part of a cast.
struct CastPart {
  BlockKernel kernel = nullptr;
  int bytes = 0;  // of an element of its result, in a block
};
/// The kernels that together cast blocks of `from` to `to`, by the rules of the op; none when the types are equal.
std::vector<CastPart> find_cast(DType from, DType to);

/// Bytes of an element in a block: those of the type, 1 for types of less than a byte.
int block_bytes(DType dtype);

/// Roughly how many instructions an element of a scalar op takes; 1 for anything else.
int block_cost(const OpDef& op);

}  // namespace rlx
