// Kernels of encode.
#pragma once

#include "core/levels.h"

namespace rlx {

struct EncodeKernels {
  /// Blocks of a8 (see codecs/a8/a8.h) of `blocks` times 32 adjacent f32. A block's bits depend on that block only.
  void (*a8)(const float* x, void* to, long blocks);
};

}  // namespace rlx

RLX_LEVELS(EncodeKernels, encode_kernels)
