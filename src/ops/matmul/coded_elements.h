// The kernels of one level, by form of matrix: they are compiled in several files.
#pragma once

#include "ops/matmul/coded_tile.h"

namespace rlx::RLX_LEVEL {

extern const CodedKernel coded_nibbles, coded_nibbles_minimum, coded_nibbles_table, coded_nibbles_table_b, coded_fives,
    coded_fives_minimum, coded_bytes, coded_k_twos, coded_k_threes, coded_k_nibbles, coded_k_fives, coded_k_sixes,
    coded_k_nibbles_table;

}  // namespace rlx::RLX_LEVEL
