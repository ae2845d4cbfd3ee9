// The kernels of one level, by element type: they are compiled in several files.
#pragma once

#include "ops/matmul/matmul_tile.h"

namespace rlx::RLX_LEVEL {

extern const MatmulKernel matmul_f16, matmul_bf16;
extern const MatmulKernel matmul_bits8, matmul_bits16, matmul_bits32, matmul_bits64, matmul_c64;

}  // namespace rlx::RLX_LEVEL
